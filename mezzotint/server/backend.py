"""One checkpoint and the engine that answers from it, as routes use them: jobs in, events out; no HTTP."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from itertools import count
from threading import Lock
from typing import Literal, TypeVar

from mezzotint.engine.config import EngineConfig
from mezzotint.engine.costs import CostBook
from mezzotint.engine.engine import Engine
from mezzotint.engine.request import Done, Failed, Told, UnavailableError
from mezzotint.engine.service import Service
from mezzotint.llm.checkpoint import Checkpoint
from mezzotint.llm.choose import Choice, choose
from mezzotint.llm.entry import Asked, accept, make_request
from mezzotint.llm.events import Event
from mezzotint.llm.fold import Fold, spent
from mezzotint.llm.infill import Infilled, infill
from mezzotint.server.config import ServerConfig
from mezzotint.server.errors import ApiError, explain, refuse
from mezzotint.server.form import Write
from mezzotint.server.job import FIELDS, Job
from mezzotint.server.target import DECODERS
from mezzotint.server.tracing import Tracer, trace_answer
from mezzotint.text.document import Blank
from mezzotint.text.grammar import Grammar, Grammars
from mezzotint.text.prompt import Prompt
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Receipt

T = TypeVar("T")
_PACE = 0.1  # weight of the newest interval between two answers


class Backend:
    """A checkpoint under the name `name`, served by one engine on a thread of its own."""

    def __init__(self, name: str, checkpoint: Checkpoint, config: ServerConfig, engine: EngineConfig) -> None:
        """Allocate the engine's memory. Raises: ValueError for one too small, or a checkpoint without a tokenizer."""
        if checkpoint.tokenizer is None:
            raise ValueError(f"{checkpoint.path} has no tokenizer.json, and clients send text; add the file")
        self.name, self.checkpoint, self.config = name, checkpoint, config
        self.tokenizer: Tokenizer = checkpoint.tokenizer
        self._book = CostBook(checkpoint.model, checkpoint.limits, None)
        self._most = engine.max_rows + config.max_waiting
        made = Engine(
            checkpoint.model,
            checkpoint.limits,
            replace(engine, max_waiting=self._most),
            defaults=checkpoint.defaults,
            drafter=checkpoint.drafter,
            costs=self._book,
        )
        self._check = made.check
        self.service = Service(made)
        self._ids, self._lock = count(), Lock()
        self.open = 0  # requests that were taken and have not ended
        self.coming = 0  # those that an arm of a fleet is about to bring
        self.is_ready = False
        self.tracer: Tracer | None = None
        self.on_answer: Callable[[Receipt], None] = lambda receipt: None
        self._pace_s, self._ended_s = 0.0, time.monotonic()

    def start(self) -> None:
        """Begin to answer, once it is known what forwards cost, which decoder `verified` weighs."""
        self.service.start()
        if self.checkpoint.model.config.family == "diffusion_gemma":
            self.service.call(self._book.read).result()
        self.is_ready = True

    def stop(self) -> None:
        """Take no more, let what runs end, and stop."""
        self.is_ready = False
        self.service.drain()
        self.service.stop()

    @cached_property
    def _grammars(self) -> Grammars:
        return Grammars(self.tokenizer)

    @property
    def names(self) -> list[str]:
        """What clients may call the model: its name, alone and with each decoder that it knows."""
        has_canvas = self.checkpoint.model.config.family == "diffusion_gemma"
        lacking = {"mtp": self.checkpoint.drafter is None, "diffusion": not has_canvas, "verified": not has_canvas}
        return [self.name, *(f"{self.name}:{decoder}" for decoder in DECODERS if not lacking.get(decoder))]

    def encode(self, prompt: Prompt) -> list[int]:
        """Ids of a prompt. Raises: ApiError."""
        try:
            return self.checkpoint.encode(prompt)
        except ValueError as error:
            raise refuse(error, frozenset({"messages", "prompt", "tools"})) from error

    def arm(self, job: Job) -> str:
        """Who answers a job, as it can be named."""
        return f"{self.name}:{job.options.get('decoder', 'diffusion')}"

    async def accept(self, job: Job) -> Asked:
        """Read a job, before anything is answered. Raises: ApiError naming what is wrong with it, and the remedy."""
        return await asyncio.to_thread(self._accept, job)

    def compile(self, write: Write) -> Grammar:
        """A grammar for this model. Raises: ValueError for what cannot be honoured."""
        with self._lock:
            return write(self._grammars)

    def _accept(self, job: Job) -> Asked:
        limits, config = self.checkpoint.limits, self.config
        ids = self.encode(job.prompt)
        if config.max_prompt_tokens is not None and len(ids) > config.max_prompt_tokens:
            told = f"the prompt has {len(ids)} tokens, and this server takes {config.max_prompt_tokens}; shorten it"
            raise ApiError(400, told, code="context_length_exceeded")
        # A canvas may reach past the last token, and one under a grammar may begin anywhere.
        if job.n > config.max_choices:
            raise ApiError(400, f"n is {job.n}; ask for at most {config.max_choices} answers", param="n")
        room = limits.max_positions - len(ids) - limits.canvas_length
        most = max(1, min(config.default_max_tokens, room - room % limits.canvas_length))
        params = job.params(most if job.max_tokens is None else job.max_tokens)
        try:
            grammar = None if job.write is None else self.compile(job.write)
            asked = accept(job.prompt, params, self.checkpoint, grammar, job.stop)
            self._check(make_request("checked", asked, self.checkpoint))
        except ValueError as error:
            raise refuse(error, FIELDS | {"stop"}) from error
        return asked

    @property
    def has_room(self) -> bool:
        """Whether an answer more is taken now."""
        return self.open < self._most

    def check_room(self) -> None:
        """Raise ApiError 429 if not even one answer more is taken now."""
        if not self.has_room:
            raise self._busy()

    @contextmanager
    def admit(self, answers: int = 1) -> Iterator[None]:
        """Hold places for answers; all that answers, chooses or fills is done within.

        Raises: ApiError 429 if too many wait, 503 before the start and after the stop.
        """
        if not self.is_ready:
            told = "this server is starting, or about to stop; try again, or ask another one"
            raise ApiError(503, told, kind="server_error", code="unavailable", retry_after_s=1)
        if answers > self._most:
            told = f"{answers} answers are asked for at once, and this server holds {self._most}; ask for fewer"
            raise ApiError(400, told, code="too_many_answers")
        if self.open + answers > self._most:
            raise self._busy()
        self.open += answers
        try:
            yield
        finally:
            self.open -= answers

    async def answer(
        self, asked: Asked, *, deadline_s: float | None = None, priority: int = 0
    ) -> AsyncGenerator[Event, None]:
        """Answer what was accepted; closing the iterator, or cancelling its task, cancels the request.

        Yields: drafts and blocks, and at last a Completion.
        Raises: ApiError saying why it failed.
        """
        fold = Fold(asked, self.checkpoint, self._book.read() if asked.params.decoder == "verified" else None)
        until_s = deadline_s or self.config.deadline_s
        request = make_request(str(next(self._ids)), asked, self.checkpoint, deadline_s=until_s, priority=priority)
        try:
            with trace_answer(self.tracer, self.name, asked) as note:
                async with aclosing(self.service.stream(request)) as outcomes:
                    async for outcome in outcomes:
                        match outcome:
                            case Told(event=event):
                                for told in fold.push(event):
                                    yield told
                            case Done(receipt=paid):
                                completion = fold.complete(spent(paid))
                                self.on_answer(completion.receipt)
                                note(completion.receipt)
                                yield completion
                            case Failed():
                                raise explain(outcome)
        except UnavailableError as error:
            raise ApiError(503, str(error), kind="server_error", code="unavailable", retry_after_s=1) from error
        finally:
            self._note_end()

    async def choose(
        self, prompt: Prompt, choices: Sequence[str], decoder: Literal["diffusion", "ar"], seed: int | None
    ) -> list[Choice]:
        """One read between two steps of the engine; see LLM.choose. Raises: ApiError."""
        return await self._between(partial(choose, prompt, choices, decoder, seed, self.checkpoint))

    async def infill(
        self, document: Sequence[str | Blank], job: Job, lengths: Literal["surplus", "candidates"], *, raw: bool
    ) -> Infilled:
        """Fill blanks between two steps of the engine; see LLM.infill. Raises: ApiError."""
        params = job.params(self.config.default_max_tokens if job.max_tokens is None else job.max_tokens)
        raw = raw or self.checkpoint.prompts.template is None
        return await self._between(partial(infill, document, params, lengths, self.checkpoint, raw=raw))

    async def _between(self, function: Callable[[], T]) -> T:
        try:
            return await asyncio.wrap_future(self.service.call(function))
        except ValueError as error:
            raise refuse(error, FIELDS | {"choices", "document", "prompt"}) from error
        except UnavailableError as error:
            raise ApiError(503, str(error), kind="server_error", code="unavailable", retry_after_s=1) from error

    def _busy(self) -> ApiError:
        told = f"{self.open} requests are being answered or wait; try again later"
        wait = max(1, math.ceil(self.config.max_waiting * self._pace_s))
        return ApiError(429, told, kind="rate_limit_error", code="queue_full", retry_after_s=min(wait, 60))

    def _note_end(self) -> None:
        now = time.monotonic()
        self._pace_s += _PACE * (now - self._ended_s - self._pace_s)
        self._ended_s = now
