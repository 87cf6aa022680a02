"""Intervals of 95 % around what was measured, tasks as clusters; what is measured lives in figures and crossover."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

RESAMPLES = 2000
_CELLS = 4_000_000  # of a table at once
TAILS = (0.025, 0.975)

Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """Both ends belong to it; an infinite one is open."""

    low: float
    high: float


def wilson(passed: int, n: int) -> Interval:
    """Where a true rate lies if `passed` of `n` ≥ 1 independent trials passed. Source: Wilson 1927; contract 14."""
    found = binomtest(passed, n).proportion_ci(method="wilson")
    return Interval(float(found.low), float(found.high))


def resample(clusters: int) -> NDArray[np.int64]:
    """Places [RESAMPLES, clusters] of clusters drawn with replacement; for equal numbers always the same."""
    return np.random.default_rng(0).integers(clusters, size=(RESAMPLES, clusters))


def percentiles(drawn: Floats) -> Interval:
    """The middle 95 % of values, some of which may be infinite: so without interpolation."""
    low, high = np.quantile(drawn, TAILS, method="inverted_cdf")
    return Interval(float(low), float(high))


def quantile_interval(values: Sequence[float], clusters: Sequence[int], q: float) -> Interval:
    """Where quantile q of all values lies were other clusters drawn. clusters: of each value, by any number."""
    order = np.argsort(values)
    _, cluster = np.unique(np.asarray(clusters)[order], return_inverse=True)
    places = resample(int(cluster.max()) + 1)
    drawn = []
    for some in np.array_split(places, max(1, len(values) * RESAMPLES // _CELLS)):
        counts = np.array([np.bincount(row, minlength=places.shape[1]) for row in some])
        reached = counts[:, cluster].cumsum(1)
        drawn.append(np.asarray(values)[order][(reached >= q * reached[:, -1:]).argmax(1)])
    return percentiles(np.concatenate(drawn))


def ratio_interval(over: Sequence[float], under: Sequence[float]) -> Interval:
    """Where Σ over ÷ Σ under lies were other clusters drawn, a value of each a cluster; ∞ where nothing is under."""
    places = resample(len(over))
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.asarray(over, dtype=np.float64)[places].sum(1) / np.asarray(under, dtype=np.float64)[places].sum(1)
    return percentiles(np.nan_to_num(drawn, nan=0.0, posinf=np.inf))
