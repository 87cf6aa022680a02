"""Averages that forget: of numbers by class, of a linear law, of ratios; what they mean lives in latency."""

from bisect import bisect_left, insort
from collections import deque
from itertools import combinations
from math import exp, log, sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

_MOST_CLASSES = 4096
_WINDOW = 256
_LEAST_RATIOS = 20  # below, a spread is assumed
_ASSUMED_DEVIATION = 0.5  # of log(actual ÷ predicted)


class Means:
    """Means by key, each shrunk to a prior that the caller names."""

    def __init__(self, half_life: float, *, weight: float = 4.0) -> None:
        """half_life: observations after which what went before counts half. weight: what a prior is worth."""
        self._keep, self._weight = 0.5 ** (1.0 / half_life), weight
        self._sums: dict[str, list[float]] = {}

    def note(self, key: str, value: float) -> None:
        """Take one observation."""
        count, total = self._sums.pop(key, (0.0, 0.0))
        self._sums[key] = [count * self._keep + 1.0, total * self._keep + value]
        while len(self._sums) > _MOST_CLASSES:
            del self._sums[next(iter(self._sums))]

    def mean(self, key: str, prior: float) -> float:
        """What is expected of a key."""
        count, total = self._sums.get(key, (0.0, 0.0))
        return (total + self._weight * prior) / (count + self._weight)

    def plain(self, key: str, otherwise: float) -> float:
        """The mean alone, or `otherwise` where nothing was observed."""
        count, total = self._sums.get(key, (0.0, 0.0))
        return total / count if count else otherwise

    def count(self, key: str) -> float:
        """Observations of a key, faded."""
        return self._sums.get(key, (0.0, 0.0))[0]

    def fade(self, share: float) -> None:
        """Let what was observed count only a share."""
        for sums in self._sums.values():
            sums[0] *= share
            sums[1] *= share


class Line:
    """y = c·x by least squares on sufficient statistics that fade, with c ≥ 0 unless it is signed; x has few entries.

    Statistics are kept by group and fade with what is observed of their own group, so that an hour at one load does not
    wash out what was learnt at another.
    """

    def __init__(self, size: int, half_life: float, *, is_signed: bool = False) -> None:
        """half_life: in weight of observations. is_signed: whether coefficients may be negative."""
        self._size, self._half_life, self._is_signed = size, half_life, is_signed
        self._groups: dict[int, NDArray[np.float64]] = {}
        self._solved: list[float] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was observed yet."""
        return not self._groups

    def note(self, x: tuple[float, ...], y: float, weight: float = 1.0, group: int = 0) -> None:
        """Take one observation; weight: how many it stands for."""
        row = np.array((*x, y))
        before = self._groups.get(group, 0.0) * np.float64(0.5 ** (weight / self._half_life))
        self._groups[group] = before + weight * np.outer(row, row)
        self._solved = None

    def predict(self, x: tuple[float, ...]) -> float:
        """What is expected at x; 0 before any observation."""
        if self._solved is None:
            self._solved = self._solve().tolist()
        return float(sum(c * value for c, value in zip(self._solved, x, strict=True)))

    def fade(self, share: float) -> None:
        """Let what was observed count only a share."""
        self._groups, self._solved = {group: share * kept for group, kept in self._groups.items()}, None

    def _solve(self) -> NDArray[np.float64]:
        """The best of all sets of coefficients that are not held at 0: exact, as there are few.

        A ridge of a millionth of each column's own weight decides where the observations do not.
        """
        size = self._size
        summed = sum(self._groups.values(), np.zeros((size + 1, size + 1)))
        xx, xy = summed[:size, :size], summed[:size, size]
        xx = xx + np.diag(1e-6 * np.diag(xx) + 1e-12)
        free = np.asarray(np.linalg.solve(xx, xy), dtype=np.float64)
        if self._is_signed or free.min() >= 0.0:
            return free
        best, least = np.zeros(size), 0.0
        for count in range(1, size):
            for kept in map(list, combinations(range(size), count)):
                found = np.linalg.solve(xx[np.ix_(kept, kept)], xy[kept])
                loss = -float(found @ xy[kept])  # of the squares, less y·y
                if loss < least and found.min() >= 0.0:
                    least, best = loss, np.zeros(size)
                    best[kept] = found
        return best


class Ratios:
    """The last 256 ratios of what was to what had been predicted."""

    def __init__(self) -> None:
        """None is known."""
        self._last: deque[float] = deque()
        self._sorted: list[float] = []
        self._told: tuple[float, float] | None = None

    def note(self, ratio: float) -> None:
        """Take one."""
        ratio = min(100.0, max(0.01, ratio))
        self._last.append(ratio)
        insort(self._sorted, ratio)
        if len(self._last) > _WINDOW:
            del self._sorted[bisect_left(self._sorted, self._last.popleft())]
        self._told = None

    @property
    def bias(self) -> float:
        """What a prediction is to be multiplied by: the mean ratio, the outermost twentieth left out.

        An expected time is a mean, which a median misses where times are skewed; yet one stall must not make it. While
        few ratios are known, a share of the median's logarithm.
        """
        return self._tell()[0]

    @property
    def deviation(self) -> float:
        """Standard deviation of the logarithm, the outermost twentieth left out; assumed while few are known."""
        return self._tell()[1]

    def quantile(self, share: float) -> float:
        """The ratio that `share` of answers do not exceed."""
        count = len(self._sorted)
        if count < _LEAST_RATIOS:
            return self.bias * exp(_ASSUMED_DEVIATION * _normal_quantile(share))
        below = int(share * (count - 1))
        low, high = self._sorted[below], self._sorted[min(count - 1, below + 1)]
        return low + (share * (count - 1) - below) * (high - low)

    def clear(self) -> None:
        """Forget all."""
        self._last.clear()
        self._sorted.clear()
        self._told = None

    def _tell(self) -> tuple[float, float]:
        if self._told is None:
            count = len(self._sorted)
            cut = count // 40
            if count >= _LEAST_RATIOS:
                kept = self._sorted[cut : count - cut]
                self._told = fmean(kept), max(0.02, _deviation([log(ratio) for ratio in kept]))
            else:
                middle = self._sorted[count // 2] if count else 1.0
                self._told = middle ** (count / _LEAST_RATIOS), _ASSUMED_DEVIATION
        return self._told


def _deviation(values: list[float]) -> float:
    mean = fmean(values)
    return sqrt(fmean([(value - mean) ** 2 for value in values]))


def _normal_quantile(share: float) -> float:
    """Within 0.1 of the normal's between 0.01 and 0.99. Source: the logistic distribution, scaled by 1.702."""
    share = min(0.999, max(0.001, share))
    return log(share / (1.0 - share)) / 1.702
