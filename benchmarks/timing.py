"""Calls timed in turn in one process, and what their times say of a ratio; knows no model."""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from mezzotint.evaluate.interval import Interval

_RESAMPLES = 2000
_TAILS = (0.025, 0.975)


class Times(NamedTuple):
    """Seconds of one thing, one value a round, and the least it can be said to take."""

    values: tuple[float, ...]
    minimum: float

    @property
    def median(self) -> float:
        """Median over the rounds, in seconds."""
        return median(self.values)


class Ratio(NamedTuple):
    """Median ÷ median with its 95 % interval, and minimum ÷ minimum."""

    value: float
    interval: Interval
    of_minima: float


def time_in_turn(
    calls: Mapping[str, Callable[[int], object]],
    rounds: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, tuple[float, ...]]:
    """Seconds of every call by name, one value a round. A call is handed the number of its round.

    The calls of a round run one after the other, and every second round in the opposite order, so that a
    machine that warms up or slows down meets all of them alike. One round of warm-up is made and not counted.
    Raises: ValueError for less than one round.
    """
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}; measure at least 1")
    for call in calls.values():
        call(0)
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        for name in list(calls)[:: 1 if turn % 2 == 0 else -1]:
            started = clock()
            calls[name](turn)
            seconds[name].append(clock() - started)
    return {name: tuple(values) for name, values in seconds.items()}


def as_measured(values: Sequence[float]) -> Times:
    """Times of a call as a whole."""
    return Times(tuple(values), min(values))


def one_more(long: Sequence[float], short: Sequence[float], extra: int) -> Times:
    """Times of one step, where `long` took `extra` steps more than `short` and all else was equal.

    Minima are taken of both before they are subtracted: the least of noisy differences would mean nothing.
    """
    values = tuple((more - less) / extra for more, less in zip(long, short, strict=True))
    return Times(values, (min(long) - min(short)) / extra)


def compare(over: Times, under: Times) -> Ratio:
    """How many times longer `over` takes than `under`; both come from the same rounds.

    Source: percentile bootstrap (Efron 1979) over rounds, each of which is one prompt; seeded. Contract 14.
    """
    n = len(over.values)
    picked = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))
    medians = [np.median(np.asarray(times.values)[picked], axis=1) for times in (over, under)]
    low, high = np.quantile(medians[0] / medians[1], _TAILS)
    return Ratio(over.median / under.median, Interval(float(low), float(high)), over.minimum / under.minimum)
