"""Which arm is worth learning about, if any: the one known least of those that do no harm; no plan is made here."""

from collections.abc import Sequence
from math import sqrt

from mezzotint.router.feasible import Option
from mezzotint.router.policy_file import Weights
from mezzotint.router.record import Ask

TOO_DEAR = 2.0  # an arm whose best plan is dearer by this factor is not explored


def find_least_known(ask: Ask, options: Sequence[Option], weights: Weights, chosen: str) -> str | None:
    """Find the arm whose expected time to an accepted answer is known least, the chosen one left out.

    Returns: none where the request forbids it, where a wrong guess could miss the deadline even if the chosen arm
    answers behind it, or where every other arm is known to be dearer by a factor of two.
    """
    if not ask.explore:
        return None
    [taken] = [option for option in options if option.arm.name == chosen]
    most = TOO_DEAR * _least_cost(taken, weights)
    harmless = [
        option
        for option in options
        if option is not taken
        and option.late_s + taken.late_s <= ask.deadline_s
        and (not option.is_measured or _least_cost(option, weights) <= most)
    ]
    return max(harmless, key=_doubt).arm.name if harmless else None


def _least_cost(option: Option, weights: Weights) -> float:
    """Of an accepted answer from this arm alone, were it accepted as often as may well be."""
    belief = option.estimate.acceptance
    rate = option.estimate.answering * min(1.0, belief.mean + sqrt(belief.variance))
    return (weights.time * option.seconds + weights.money * option.estimate.cost_usd) / max(1e-3, rate)


def _doubt(option: Option) -> tuple[bool, float]:
    """How little is known: the relative variance of time ÷ acceptance; an arm that is not measured comes first."""
    belief = option.estimate.acceptance
    of_time = option.estimate.deviation**2 / (1.0 + option.seen_here)
    return (not option.is_measured, of_time + belief.variance / max(1e-6, belief.mean**2))
