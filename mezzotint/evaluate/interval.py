"""Intervals of 95 % around what was measured: a rate by Wilson, a ratio or a mean of tasks by bootstrap; no scores."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

_Z = 1.959963984540054  # the normal quantile that leaves 2.5 % on either side
_TAILS = (0.025, 0.975)
_RESAMPLES = 2000


class Interval(NamedTuple):
    """Both ends belong to it."""

    low: float
    high: float


def wilson_interval(passed: int, n: int) -> Interval:
    """Where the true rate lies if `passed` of `n` independent trials passed.

    Returns: ends in [0, 1], the observed rate between them; it has a width even where none or all passed.
    Raises: ValueError unless 0 ≤ passed ≤ n and n ≥ 1.
    Source: Wilson 1927 (score interval, no continuity correction); contract 14.
    """
    if not (0 <= passed <= n and n >= 1):
        raise ValueError(f"{passed} of {n} passed; give 0 to n of at least 1 trial")
    rate, z2 = passed / n, _Z**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    reach = _Z / (1 + z2 / n) * sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    # At 0 and 1 an end is the rate itself, which rounding would miss.
    return Interval(max(0.0, min(rate, centre - reach)), min(1.0, max(rate, centre + reach)))


def ratio_interval(numerators: Sequence[int], denominators: Sequence[int]) -> Interval:
    """Where Σ numerators ÷ Σ denominators lies were other prompts of the same kind drawn.

    Each position is one prompt; prompts are drawn with replacement, seeded, so that equal data agree.
    Raises: ValueError if the two differ in length or a denominator is below 1.
    Source: percentile bootstrap (Efron 1979); contract 14.
    """
    if len(numerators) != len(denominators) or min(denominators, default=0) < 1:
        raise ValueError("give as many denominators as numerators, at least one, each at least 1")
    picked = np.random.default_rng(0).integers(len(numerators), size=(_RESAMPLES, len(numerators)))
    ratios = np.asarray(numerators)[picked].sum(1) / np.asarray(denominators)[picked].sum(1)
    low, high = np.quantile(ratios, _TAILS)
    return Interval(float(low), float(high))


def clustered_interval(shares: Sequence[float]) -> Interval:
    """Where the mean of the tasks' shares lies were other tasks of the same kind drawn.

    Answers to one task hang together, so that whole tasks are drawn, with replacement and seeded. Where all shares are
    0 or all are 1 a bootstrap sees no spread, and Wilson's interval of so many tasks stands instead.
    Raises: ValueError without tasks. Source: percentile bootstrap over clusters (Efron 1979; Miller 2024).
    """
    if not shares:
        raise ValueError("there is no task; give a share of at least one")
    if all(share in (0, 1) for share in shares) and len({*shares}) == 1:
        return wilson_interval(round(sum(shares)), len(shares))
    picked = np.random.default_rng(0).integers(len(shares), size=(_RESAMPLES, len(shares)))
    low, high = np.quantile(np.asarray(shares, dtype=float)[picked].mean(1), _TAILS)
    return Interval(float(low), float(high))
