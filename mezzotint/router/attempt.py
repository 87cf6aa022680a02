"""One arm's try at one request: its chunks read, timed and paid for; which arms are tried, and why, errand knows."""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mezzotint.router.foreign import count_text
from mezzotint.router.record import Attempt, Outcome
from mezzotint.server.errors import ApiError, refuse
from mezzotint.types import Arm, ArmError

Chunk = dict[str, Any]
_OUTCOMES: dict[str, Outcome] = {"timeout": "timeout", "garbage": "malformed"}


class MissError(Exception):
    """A try without an answer that may leave.

    outcome: how it ended; None where the arm refused, so that nothing was tried. error: what the client is told if
    nothing follows. is_last: whether no other arm could mend it.
    """

    def __init__(self, outcome: Outcome | None, error: ApiError, *, is_last: bool = False) -> None:
        """All as the class describes."""
        super().__init__(error.message)
        self.outcome, self.error, self.is_last = outcome, error, is_last


@dataclass(frozen=True, kw_only=True)
class Task:
    """What an arm is asked. body: a chat in OpenAI's form. until_s: on the loop's clock. budget_usd: that is left.

    prompt_tokens: as counted here. may_go_on: asked once it is known how unsure a first canvas is, in nats.
    """

    decision: str
    kind: str
    index: int
    body: Mapping[str, Any]
    prompt_tokens: int
    until_s: float
    budget_usd: float | None
    after: str | None
    may_go_on: Callable[[float], bool] | None


class Trial:
    """A try as it grows. held: chunks that have not left. message: the answer so far. last: the chunk that ends it."""

    def __init__(self, arm: Arm, task: Task) -> None:
        self.arm, self._task = arm, task
        self._clock = asyncio.get_running_loop().time
        self.started_s = self._clock()
        self._ended_s: float | None = None
        self._stream = arm.stream(task.body, max(0.0, task.until_s - self.started_s))
        self.held: list[Chunk] = []
        self.message: dict[str, Any] = {"role": "assistant", "content": ""}
        self.last: Chunk = {}
        self.usage: dict[str, Any] = {}
        self.metrics: Mapping[str, Any] = {}
        self.verify_s = 0.0
        self._admitted_s: float | None = None
        self._in_flight, self._written = arm.in_flight + 1, 0
        self._entropy: float | None = None

    @property
    def name(self) -> str:
        """The arm's."""
        return self.arm.traits.name

    @property
    def is_over(self) -> bool:
        """Whether all of it has come."""
        return self._ended_s is not None

    @property
    def seconds(self) -> float:
        """From its start to its end, or until now."""
        return (self._clock() if self._ended_s is None else self._ended_s) - self.started_s

    @property
    def cost_usd(self) -> float:
        """Tokens at their prices, and a share of an engine's busy time among those it answers, by what is known now."""
        if self._admitted_s is None:
            return 0.0
        traits = self.arm.traits
        tokens = self._prompt_tokens * traits.input_price + self._output_tokens * traits.output_price
        busy_s = self._told("generation_time_ms") or self._clock() - self._admitted_s
        return tokens / 1e6 + busy_s * traits.busy_price / self._in_flight

    async def hold(self, *, whole: bool) -> None:
        """Read up to the first chunk that says something, or to the end. Raises: MissError."""
        while (chunk := await self.next()) is not None:
            self.held.append(chunk)
            if not whole and says_something(chunk):
                return
        if not says_something({"choices": [{"delta": self.message}]}):
            raise MissError("empty", _failed(f"{self.name} answered with nothing", "empty_answer"))

    async def next(self) -> Chunk | None:
        """The next chunk that a client is told before the last; None at the end. Raises: MissError."""
        while (chunk := await self._read()) is not None:
            if (told := chunk.get("x_diffusion")) is not None:
                self._note_entropy(told.pop("first_entropy", None))
                if told:
                    return chunk
            elif not chunk["choices"]:
                self.usage, self.metrics = chunk.get("usage") or {}, chunk.get("metrics") or {}
            elif chunk["choices"][0]["finish_reason"]:
                self.last = chunk
            else:
                self._gather(chunk["choices"][0]["delta"])
                self._check_budget()
                return chunk
        if not self.last:
            raise MissError("malformed", _failed(f"{self.name} gave an answer without an end", "arm_failed"))
        return None

    def record(self, outcome: Outcome) -> Attempt:
        """What it was; it is over with that, if it was not before."""
        if not self.is_over:
            self.end()
        work = self.metrics.get("diffusion")
        blocks, steps, forwards = (_count(work, name) for name in ("blocks", "denoise_steps", "forwards"))
        queue_s, prefill_s, busy_s = (self._told(f"{name}_time_ms") for name in ("queue", "prefill", "generation"))
        is_told = busy_s > 0 or not self.last
        return Attempt(
            decision=self._task.decision,
            index=self._task.index,
            arm=self.name,
            kind=self._task.kind,
            outcome=outcome,
            seconds=self.seconds,
            prompt_tokens=self._prompt_tokens,
            output_tokens=self._output_tokens,
            in_flight=self._in_flight,
            cached_tokens=(self.usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
            queue_s=queue_s,
            prefill_s=prefill_s,
            generation_s=max(0.0, busy_s - prefill_s) if is_told else self.seconds - self.verify_s,
            verify_s=self.verify_s,
            blocks=blocks,
            steps=steps,
            forwards=forwards,
            cost_usd=self.cost_usd,
            first_entropy=self._entropy,
            after=self._task.after,
        )

    async def close(self) -> None:
        """End it; what is still being made for it is cancelled."""
        if self._ended_s is None:
            self.end()
        with suppress(ArmError):
            await self._stream.aclose()

    def end(self) -> None:
        """It is over now, whatever was before."""
        self._ended_s = self._clock()

    async def _read(self) -> Chunk | None:
        if self._ended_s is not None:
            return None
        try:
            async with asyncio.timeout_at(self._task.until_s):
                chunk = await anext(self._stream)
        except StopAsyncIteration:
            self.end()
            return None
        except TimeoutError:
            error = ApiError(
                504, f"the deadline has passed while {self.name} answered", kind="timeout", code="deadline"
            )
            raise MissError("timeout", error, is_last=True) from None
        except ArmError as error:
            raise self._explain(error) from error
        if self._admitted_s is None:
            self._admitted_s, self._in_flight = self._clock(), max(1, self.arm.in_flight)
        return chunk

    def _explain(self, error: ArmError) -> MissError:
        message = str(error)
        match error.kind:
            case "refused":
                return MissError(None, refuse(ValueError(message), frozenset(self._task.body)))
            case "busy":
                wait_s = max(1, math.ceil(error.retry_after_s or 1.0))
                told = ApiError(429, message, kind="rate_limit_error", code="arms_busy", retry_after_s=wait_s)
                return MissError("error", told)
            case "timeout":
                return MissError("timeout", ApiError(504, message, kind="timeout", code="arm_timeout"))
            case kind:
                return MissError(_OUTCOMES.get(kind, "error"), _failed(message, "arm_failed"))

    def _note_entropy(self, nats: float | None) -> None:
        if nats is None:
            return
        self._entropy = nats
        if self._task.may_go_on is not None and not self._task.may_go_on(nats):
            raise MissError("cancelled", _failed(f"{self.name} was left: its first canvas was unsure", "arm_left"))

    def _check_budget(self) -> None:
        if self._task.budget_usd is not None and self.cost_usd > self._task.budget_usd:
            told = f"x_route.max_cost_usd is spent: {self.name} has cost ${self.cost_usd:.6f}; allow more"
            raise MissError(
                "error", ApiError(422, told, code="over_budget", param="x_route.max_cost_usd"), is_last=True
            )

    def _gather(self, delta: Mapping[str, Any]) -> None:
        for name in ("content", "reasoning_content"):
            if delta.get(name):
                self.message[name] = self.message.get(name, "") + delta[name]
                self._written += count_text(delta[name])
        for call in delta.get("tool_calls") or ():
            told = {name: value for name, value in call.items() if name != "index"}
            self.message.setdefault("tool_calls", []).append(told)
            self._written += count_text(call["function"]["arguments"])

    @property
    def _prompt_tokens(self) -> int:
        return int(self.usage.get("prompt_tokens", self._task.prompt_tokens))

    @property
    def _output_tokens(self) -> int:
        return int(self.usage.get("completion_tokens", self._written))

    def _told(self, name: str) -> float:
        """Seconds that the arm told, 0 where it did not."""
        told = self.metrics.get(name)
        return told / 1000 if isinstance(told, int | float) and 0 <= told < 1e9 else 0.0


def says_something(chunk: Mapping[str, Any]) -> bool:
    """Whether a reader would see it: text, thoughts, calls, or a draft that was asked for."""
    deltas = [choice["delta"] for choice in chunk["choices"]]
    told = ("content", "reasoning_content", "tool_calls")
    return "x_diffusion" in chunk or any(delta.get(name) for delta in deltas for name in told)


def _count(work: Any, name: str) -> int:
    """A count, or the sum of some, that an arm told of its work; 0 where it is none."""
    told = work.get(name) if isinstance(work, Mapping) else None
    each = told if isinstance(told, list) else [told]
    return sum(number for number in each if isinstance(number, int) and 0 <= number < 1 << 31)


def _failed(message: str, code: str) -> ApiError:
    return ApiError(502, message, kind="server_error", code=code)
