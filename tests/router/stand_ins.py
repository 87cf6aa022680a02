"""A policy that follows a list, a ledger that is a list, arms of a replay server; no test lives here."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mezzotint.router.config import RemoteArmConfig
from mezzotint.router.fleet import Fleet
from mezzotint.router.ledger import Ledger
from mezzotint.router.record import Ask, Attempt, Candidate, Decision
from mezzotint.router.remote import RemoteArm
from mezzotint.server.errors import ApiError
from mezzotint.types import Arm, ArmTraits, Verdict

HELLO: dict[str, Any] = {"model": "auto", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 64}


class Listed:
    """Plans what it is told, of the arms that are up."""

    def __init__(self, *plan: str, cost_usd: float = 0.0) -> None:
        self.plan, self.cost_usd = plan, cost_usd
        self.noted: list[Attempt] = []
        self.doubts: list[float] = []
        self.most_nats = float("inf")
        self.count = 0

    def decide(self, ask: Ask, in_flight: Mapping[str, int]) -> Decision:
        self.count += 1
        names = dict.fromkeys([*self.plan, *in_flight])
        seen = [
            Candidate(name, 0.1, self.cost_usd, 0.9, in_flight.get(name, 0), "" if name in in_flight else "it is down")
            for name in names
        ]
        return Decision(
            id=f"decision-{self.count}",
            ask=ask,
            plan=tuple(name for name in self.plan if name in in_flight),
            reason="expected_time",
            candidates=tuple(seen),
            propensity=1.0,
            seconds=0.1,
            cost_usd=self.cost_usd,
        )

    def note(self, attempt: Attempt) -> None:
        self.noted.append(attempt)

    def note_outcome(self, decision_id: str, accepted: bool) -> bool:
        return True

    def restore(self, attempts: Iterable[Attempt], *, is_same: bool = True) -> None:
        self.noted += attempts

    def explain(self, decision: Decision) -> str:
        return decision.reason

    def may_go_on(self, ask: Ask, arm: str, entropy_nats: float) -> bool:
        self.doubts.append(entropy_nats)
        return entropy_nats <= self.most_nats


class Says:
    """A verifier that takes answers which hold a word; None stands for one that cannot tell."""

    def __init__(self, word: str | None) -> None:
        self.word = word

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        if self.word is None:
            return Verdict(accepted=None, reason="nobody knows")
        return Verdict(accepted=self.word in answer["content"], reason=f"it does not say {self.word!r}")


class Canvas:
    """A local arm whose first canvas has a given entropy, and that writes some words."""

    def __init__(self, name: str, entropy: float, words: Sequence[str], busy_price: float = 0.0) -> None:
        self.traits = ArmTraits(name=name, engine=name, is_local=True, context=4096, busy_price=busy_price)
        self.entropy, self.words = entropy, words
        self.in_flight, self.is_up = 0, True
        self.closed = 0

    async def stream(self, body: Mapping[str, Any], timeout_s: float) -> AsyncGenerator[dict[str, Any], None]:
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": self.traits.name}

        def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
            return {**head, "choices": [choice]}

        try:
            yield chunk({"role": "assistant", "content": ""})
            yield {**chunk({}), "x_diffusion": {"first_entropy": self.entropy}}
            for word in self.words:
                await asyncio.sleep(0)
                yield chunk({"content": word})
            yield chunk({}, "stop")
            times = {"queue_time_ms": 1.0, "prefill_time_ms": 2.0, "generation_time_ms": 2_000.0}
            usage = {"prompt_tokens": 5, "completion_tokens": len(self.words), "total_tokens": 5 + len(self.words)}
            yield {**head, "choices": [], "usage": usage, "metrics": times}
        finally:
            self.closed += 1


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def remote(name: str, url: str, clock: Callable[[], float] = time.monotonic, **more: Any) -> RemoteArm:
    """An arm that is left alone behind two failures."""
    limits: dict[str, Any] = {"model": "m", "context": 4096, "pause_s": 1.0, "failures": 2}
    return RemoteArm(RemoteArmConfig(name=name, url=f"{url}/v1", **{**limits, **more}), Counter(), clock)


class Told(NamedTuple):
    """What a client got: the text of its answer, the last chunk, headers, and the error in the stream, if one came."""

    text: str
    last: dict[str, Any]
    headers: Mapping[str, str]
    error: ApiError | None = None

    @property
    def route(self) -> dict[str, Any]:
        route: dict[str, Any] = self.last["metrics"]["route"]
        return route


@asynccontextmanager
async def fleet_of(policy: Any, *arms: Arm, path: Path = Path(":memory:")) -> AsyncIterator[Fleet]:
    """A fleet that runs until the block ends; verifiers take answers that hold accept's `value`."""
    fleet = Fleet(
        arms,
        policy,
        Ledger(path, "test"),
        count_tokens=lambda body: len(str(body["messages"])),
        make_verifier=lambda accept: Says(accept["value"]),
    )
    await fleet.start()
    try:
        yield fleet
    finally:
        await fleet.stop()


async def ask(fleet: Fleet, *, stream: bool = True, usage: bool = True, **more: Any) -> Told:
    """One request, read to its end."""
    opened = await fleet.open({**HELLO, **more}, stream=stream, usage=usage)
    text, last = "", {}
    try:
        async for chunk in opened.chunks:
            last = chunk
            text += "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
    except ApiError as error:
        return Told(text, last, opened.headers, error)
    return Told(text, last, opened.headers)
