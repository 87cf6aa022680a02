"""Which arms a request is put to, in which order, and why; estimates, plans and the arms themselves live elsewhere."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from mezzotint.router.choosing import Chooser
from mezzotint.router.estimates import Estimates
from mezzotint.router.explain import explain
from mezzotint.router.feasible import Option, exclude, judge
from mezzotint.router.first_canvas import FirstCanvas
from mezzotint.router.policy_file import PolicyConfig
from mezzotint.router.record import Ask, Attempt, Decision
from mezzotint.types import ArmTraits

_MOST_SESSIONS = 8192
_MOST_OPEN = 8192
_UNMEASURED = 1.5  # times the slowest arm that is measured
_Key = TypeVar("_Key")
_Entry = TypeVar("_Entry")


class Policy:
    """Decides, and learns from what came of it. It does no I/O, and what it draws depends on the seed alone."""

    def __init__(
        self, config: PolicyConfig, arms: Sequence[ArmTraits], *, seed: int, clock: Callable[[], float]
    ) -> None:
        """clock: seconds since the epoch; ids of decisions are made from it and the seed.

        Raises: ValueError if there is no arm, two have one name, or the policy names one that is not there.
        """
        self._arms = {arm.name: arm for arm in arms}
        if len(self._arms) < len(arms) or not arms:
            raise ValueError(f"arms are [{', '.join(arm.name for arm in arms)}]; give one or more, each its own name")
        config.check_arms(frozenset(self._arms))
        self._config, self._clock, self._random = config, clock, Random(seed)
        self._estimates, self._gate = Estimates(arms, clock), FirstCanvas()
        self._chooser = Chooser(config, self._estimates, seed)
        self._cached: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._open: OrderedDict[str, Ask] = OrderedDict()
        self._in_flight: Mapping[str, int] = {}

    def decide(self, ask: Ask, in_flight: Mapping[str, int]) -> Decision:
        """Choose a plan; in_flight: requests at the engine of each arm that is up, without this one.

        Returns: a decision, whose plan is empty (reason `none`) where no arm can take the request.
        """
        self._in_flight = dict(in_flight)
        options = self._options(ask, in_flight)
        feasible = [option for option in options if not option.excluded and not option.late]
        if not feasible:  # better late than not at all; the candidate still says that it would be
            late = [option for option in options if not option.excluded]
            feasible = [min(late, key=lambda option: option.late_s)] if late else []
        names = {option.arm.name for option in feasible}
        made = self._chooser.choose(ask, feasible, lambda: self._without_cache(ask, names))
        decision = Decision(
            id=f"{int(self._clock() * 1e6) & (1 << 56) - 1:014x}{self._random.getrandbits(40):010x}",
            ask=ask,
            plan=made.plan,
            reason=made.reason,
            candidates=tuple(option.candidate() for option in options),
            propensity=made.propensity,
            seconds=made.seconds,
            cost_usd=made.cost_usd,
        )
        _remember(self._open, decision.id, ask, _MOST_OPEN)
        return decision

    def note(self, attempt: Attempt) -> None:
        """Learn from what an arm did."""
        changed = self._estimates.note(attempt)
        self._gate.note(attempt)
        if changed:
            self._chooser.incumbents.unseat(attempt.arm)
        ask, arm = self._open.get(attempt.decision), self._arms.get(attempt.arm)
        if ask is not None and ask.session is not None and arm is not None and attempt.output_tokens:
            tokens = attempt.prompt_tokens + attempt.output_tokens
            _remember(self._cached, (ask.session, arm.engine), tokens, _MOST_SESSIONS)

    def note_outcome(self, decision_id: str, accepted: bool) -> bool:
        """Let a late verdict on a decision's answer overrule what was believed of it.

        Returns: whether the decision is remembered; nothing is learnt from another.
        """
        return self._estimates.note_outcome(decision_id, accepted)

    def restore(self, attempts: Iterable[Attempt], *, is_same: bool = True) -> None:
        """Learn from attempts of the past, the oldest first.

        is_same: whether they were made by this configuration; what another one did counts only a tenth.
        """
        for attempt in attempts:
            self.note(attempt)
        if not is_same:
            self._estimates.distrust()
            for name in self._arms:
                self._chooser.incumbents.unseat(name)

    def may_go_on(self, ask: Ask, arm: str, entropy_nats: float) -> bool:
        """Whether an arm's canvas, whose entropy after its first step is known, is worth finishing.

        entropy_nats: the mean over positions. Returns: false where leaving it for another arm is expected to be faster.
        """
        options = self._options(ask, self._in_flight)
        others = [
            option.seconds / max(0.05, option.acceptance)
            for option in options
            if option.arm.name != arm and option.is_measured and not option.excluded
        ]
        [own] = [option for option in options if option.arm.name == arm]
        if not others or not own.is_measured or (ask.explore and self._random.random() < self._config.exploration):
            return True
        return self._gate.may_go_on(arm, entropy_nats, own.seconds, min(others))

    def explain(self, decision: Decision) -> str:
        """Say in a few lines what was decided, and why."""
        return explain(decision)

    def _without_cache(self, ask: Ask, names: set[str]) -> list[Option]:
        options = self._options(ask, self._in_flight, is_sticky=False)
        return [option for option in options if option.arm.name in names]

    def _options(self, ask: Ask, in_flight: Mapping[str, int], *, is_sticky: bool = True) -> list[Option]:
        loads: dict[str, int] = {}
        for name, count in in_flight.items():
            engine = self._arms[name].engine
            loads[engine] = max(loads.get(engine, 1), count + 1)
        verify_s = self._estimates.verify_s(ask)
        options = []
        for arm in self._arms.values():
            load = loads.get(arm.engine, 1)
            cached = self._cached.get((ask.session, arm.engine)) if ask.session and is_sticky else None
            option = Option(
                arm=arm,
                estimate=self._estimates.estimate(ask, arm, cached, load),
                load=load,
                verify_s=verify_s,
                is_measured=self._estimates.attempts(arm.name) >= self._config.least_measured,
                seen_here=self._estimates.seen(arm.name, load),
                cached=min(cached or 0, ask.prompt_tokens),
                excluded=exclude(ask, arm, self._config.forbidden) if arm.name in in_flight else "it is down",
            )
            options.append(option if option.excluded else judge(ask, option))
        return _assume_unmeasured(options)


def _assume_unmeasured(options: list[Option]) -> list[Option]:
    """Take an arm that is not measured to be slower than any that is, so that it is a last resort until it is."""
    slowest = max((option.estimate.seconds for option in options if option.is_measured), default=1.0)
    return [
        option
        if option.is_measured
        else option._replace(
            estimate=replace(option.estimate, seconds=_UNMEASURED * slowest, late_s=2 * _UNMEASURED * slowest)
        )
        for option in options
    ]


def _remember(entries: OrderedDict[_Key, _Entry], key: _Key, entry: _Entry, most: int) -> None:
    entries.pop(key, None)
    entries[key] = entry
    if len(entries) > most:
        entries.popitem(last=False)
