"""Which arms could take a request, and why the others could not; no preference among those that could."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from mezzotint.router.estimates import Estimate
from mezzotint.router.record import Ask, Candidate
from mezzotint.types import ArmTraits

_ARM, _DECODER = "arm:", "decoder:"  # needs that name who answers


class Option(NamedTuple):
    """An arm as one request sees it.

    load: requests at its engine, this one included. cached: tokens of this talk that its engine should still hold.
    seen_here: answers of it at about this load. seconds, late_s: of one attempt with its verification, expected and
    at the request's risk. late: why it would be too late, excluded: why it cannot be taken at all; else empty.
    """

    arm: ArmTraits
    estimate: Estimate
    load: int
    verify_s: float
    is_measured: bool
    seen_here: float = 0.0
    cached: int = 0
    late: str = ""
    excluded: str = ""

    @property
    def seconds(self) -> float:
        """Expected of one attempt, verification included."""
        return self.estimate.seconds + self.verify_s

    @property
    def late_s(self) -> float:
        """Exceeded with the request's risk only."""
        return self.estimate.late_s + self.verify_s

    @property
    def acceptance(self) -> float:
        """That it answers and is accepted."""
        return self.estimate.acceptance.mean * self.estimate.answering

    def candidate(self) -> Candidate:
        """As a decision records it."""
        return Candidate(
            self.arm.name, self.seconds, self.estimate.cost_usd, self.acceptance, self.load, self.excluded or self.late
        )


def exclude(ask: Ask, arm: ArmTraits, forbidden: tuple[str, ...]) -> str:
    """Say why an arm that is up cannot take a request, whatever it would take; empty if it can."""
    if arm.name in forbidden:
        return "the policy forbids it"
    for need in sorted(ask.needs):
        if need.startswith(_ARM) and need != _ARM + arm.name:
            return f"the request names {need.removeprefix(_ARM)}"
        if need.startswith(_DECODER) and need != f"{_DECODER}{arm.decoder}":
            return f"the request asks for {need.removeprefix(_DECODER)}"
    missing = [n for n in sorted(ask.needs - arm.abilities) if not n.startswith((_ARM, _DECODER))]
    if missing:
        return f"it has no {', no '.join(missing)}"
    if ask.prompt_tokens + ask.most_tokens > arm.context:
        return f"its context holds {arm.context} tokens, the request {ask.prompt_tokens} + {ask.most_tokens}"
    return ""


def judge(ask: Ask, option: Option) -> Option:
    """Mark an option that would cost more than the request may, or be late at the request's risk."""
    if ask.max_cost_usd is not None and option.estimate.cost_usd > ask.max_cost_usd:
        cost = f"${option.estimate.cost_usd:.6f} of at most ${ask.max_cost_usd:.6f}"
        return option._replace(excluded=f"it would cost {cost}")
    if option.is_measured and option.late_s > ask.deadline_s:
        chance = f"with more than {ask.risk:.0%} probability"
        return option._replace(late=f"it would miss the deadline of {ask.deadline_s:g} s {chance}")
    return option


def find_pin(ask: Ask, pins: Mapping[str, str]) -> str | None:
    """The arm that a policy pins a request to: by its model name first, then by the first pattern of its class."""
    name = "auto" if ask.goal == "balanced" else f"auto:{ask.goal}"
    if name in pins:
        return pins[name]
    return next((arm for pattern, arm in pins.items() if fnmatchcase(ask.kind, pattern)), None)
