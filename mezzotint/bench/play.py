"""One task played to its end: what it waits for, the way chosen, an answer generated, judged, tried again."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from mezzotint.bench.arm import Arm
from mezzotint.bench.record import Outcome, Parts, Played, Request
from mezzotint.bench.stream import Said, read_stream
from mezzotint.bench.task import Hop, Task
from mezzotint.bench.wire import Clock, Raw, ask, tell_outcome

_MOST_TRIES, _MOST_HOPS = 64, 4096  # so that no two requests of a run have the same seed


@dataclass(frozen=True, kw_only=True)
class PlayConfig:
    """How a task is played. deadline_s: from its arrival; what is not accepted by then is given up.

    max_attempts: at one hop. backoff_s: before trying again what failed as a request, doubled each time. max_tokens: of
    an answer, where its hop names none. tells_verdicts: whether a router is told what became of its answers.
    Raises: ValueError naming field, value and limit.
    """

    deadline_s: float = 60.0
    max_attempts: int = 2
    backoff_s: float = 0.1
    max_tokens: int = 256
    tells_verdicts: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.deadline_s < float("inf"):
            raise ValueError(f"deadline is {self.deadline_s:g} s; it must be positive and finite")
        if not 1 <= self.max_attempts <= _MOST_TRIES:
            raise ValueError(f"max_attempts is {self.max_attempts}; give 1 to {_MOST_TRIES}")
        if not 0 <= self.backoff_s < float("inf"):
            raise ValueError(f"backoff is {self.backoff_s:g} s; it must be 0 or more")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens is {self.max_tokens}; give at least 1")


@dataclass(frozen=True)
class Lane:
    """What every task of a point shares: who answers, by which clock, under which rules."""

    http: httpx2.AsyncClient
    arm: Arm
    config: PlayConfig
    clock: Clock
    _telling: set[asyncio.Task[None]] = field(default_factory=set)

    def tell(self, decision: str, *, is_accepted: bool, reason: str) -> None:
        """Say to the router what became of an answer; no task waits for that."""
        verdict = "accepted" if is_accepted else "rejected"
        body = {"decision_id": decision, "verdict": verdict, "reason": reason or None}
        task = asyncio.create_task(tell_outcome(self.http, body))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def settle(self) -> None:
        """Wait until the router was told everything. Raises: ValueError if it would not hear it."""
        await asyncio.gather(*self._telling)


@dataclass
class _Course:
    """A task on its way. at_s: up to when its time is accounted for, by the parts."""

    number: int
    task: Task
    due_s: float
    ends_s: float
    requests: list[Request] = field(default_factory=list)
    accepted_hops: list[float] = field(default_factory=list)
    parts: Parts = field(default_factory=Parts)

    def spend(self, **seconds: float) -> None:
        """Add to parts."""
        added = {name: getattr(self.parts, name) + more for name, more in seconds.items()}
        self.parts = self.parts._replace(**added)


async def play(lane: Lane, number: int, task: Task, due_s: float) -> Played:
    """Play a task whose arrival was scheduled at due_s, by the lane's clock. Returns: what came of it."""
    course = _Course(number=number, task=task, due_s=due_s, ends_s=due_s + lane.config.deadline_s)
    begun_s = lane.clock()
    course.spend(dispatch=begun_s - due_s)
    outcome: Outcome = "timeout"
    if await _wait(lane, course, "retrieval", task.retrieval_s):
        for place, hop in enumerate(task.hops):
            outcome = await _play_hop(lane, course, place, hop)
            if outcome != "accepted":
                break
    return Played(
        task=number,
        id=task.id,
        family=task.family,
        outcome=outcome,
        due_s=due_s,
        ended_s=lane.clock(),
        hops=len(task.hops),
        accepted_hops=tuple(course.accepted_hops),
        parts=course.parts,
        requests=tuple(course.requests),
    )


async def _play_hop(lane: Lane, course: _Course, place: int, hop: Hop) -> Outcome:
    due_s = lane.clock()
    if not await _wait(lane, course, "tool_wait", hop.wait_s):
        return "timeout"
    failures = 0
    for attempt in range(lane.config.max_attempts):
        request, retry_after_s = await _attempt(lane, course, (place, attempt), hop, due_s)
        course.requests.append(request)
        if request.outcome == "accepted":
            course.accepted_hops.append(lane.clock() - due_s)
        if request.outcome in ("accepted", "timeout", "unverified"):
            return request.outcome
        if request.outcome == "error" and attempt + 1 < lane.config.max_attempts:
            pause_s = lane.config.backoff_s * 2**failures if retry_after_s is None else retry_after_s
            failures += 1
            if not await _wait(lane, course, "backoff", pause_s):
                return "timeout"
    return request.outcome


async def _wait(lane: Lane, course: _Course, part: str, seconds: float) -> bool:
    """Wait, and account for it. Returns: whether the deadline is still ahead."""
    if seconds <= 0:
        return True
    begun_s = lane.clock()
    await asyncio.sleep(max(0.0, min(seconds, course.ends_s - begun_s)))
    now = lane.clock()
    course.spend(**{part: now - begun_s})
    return now < course.ends_s


async def _attempt(
    lane: Lane, course: _Course, where: tuple[int, int], hop: Hop, due_s: float
) -> tuple[Request, float | None]:
    """Ask once and judge the answer. Returns: the record, and seconds that the server said to wait."""
    place, attempt = where
    way = lane.arm.way(hop.kind, attempt)
    seed = (course.task.seed * _MOST_HOPS + place) * _MOST_TRIES + attempt
    body = {**_body(hop, lane.config), **way.body, "seed": seed}
    raw = await ask(lane.http, body, lane.clock, course.ends_s - lane.clock())
    said = Said(failure=raw.failure, detail=raw.detail) if raw.failure else read_stream(raw.pieces)
    outcome, reason = await _judge(hop, said)
    judged_s = lane.clock()
    request = Request(
        hop=place,
        attempt=attempt,
        kind=hop.kind,
        model=way.model,
        seed=seed,
        outcome=outcome,
        category=said.failure,
        reason=reason,
        due_s=due_s,
        sent_s=raw.sent_s,
        arrivals=tuple(said.arrivals),
        ended_s=raw.ended_s,
        judged_s=judged_s,
        finish_reason=said.finish_reason,
        text=str(said.message["content"] or ""),
        lengths=tuple(said.lengths),
        **_read_costs(said),
    )
    decision = (said.metrics.get("route") or {}).get("decision_id")
    if lane.config.tells_verdicts and decision and outcome != "unverified":
        lane.tell(decision, is_accepted=outcome == "accepted", reason=reason)
    course.spend(**_shares(request, raw, lane.clock()))
    return request, raw.retry_after_s


def _body(hop: Hop, config: PlayConfig) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": list(hop.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": hop.max_tokens or config.max_tokens,
        **hop.extra,
    }
    return {**body, "tools": list(hop.tools)} if hop.tools else body


async def _judge(hop: Hop, said: Said) -> tuple[Outcome, str]:
    if said.failure == "timeout":
        return "timeout", "the task's deadline passed"
    if said.failure:
        return "error", said.detail
    accepted, reason = await hop.verifier.verify(hop.messages, said.message)
    if accepted is None:
        return "unverified", reason
    if accepted:
        return "accepted", ""
    if not (said.message["content"] or "").strip() and "tool_calls" not in said.message:
        return "empty", reason
    return ("malformed" if "faults" in said.message else "rejected"), reason


def _read_costs(said: Said) -> dict[str, Any]:
    """What usage and metrics tell, as fields of a record; what they do not tell is left to its default."""
    work: Mapping[str, Any] = said.metrics.get("diffusion") or {}
    route: Mapping[str, Any] = said.metrics.get("route") or {}
    told = {
        "prompt_tokens": said.usage.get("prompt_tokens"),
        "output_tokens": said.usage.get("completion_tokens"),
        "cached_tokens": (said.usage.get("prompt_tokens_details") or {}).get("cached_tokens"),
        "queue_s": _seconds(said.metrics.get("queue_time_ms")),
        "generation_s": _seconds(said.metrics.get("generation_time_ms")),
        "semantics": work.get("semantics") or _tell_semantics(said),
        "canvas": work.get("canvas"),
        "steps": tuple(work.get("denoise_steps") or ()) or None,
        "step_budget": work.get("step_budget"),
        "budget_hits": work.get("budget_hits"),
        "forwards": work.get("forwards"),
        "sampler": work.get("sampler"),
        "entropy_bound": work.get("entropy_bound"),
        "routed": (str(route["arm"]), int(route.get("attempts", 1))) if route.get("arm") else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _tell_semantics(said: Said) -> str:
    """Of a server that does not say: token by token if there were as many chunks as tokens, but for an end of turn."""
    tokens = said.usage.get("completion_tokens")
    return "token" if tokens and len(said.arrivals) >= tokens - 1 else "chunk"


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _shares(request: Request, raw: Raw, now: float) -> dict[str, float]:
    """Where the time of one request went. What a server tells beyond the request's own time stays, as a residual."""
    judging = now - raw.ended_s
    if request.generation_s is None:
        return {"generation": request.seconds, "verification": judging}
    queue = request.queue_s or 0.0
    transport = max(0.0, request.seconds - queue - request.generation_s)
    return {"queue": queue, "generation": request.generation_s, "transport": transport, "verification": judging}
