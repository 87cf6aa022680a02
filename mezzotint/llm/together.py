"""Prompts answered by an engine that stays for the next call, several at once or streams; one alone lives in alone."""

import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count

from mezzotint.engine.config import EngineConfig
from mezzotint.engine.costs import CostBook
from mezzotint.engine.engine import Engine
from mezzotint.engine.request import Done, Failed, Outcome, Request, Told
from mezzotint.llm.checkpoint import Checkpoint
from mezzotint.llm.entry import Asked, make_request
from mezzotint.llm.events import Completion, Event
from mezzotint.llm.fold import Fold, spent


class GenerationError(RuntimeError):
    """Some of several prompts were not answered; the others were.

    failures: the reason of each that was not, by its index among the prompts. completions: in the prompts' order, None
    for those.
    """

    def __init__(self, failures: dict[int, str], completions: list[Completion | None]) -> None:
        """Both as the class describes."""
        index, reason = min(failures.items())
        others = f", and {len(failures) - 1} more failed" if len(failures) > 1 else ""
        super().__init__(
            f"prompts[{index}] of {len(completions)} was not answered: {reason}{others}; "
            "the answers of the others are in completions of this error"
        )
        self.failures, self.completions = failures, completions


class Together:
    """One engine, made when it is first needed, whose prefix cache outlives a call.

    Whoever reads an answer steps the engine, for all requests that are in it; so several streams go on at once, from
    one thread or many, whichever is read.
    """

    def __init__(self, checkpoint: Checkpoint, book: CostBook, config: EngineConfig) -> None:
        self._checkpoint, self._book, self._config = checkpoint, book, config
        self._engine: Engine | None = None
        self._lock = threading.Lock()  # around every use of the engine
        self._ids = count()
        self._told: dict[str, deque[Outcome]] = {}  # what came of each request and has not been read
        self._left: deque[str] = deque()  # requests whose reader has gone

    def answer(self, asked: Sequence[Asked]) -> list[Completion]:
        """Answer prompts, as many at once as memory holds. Returns: their completions, in order.

        Raises: ValueError before any work for one that memory could never hold; GenerationError, once all the others
        are answered, if one fails. Whatever else ends the call, such as an interrupt, ends them all.
        """
        requests = self._check(asked)
        self._submit(requests)
        try:
            answers = [self._finish(request, one) for request, one in zip(requests, asked, strict=True)]
        finally:
            self._leave(requests)
        failures = {index: answer.reason for index, answer in enumerate(answers) if isinstance(answer, Failed)}
        if failures:
            raise GenerationError(failures, [None if isinstance(answer, Failed) else answer for answer in answers])
        return [answer for answer in answers if isinstance(answer, Completion)]

    def stream(self, asked: Asked) -> Iterator[Event]:
        """Answer a prompt as it is read: draft and block events, then its Completion. Who stops reading ends it.

        Raises: ValueError at once for what memory could never hold; while it is read, GenerationError if it fails.
        """
        return self._read(self._check([asked]), asked)

    def _read(self, requests: list[Request], asked: Asked) -> Iterator[Event]:
        self._submit(requests)
        try:
            for event in self._follow(requests[0], asked):
                if isinstance(event, Failed):
                    raise GenerationError({0: event.reason}, [None])
                yield event
        finally:
            self._leave(requests)

    def _finish(self, request: Request, asked: Asked) -> Completion | Failed:
        *_, last = self._follow(request, asked)
        assert isinstance(last, Completion | Failed)
        return last

    def _follow(self, request: Request, asked: Asked) -> Iterator[Event | Failed]:
        """A request's events, at last its Completion, or that it failed."""
        fold = Fold(asked, self._checkpoint, self._book.read() if asked.params.decoder == "verified" else None)
        while True:
            for outcome in self._await(request.id):
                match outcome:
                    case Told(_, event):
                        yield from fold.push(event)
                    case Done(_, receipt):
                        yield fold.complete(spent(receipt))
                        return
                    case Failed():
                        yield outcome
                        return

    def _check(self, asked: Sequence[Asked]) -> list[Request]:
        """The requests of prompts. Raises: ValueError for one that memory could never hold."""
        requests = [make_request(str(next(self._ids)), one, self._checkpoint) for one in asked]
        with self._lock:
            engine = self._engine = self._engine or self._make()
            for request in requests:
                engine.check(request)
        return requests

    def _submit(self, requests: Sequence[Request]) -> None:
        with self._lock:
            assert self._engine is not None
            for request in requests:
                self._told[request.id] = deque()
                self._engine.submit(request)

    def _await(self, id: str) -> list[Outcome]:
        """What came of a request since it was last asked for; steps the engine until there is something."""
        with self._lock:
            told = self._told[id]
            while not told:
                self._step()
            outcomes = list(told)
            told.clear()
        return outcomes

    def _step(self) -> None:
        """Do one step for all; if it fails as a whole, so do the requests that have not ended."""
        engine = self._engine
        assert engine is not None
        self._drop_left(engine)
        try:
            outcomes = engine.step()
        except Exception as error:
            logging.getLogger(__name__).exception("a step failed; its prompts are given up")
            outcomes = engine.abandon("crashed", f"the engine failed: {type(error).__name__}: {error}")
        except BaseException:
            self._deliver(engine.abandon("cancelled", "the call that was at it is over"))
            raise
        self._deliver(outcomes)

    def _deliver(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.id in self._told:
                self._told[outcome.id].append(outcome)

    def _leave(self, requests: Sequence[Request]) -> None:
        """Forget requests, and end those that still go on.

        A stream that nobody holds may be closed at any moment, in the midst of a step too: then the next step does it.
        """
        self._left.extend(request.id for request in requests)
        if self._lock.acquire(blocking=False):
            try:
                if self._engine is not None:
                    self._drop_left(self._engine)
            finally:
                self._lock.release()

    def _drop_left(self, engine: Engine) -> None:
        while self._left:
            id = self._left.popleft()
            self._told.pop(id, None)
            engine.cancel(id)

    def _make(self) -> Engine:
        given = self._checkpoint
        return Engine(
            given.model, given.limits, self._config, defaults=given.defaults, drafter=given.drafter, costs=self._book
        )
