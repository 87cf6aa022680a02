"""How much `verified` drafts: width and steps of a round, learned as a request goes, and the account that bounds
its loss; what a draft is lives in draft.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import ceil, exp, frexp, inf
from operator import mul
from typing import NamedTuple

MOST_STEPS = 4  # of one draft where the request names none
_LEAST_WIDTH = 16  # narrower canvases draft badly: lab keeps 2 tokens of 7, and 8 of 15
SLACK, _MOST_CREDIT, _TRICKLE = 3.0, 32.0, 0.03  # AR steps
_LONGEST_REST = 16  # AR steps that are taken before a plan is asked for again
ASKED_SLACK = 8.0  # of a request that fixed width or steps: a first draft of them should be within it
_BINS, _MEMORY = 16, 512


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What forwards of one request cost, an autoregressive step being 1; whoever runs them measures it.

    A denoising step of w positions costs denoise + denoise_token · w, an encode of w tokens
    1 + encode_token · (w − 1). The default was measured on lab: bfloat16, one CPU thread, 160 tokens of context.
    Raises: ValueError naming the number.
    """

    denoise: float = 1.05
    denoise_token: float = 0.025
    encode_token: float = 0.022

    def __post_init__(self) -> None:
        for name in ("denoise", "denoise_token", "encode_token"):
            if not 0 <= getattr(self, name) < inf:
                raise ValueError(f"{name} is {getattr(self, name)}; a cost is a finite number from 0 up")

    def round(self, width: int, steps: int, encoded: int | None = None) -> float:
        """K: AR steps that `steps` denoisings of `width` positions and one encode cost, of them all or of `encoded`."""
        rows = width if encoded is None else encoded
        return steps * (self.denoise + self.denoise_token * width) + 1 + self.encode_token * (rows - 1)


SMALL_MODEL = Costs()


def break_even(cost: float) -> float:
    """The acceptance α above which a long canvas pays: E[a] + 1 = 1 ÷ (1 − α) tokens for K = `cost` AR steps."""
    return max(0.0, 1 - 1 / cost)


class Acceptance(NamedTuple):
    """How often drafts of a given entropy were accepted: (decayed) counts a bin, a bin for every doubling of nats."""

    hits: tuple[float, ...]
    trials: tuple[float, ...]

    def rates(self) -> list[float]:
        """Acceptance by bin, the nearest that never rises with entropy (pooled neighbours, least squares)."""
        pools: list[_Pool] = []
        for hits, trials in zip(self.hits, self.trials, strict=True):
            pools.append(_Pool(hits, trials, 1))
            while len(pools) > 1 and pools[-2].rate < pools[-1].rate:
                last, before = pools.pop(), pools.pop()
                pools.append(_Pool(before.hits + last.hits, before.trials + last.trials, before.bins + last.bins))
        return [pool.rate for pool in pools for _ in range(pool.bins)]

    def expect(self, entropies: Sequence[float]) -> float:
        """Â = Σ_k Π_{j≤k} α(H_j): how many of these drafts are accepted on average."""
        rates = self.rates()
        reached: Iterator[float] = accumulate((rates[_bin(entropy)] for entropy in entropies), mul)
        return sum(reached)

    def record(self, entropies: Sequence[float], accepted: int) -> "Acceptance":
        """Count a round's drafts up to the first that was rejected; all counts are halved once they pass 512."""
        hits, trials = list(self.hits), list(self.trials)
        for index, entropy in enumerate(entropies[: accepted + 1]):
            trials[_bin(entropy)] += 1
            hits[_bin(entropy)] += index < accepted
        share = 0.5 if sum(trials) > _MEMORY else 1.0
        return Acceptance(tuple(share * hit for hit in hits), tuple(share * trial for trial in trials))


# Before anything was seen, as two trials a bin would have taught it: of e^H likely tokens one is the right one.
FIRST_GUESS = Acceptance(tuple(2 * exp(-(2.0 ** (bin_ - 11))) for bin_ in range(_BINS)), (2.0,) * _BINS)


class Plan(NamedTuple):
    """A round: positions of its canvas, the pinned one included, and denoising steps at most. (1, 0) is an AR step."""

    width: int
    steps: int


class Round(NamedTuple):
    """What a round did. expected: Â after each step; entropies: of the `drafted` tokens, in nats."""

    width: int
    expected: list[float]
    entropies: list[float]
    accepted: int
    emitted: int


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a request has learned. fixed_width, fixed_steps: what it asked for (None = adaptive).

    credit: AR steps that may yet be lost. A round runs only if it can be paid when all is rejected, so
    Σ costs ≤ (1 + 0.03) · AR's + what it began with, whatever the drafts are. Where a request fixes both it drafts
    every round.
    growth: Σ and number of the steps by which Â grew.
    """

    costs: Costs
    longest: int
    fixed_width: int | None = None
    fixed_steps: int | None = None
    width: int = _LEAST_WIDTH
    credit: float = SLACK
    acceptance: Acceptance = FIRST_GUESS
    growth: tuple[float, int] = (0.0, 0)

    @property
    def break_even(self) -> float:
        """The acceptance of each draft from which the least round that may be planned costs no more than ar; 1 = none.

        Rounds of more steps or positions need more.
        """
        least = self._fit(self.fixed_width or _LEAST_WIDTH, self.fixed_steps or 1, self.longest)
        cost = self.costs.round(least.width, least.steps)
        return break_even(cost) if cost < least.width else 1.0

    def weighing(self, costs: Costs) -> "Policy":
        """The same at other costs."""
        return self if costs is self.costs else replace(self, costs=costs)

    def plan(self, room: int) -> Plan:
        """The next round, at most `room` positions wide: as the request fixed it, or one that can be paid and may pay.

        It may pay if it emitted more than it costs were all accepted, and if the surest drafts break even.
        """
        if self.fixed_width and self.fixed_steps:
            return self._fit(self.fixed_width, self.fixed_steps, room)
        for width, least in self._list_paying(room):
            paid = [n for n in range(least, (self.fixed_steps or MOST_STEPS) + 1) if self._lacks(Plan(width, n)) <= 0]
            if paid:
                return Plan(width, paid[-1])
        return Plan(1, 0)

    def rest(self, room: int) -> int:
        """Where plan finds no round: AR steps until one can be paid that may pay, and at most 16.

        Deciding costs as much as a tenth of an AR step of a small model, so it is not done at every token.
        """
        lacking = min((self._lacks(plan) for plan in self._list_paying(room)), default=inf)
        return _LONGEST_REST if lacking >= _LONGEST_REST * _TRICKLE else max(1, ceil(lacking / _TRICKLE))

    def rested(self, steps: int) -> "Policy":
        """What is known after AR steps in which nothing was drafted."""
        return replace(self, credit=min(_MOST_CREDIT, self.credit + steps * _TRICKLE))

    def goes_on(self, plan: Plan, expected: Sequence[float]) -> bool:
        """Whether another step is likely to raise tokens a cost; expected: Â after each step so far."""
        steps, total, count = len(expected), *self.growth
        if self.fixed_steps or steps >= plan.steps:
            return steps < plan.steps
        usual = total / count if count else inf
        grown = usual if steps == 1 else (expected[-1] - expected[-2]) / 2
        now, then = (self.costs.round(plan.width, taken) for taken in (steps, steps + 1))
        return (min(plan.width - 1, expected[-1] + grown) + 1) / then > (expected[-1] + 1) / now

    def learn(self, done: Round) -> "Policy":
        """What is known after a round."""
        steps, drafted = len(done.expected), len(done.entropies)
        if not steps:
            return self.rested(1)
        cost = self.costs.round(done.width, steps, drafted + 1)
        total, count = self.growth
        return replace(
            self,
            credit=min(_MOST_CREDIT, self.credit + done.emitted - cost),
            width=self._next_width(done),
            acceptance=self.acceptance.record(done.entropies, done.accepted),
            growth=(total + done.expected[1] - done.expected[0], count + 1) if steps > 1 else self.growth,
        )

    def _list_paying(self, room: int) -> Iterator[Plan]:
        """Least rounds, of one step unless a request fixed it, that pay if their drafts are accepted."""
        surest, steps = self.acceptance.rates()[0], self.fixed_steps or 1
        for width in [self.fixed_width] if self.fixed_width else [self.width, _LEAST_WIDTH]:
            plan = self._fit(width, steps, room)
            cost = self.costs.round(plan.width, steps)
            if cost < plan.width and surest > break_even(cost):
                yield plan

    def _lacks(self, plan: Plan) -> float:
        """What the account lacks to pay a round of which all is rejected; not above 0 if it can."""
        return self.costs.round(*plan) - 1 - self.credit

    def _fit(self, width: int, steps: int, room: int) -> Plan:
        width = min(width, room, self.longest)
        return Plan(width, steps) if width > 1 else Plan(1, 0)

    def _next_width(self, done: Round) -> int:
        """Twice as wide after full acceptance, else the power of two that holds twice what was emitted."""
        if done.accepted == len(done.entropies):
            return min(2 * self.width, self.longest)
        wanted = 1 << (2 * (done.accepted + 1) - 1).bit_length()
        return min(max(wanted, _LEAST_WIDTH), self.longest)


class _Pool(NamedTuple):
    """Neighbouring bins that share one rate."""

    hits: float
    trials: float
    bins: int

    @property
    def rate(self) -> float:
        return self.hits / self.trials


def _bin(entropy: float) -> int:
    """Bin 0 below 2^-11 nats, then one for every doubling, the last from 8 nats on."""
    return min(_BINS - 1, max(0, frexp(max(entropy, 1e-9))[1] + 11))
