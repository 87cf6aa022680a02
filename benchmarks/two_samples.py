"""Whether two samples come from one distribution: rates and means compared, with what such a test can see."""

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist, fmean, variance
from typing import NamedTuple

from mezzotint.evaluate.interval import Interval, wilson_interval

_NORMAL = NormalDist()
_Z = _NORMAL.inv_cdf(0.975)


class Comparison(NamedTuple):
    """First minus second, its 95 % interval, and how often equal samples would lie as far apart, either way."""

    difference: float
    interval: Interval
    p_value: float


def compare_rates(passed: int, n: int, other_passed: int, other_n: int) -> Comparison:
    """Two rates of independent trials.

    Source: the pooled z test of two proportions; Newcombe 1998, method 10, for the interval, of Wilson's.
    Raises: ValueError as wilson_interval.
    """
    difference = passed / n - other_passed / other_n
    interval = difference_interval(passed, n, other_passed, other_n)
    pooled = (passed + other_passed) / (n + other_n)
    return Comparison(difference, interval, _p_value(difference, sqrt(pooled * (1 - pooled) * (1 / n + 1 / other_n))))


def compare_means(values: Sequence[float], others: Sequence[float]) -> Comparison:
    """Two means of independent values, two or more of each. Source: Welch's test, normal as for large samples."""
    difference = fmean(values) - fmean(others)
    error = sqrt(variance(values) / len(values) + variance(others) / len(others))
    return Comparison(
        difference, Interval(difference - _Z * error, difference + _Z * error), _p_value(difference, error)
    )


def difference_interval(passed: int, n: int, other_passed: int, other_n: int) -> Interval:
    """Where the difference of two true rates lies, 95 %; it has a width even where none or all passed."""
    first, second = wilson_interval(passed, n), wilson_interval(other_passed, other_n)
    rate, other = passed / n, other_passed / other_n
    below = sqrt((rate - first.low) ** 2 + (second.high - other) ** 2)
    above = sqrt((first.high - rate) ** 2 + (other - second.low) ** 2)
    return Interval(rate - other - below, rate - other + above)


def detectable_difference(rate: float, n: int, other_n: int, *, alpha: float, power: float) -> float:
    """How far apart two rates about `rate` may lie at most before a test at `alpha`, either way, tells so with `power`.

    A little less is enough: the variances of rates that differ are taken to be that of the rate between them.
    """
    quantiles = _NORMAL.inv_cdf(1 - alpha / 2) + _NORMAL.inv_cdf(power)
    return quantiles * sqrt(rate * (1 - rate) * (1 / n + 1 / other_n))


def _p_value(difference: float, error: float) -> float:
    if not difference:
        return 1.0
    return 2 * _NORMAL.cdf(-abs(difference) / error) if error else 0.0
