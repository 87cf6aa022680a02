"""Several prompts answered at once by an engine that stays for the next call; one alone lives in alone."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

from mezzotint.engine.config import EngineConfig
from mezzotint.engine.costs import CostBook
from mezzotint.engine.engine import Engine
from mezzotint.engine.request import Done, Failed, Outcome, Request, Told
from mezzotint.llm.checkpoint import Checkpoint
from mezzotint.llm.entry import Asked
from mezzotint.llm.events import Completion
from mezzotint.llm.fold import Fold, Spent
from mezzotint.types import Receipt


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
    """One engine, made when it is first needed, whose prefix cache outlives a call."""

    def __init__(self, checkpoint: Checkpoint, book: CostBook, config: EngineConfig) -> None:
        self._checkpoint, self._book, self._config = checkpoint, book, config
        self._engine: Engine | None = None
        self._lock = threading.Lock()  # two threads that call take turns

    def answer(self, asked: Sequence[Asked]) -> list[Completion]:
        """Answer prompts, as many at once as memory holds. Returns: their completions, in order.

        Raises: ValueError before any work for one that memory could never hold; GenerationError, once all the others
        are answered, if one fails. Whatever else ends the call, such as an interrupt, ends them all.
        """
        requests = [_request(index, one) for index, one in enumerate(asked)]
        with self._lock:
            engine = self._engine = self._engine or self._make()
            for request in requests:
                engine.check(request)
            try:
                answers = self._run(engine, requests, asked)
            except BaseException:
                engine.abandon("cancelled", "the call that asked for it is over")
                raise
        failures = {index: answer.reason for index, answer in enumerate(answers) if isinstance(answer, Failed)}
        if failures:
            raise GenerationError(failures, [None if isinstance(answer, Failed) else answer for answer in answers])
        return [answer for answer in answers if isinstance(answer, Completion)]

    def _make(self) -> Engine:
        given = self._checkpoint
        return Engine(
            given.model, given.limits, self._config, defaults=given.defaults, drafter=given.drafter, costs=self._book
        )

    def _run(self, engine: Engine, requests: Sequence[Request], asked: Sequence[Asked]) -> list[Completion | Failed]:
        """Run requests to their ends. Returns: what became of each, in order."""
        folds = {request.id: self._fold(one) for request, one in zip(requests, asked, strict=True)}
        ended: dict[str, Completion | Failed] = {}
        for request in requests:
            engine.submit(request)
        while not engine.is_idle:
            for outcome in _step(engine):
                match outcome:
                    case Told(id, event):
                        folds[id].push(event)
                    case Done(id, receipt):
                        ended[id] = folds[id].complete(_spent(receipt))
                    case Failed(id):
                        ended[id] = outcome
        return [ended[request.id] for request in requests]

    def _fold(self, asked: Asked) -> Fold:
        return Fold(asked, self._checkpoint, self._book.read() if asked.params.decoder == "verified" else None)


def _request(index: int, asked: Asked) -> Request:
    params = replace(asked.params, seed=asked.seed)
    return Request(
        id=str(index),
        prompt=tuple(asked.ids),
        params=params,
        pins={} if asked.blank is None else {0: asked.blank.pins},
        constraint=asked.constraint,
        stopper=asked.stop,
    )


def _step(engine: Engine) -> list[Outcome]:
    """Do one step; if it fails as a whole, so do the requests that have not ended."""
    try:
        return engine.step()
    except Exception as error:
        logging.getLogger(__name__).exception("a step failed; its prompts are given up")
        return engine.abandon("crashed", f"the engine failed: {type(error).__name__}: {error}")


def _spent(receipt: Receipt) -> Spent:
    return Spent(receipt.cached_tokens, receipt.queue_s, receipt.prefill_s, receipt.generation_s)
