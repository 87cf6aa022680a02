"""The load where one arm stops winning: paired log ratios by load, an increasing fit, its zero; measures nothing.

Times of arms are paired by prompt. A replicate draws prompts with replacement, the same ones at all loads, so that what
is hard for both arms cancels out.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, isinf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from mezzotint.bench.interval import Floats, Interval, percentiles, resample


class Times(NamedTuple):
    """What an arm took at one load, a value a prompt: seconds until its end, and 1 if it was accepted, else 0.

    deadline_s: tasks that were not accepted count as that, or as what they took if it was more, wherever times are
    compared one by one.
    """

    seconds: Sequence[float]
    accepted: Sequence[float]
    deadline_s: float

    @property
    def censored(self) -> Floats:
        """Seconds [n], the deadline at least where nothing was accepted."""
        seconds = np.asarray(self.seconds, dtype=np.float64)
        return np.where(np.asarray(self.accepted) > 0, seconds, np.maximum(seconds, self.deadline_s))


class Ratio(NamedTuple):
    """A ratio of times at one load, below 1 where the first arm is faster, and its interval of 95 %."""

    load: float
    ratio: float
    interval: Interval


class Crossover(NamedTuple):
    """By load the ratio of two arms, and where it passes 1.

    load: interpolated in logarithms; 0 if the first arm wins nowhere in range, inf if it wins everywhere.
    """

    points: tuple[Ratio, ...]
    load: float
    interval: Interval

    @property
    def told(self) -> str:
        """The load in words; an end that more than 2.5 % of replicates do not have in range is open."""
        first, last = self.points[0].load, self.points[-1].load
        if isinf(self.load):
            return f"none in range: faster up to {last:g}"
        if not self.load:
            return f"none in range: slower from {first:g} on"
        low = f"{self.interval.low:.2g}" if self.interval.low else f"< {first:g}"
        high = f"> {last:g}" if isinf(self.interval.high) else f"{self.interval.high:.2g}"
        return f"{self.load:.2g} ({low} to {high})"


Places = NDArray[np.int64]


def median_ratio(first: Times, second: Times, places: Places | None = None) -> Floats:
    """Log of the median over prompts of paired ratios of time to accepted; of each row of places, where given."""
    logs = np.log(first.censored / second.censored)
    return np.asarray(np.median(logs if places is None else logs[places], axis=-1))


def expected_ratio(first: Times, second: Times, places: Places | None = None) -> Floats:
    """Log of the ratio of all time spent ÷ tasks accepted, failed ones among the time."""

    def expected(times: Times) -> Floats:
        seconds, accepted = np.asarray(times.seconds, dtype=np.float64), np.asarray(times.accepted, dtype=np.float64)
        if places is not None:
            seconds, accepted = seconds[places], accepted[places]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(seconds.sum(-1)) - np.log(accepted.sum(-1)))

    with np.errstate(invalid="ignore"):
        return np.nan_to_num(expected(first) - expected(second), nan=0.0, posinf=inf, neginf=-inf)


MEASURES: dict[str, Callable[..., Floats]] = {"median": median_ratio, "expected": expected_ratio}


def find_crossover(first: Mapping[float, Times], second: Mapping[float, Times], measure: str = "median") -> Crossover:
    """Where `first` stops being faster than `second`, both by load and over the same prompts.

    measure: `median` of paired ratios of time to accepted, or `expected` time spent an accepted task.
    Returns: the crossover, its interval by percentiles over replicates.
    Raises: ValueError where the two have other loads or other numbers of prompts, or no load is there.
    """
    loads = sorted(first)
    sizes = {len(side[load].seconds) for side in (first, second) for load in side}
    if not loads or loads != sorted(second) or len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"arms were measured at {loads} and {sorted(second)}; measure both at the same, same prompts")
    places, ratio = resample(sizes.pop()), MEASURES[measure]
    at = np.array([ratio(first[load], second[load]) for load in loads])
    drawn = np.array([ratio(first[load], second[load], places) for load in loads])
    zeros = np.array([find_zero(loads, row) for row in drawn.T])
    points = [
        Ratio(load, float(np.exp(value)), Interval(*np.exp(percentiles(row))))
        for load, value, row in zip(loads, at, drawn, strict=True)
    ]
    return Crossover(tuple(points), find_zero(loads, at), percentiles(zeros))


def find_zero(loads: Sequence[float], logs: Floats) -> float:
    """Where an increasing fit of logs by the logarithm of load passes 0.

    Returns: the load, interpolated linearly in its logarithm; 0 if the fit is above 0 from the first load on, inf if it
    is below at the last.
    Source: isotonic regression by pooling adjacent violators (Barlow et al. 1972).
    """
    fit = isotonic_regression(np.clip(logs, -50, 50)).x
    if fit[0] > 0:
        return 0.0
    if fit[-1] < 0:
        return inf
    place = int(np.argmax(fit >= 0))
    if not place:
        return float(loads[0])
    below, above = fit[place - 1], fit[place]
    low, high = np.log(loads[place - 1]), np.log(loads[place])
    return float(np.exp(low + (high - low) * -below / (above - below)))
