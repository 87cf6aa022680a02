"""One request on its way through a fleet: arms tried one behind the other within one deadline and one budget."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mezzotint.router.attempt import Chunk, MissError, Task, Trial
from mezzotint.router.record import Attempt, Decision, Outcome
from mezzotint.router.told import Course, Tried, tell_metrics
from mezzotint.server.errors import ApiError
from mezzotint.types import Arm, Verdict, Verifier

_LOG = logging.getLogger(__name__)
_OURS = ("model", "stream", "stream_options", "x_route")  # of a body what is no arm's business


class Opened(NamedTuple):
    """An answer that may leave; see server.fleet."""

    headers: Mapping[str, str]
    chunks: AsyncGenerator[Chunk, None]


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be done. body: a chat in OpenAI's form. arrived_s: on the loop's clock. is_pinned: to one arm.

    stream: whether an answer may leave before it is whole. usage: whether a last chunk without choices tells the usage.
    """

    body: Mapping[str, Any]
    decision: Decision
    verifier: Verifier | None
    arrived_s: float
    is_pinned: bool
    stream: bool
    usage: bool


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Who is told. may_go_on: see Policy. note: takes every attempt, and returns what is done once it is safe.

    settle: takes the arm that was last, how the request ended, and the seconds that it took. kept: what is done once
    the decision is kept for good.
    """

    arms: Mapping[str, Arm]
    may_go_on: Callable[[str, float], bool]
    note: Callable[[Attempt], asyncio.Future[None]]
    settle: Callable[[str, Outcome, float], None]
    kept: asyncio.Future[None]


class Errand:
    """One request."""

    def __init__(self, order: Order, desk: Desk) -> None:
        self._order, self._desk, self._ask = order, desk, order.decision.ask
        self._clock = asyncio.get_running_loop().time
        self._until_s = order.arrived_s + self._ask.deadline_s
        self._tried: list[Tried] = []
        self._asked = 0  # arms, those that refused too
        self._spent_usd = self._apart_s = 0.0  # apart: seconds that were spent outside of trials

    async def run(self) -> Opened:
        """Try until an answer may leave. Raises: ApiError saying why none may."""
        last: MissError | None = None
        stop = ""
        free_s, course = self._order.arrived_s, self._course()
        for place, name in enumerate(course):
            if not self._desk.arms[name].is_up:
                continue
            if last is not None and (stop := self._why_stop(name)):
                break
            trial = Trial(self._desk.arms[name], self._task(name, has_next=bool(set(course[place + 1 :]) - {name})))
            self._asked += 1
            self._apart_s += trial.started_s - free_s
            try:
                await self._try(trial)
                await self._desk.kept
            except MissError as miss:
                if miss.outcome == "empty" and self._may_be_silent(course[place + 1 :]):
                    return Opened(self._headers(name), self._leave(trial, "empty"))
                await self._end(trial, miss.outcome, str(miss))
                last, free_s = miss, trial.started_s + trial.seconds
                if miss.is_last:
                    break
            except BaseException:
                await self._abandon(trial)
                raise
            else:
                return Opened(self._headers(name), self._leave(trial, self._passed))
        await self._desk.kept
        raise self._give_up(last, stop)

    @property
    def _passed(self) -> Outcome:
        return "unverified" if self._order.verifier is None else "accepted"

    def _may_be_silent(self, others: Sequence[str]) -> bool:
        """Whether an answer without a word leaves as it is: no other arm can be asked, and nobody says it is wrong."""
        return self._order.verifier is None and not any(
            self._desk.arms[name].is_up and not self._why_stop(name) for name in others
        )

    def _headers(self, name: str) -> dict[str, str]:
        return {
            "x-mezzotint-arm": name,
            "x-mezzotint-attempts": str(self._asked),
            "x-mezzotint-decision-id": self._order.decision.id,
        }

    def _course(self) -> Sequence[str]:
        """The plan, and behind it what else could answer, the quickest to an accepted answer first."""
        plan = self._order.decision.plan
        if self._order.is_pinned:
            return plan
        rest = [seen for seen in self._order.decision.candidates if not seen.excluded and seen.arm not in plan]
        return [*plan, *(seen.arm for seen in sorted(rest, key=lambda seen: seen.seconds / max(0.01, seen.acceptance)))]

    def _why_stop(self, name: str) -> str:
        """Why no further arm is tried; empty if one is."""
        expected = {seen.arm: seen.cost_usd for seen in self._order.decision.candidates}.get(name, 0.0)
        most_usd, most = self._ask.max_cost_usd, self._ask.max_attempts
        if self._asked >= most:
            return f"; of {most} attempts none is left"
        if self._clock() >= self._until_s:
            return "; no time is left for another attempt"
        if most_usd is not None and self._spent_usd + expected > most_usd:
            return f"; another attempt may cost more than is left of ${most_usd}"
        return ""

    def _task(self, name: str, *, has_next: bool) -> Task:
        body = {key: value for key, value in self._order.body.items() if key not in _OURS}
        if self._tried and body.get("seed") is not None:  # the same seed would bring the same answer
            body["seed"] = (body["seed"] + len(self._tried)) % 2**64
        may_leave = has_next and self._asked + 1 < self._ask.max_attempts
        most = self._ask.max_cost_usd
        rejected = [each.attempt.arm for each in self._tried if each.attempt.outcome == "rejected"]
        return Task(
            decision=self._order.decision.id,
            kind=self._ask.kind,
            index=len(self._tried),
            body=body,
            prompt_tokens=self._ask.prompt_tokens,
            until_s=self._until_s,
            budget_usd=None if most is None else most - self._spent_usd,
            after=rejected[-1] if rejected else None,
            may_go_on=(lambda nats: self._desk.may_go_on(name, nats)) if may_leave else None,
        )

    async def _try(self, trial: Trial) -> None:
        """Read until the answer may leave. Raises: MissError."""
        verifier = self._order.verifier
        await trial.hold(whole=verifier is not None or not self._order.stream)
        if verifier is None:
            return
        started_s, limit = self._clock(), asyncio.timeout_at(self._until_s)
        try:
            async with limit:
                verdict = await verifier.verify(self._order.body["messages"], trial.message)
        except Exception as error:
            if limit.expired():
                told = "the deadline has passed while an answer was verified"
                late = ApiError(504, told, kind="timeout", code="deadline")
                raise MissError("timeout", late, is_last=True) from None
            _LOG.exception("a verifier failed")
            verdict = Verdict(accepted=None, reason=f"its verifier failed: {error}")
        finally:
            trial.verify_s = self._clock() - started_s
            trial.end()
        if verdict.accepted is None:
            told = f"whether the answer of {trial.name} is accepted cannot be told: {verdict.reason}"
            raise MissError("unverified", ApiError(503, told, kind="server_error", code="not_verified"), is_last=True)
        if not verdict.accepted:
            told = f"the answer of {trial.name} was not accepted: {verdict.reason}"
            raise MissError("rejected", ApiError(422, told, code="not_accepted", param="x_route.accept"))

    async def _leave(self, trial: Trial, outcome: Outcome) -> AsyncGenerator[Chunk, None]:
        """The chunks of an answer that leaves. What fails now is told, and nothing else takes its place."""
        first_s, is_kept = self._clock(), trial.is_over
        try:
            if is_kept:
                await self._end(trial, outcome, "")
            for chunk in trial.held:
                yield chunk
            while (coming := await trial.next()) is not None:
                yield coming
            if not is_kept:
                is_kept = True
                await self._end(trial, outcome, "")
            for chunk in self._last(trial, first_s):
                yield chunk
        except MissError as miss:
            is_kept = True
            await self._end(trial, miss.outcome or "error", str(miss))
            self._desk.settle(trial.name, miss.outcome or "error", self._clock() - self._order.arrived_s)
            raise miss.error from miss
        finally:
            if not is_kept:
                await self._abandon(trial)

    def _last(self, trial: Trial, first_s: float) -> list[Chunk]:
        """The end of the answer, with what it took."""
        took_s = trial.started_s + trial.seconds - self._order.arrived_s
        self._desk.settle(trial.name, self._tried[-1].attempt.outcome, took_s)
        course = Course(
            decision=self._order.decision,
            decoder=trial.arm.traits.decoder,
            tried=tuple(self._tried),
            asked=self._asked,
            apart_s=self._apart_s,
            first_s=first_s - self._order.arrived_s,
            took_s=took_s,
        )
        metrics = tell_metrics(course, trial.metrics)
        if not self._order.usage:
            return [{**trial.last, "metrics": metrics}]
        head = {name: value for name, value in trial.last.items() if name != "choices"}
        return [trial.last, {**head, "choices": [], "usage": trial.usage, "metrics": metrics}]

    async def _end(self, trial: Trial, outcome: Outcome | None, reason: str) -> None:
        """A trial is over: its parts are let go, and what it was is kept for good; not of an arm that refused."""
        if outcome is None:
            await trial.close()
            return
        attempt = trial.record(outcome)
        self._spent_usd += attempt.cost_usd
        self._tried.append(Tried(attempt, reason))
        kept = self._desk.note(attempt)  # before anything is waited for: the client may leave meanwhile
        await trial.close()
        await kept

    async def _abandon(self, trial: Trial) -> None:
        """The client has left."""
        noted = trial.record("cancelled")
        self._desk.note(noted)  # not waited for: whoever cancels this may cancel it again
        self._desk.settle(trial.name, "cancelled", self._clock() - self._order.arrived_s)
        await trial.close()

    def _give_up(self, last: MissError | None, stop: str) -> ApiError:
        """What the client is told: why each arm has no answer for it, and why no other one is asked."""
        if last is None:
            told = f"none of {', '.join(dict.fromkeys(self._course()))} takes requests now; try again later"
            return ApiError(503, told, kind="server_error", code="unavailable", retry_after_s=1)
        arm = self._tried[-1].attempt.arm if self._tried else self._order.decision.plan[0]
        self._desk.settle(arm, last.outcome or "error", self._clock() - self._order.arrived_s)
        reasons, error = [each.reason for each in self._tried], last.error
        if last.outcome is None:
            reasons.append(error.message)
        return ApiError(
            error.status,
            "; ".join(reasons) + stop,
            kind=error.kind,
            code=error.code,
            param=error.param,
            retry_after_s=error.retry_after_s,
        )
