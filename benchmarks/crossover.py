"""How two decoders' figures compare by concurrency, and where one overtakes the other; measures nothing.

All resamples pick the same prompts for both decoders at every concurrency, so what is hard for both cancels out.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, isinf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mezzotint.evaluate.interval import Interval

_RESAMPLES = 2000
_TAILS = (0.025, 0.975)

Floats = NDArray[np.float64]


class Answers(NamedTuple):
    """What one decoder gave at one concurrency, a value a prompt: [n], or [resamples, n]."""

    tokens: Floats
    accepted: Floats
    latency_s: Floats

    def pick(self, places: NDArray[np.int64]) -> "Answers":
        """The values of other prompts, places [resamples, n]."""
        return Answers(*(values[places] for values in self))


def tokens_a_second(answers: Answers) -> Floats:
    """Of one slot, by Little's law; all slots together give so many times more."""
    return np.asarray(answers.tokens.sum(-1) / answers.latency_s.sum(-1))


def accepted_a_second(answers: Answers) -> Floats:
    """Right answers of one slot."""
    return np.asarray(answers.accepted.sum(-1) / answers.latency_s.sum(-1))


def median_latency(answers: Answers) -> Floats:
    """Seconds from asking to the whole answer."""
    return np.asarray(np.median(answers.latency_s, -1))


FIGURES: dict[str, Callable[[Answers], Floats]] = {
    "tokens/s": tokens_a_second,
    "accepted/s": accepted_a_second,
    "p50": median_latency,
}


class Point(NamedTuple):
    """A ratio at one concurrency, and its interval of 95 %."""

    concurrency: int
    ratio: float
    interval: Interval


class Curve(NamedTuple):
    """One figure's ratio of two decoders by concurrency, and where it passes 1.

    crossing: the concurrency, interpolated in logarithms; None where the ratio passes 1 nowhere in range. An end of
    its interval is 0 or inf where that lies before the first point or behind the last.
    """

    points: list[Point]
    crossing: float | None
    crossing_interval: Interval


def ratio_curve(
    over: Mapping[int, Answers], under: Mapping[int, Answers], figure: Callable[[Answers], Floats]
) -> Curve:
    """The figure of `over` ÷ that of `under`, both by concurrency and over the same prompts.

    Source: percentile bootstrap (Efron 1979) over prompts, seeded; contract 14.
    """
    levels = sorted(over)
    n = len(over[levels[0]].tokens)
    places = np.random.default_rng(0).integers(n, size=(_RESAMPLES, n))
    ratios = [float(_ratio(figure(over[at]), figure(under[at]))) for at in levels]
    drawn = [_ratio(figure(over[at].pick(places)), figure(under[at].pick(places))) for at in levels]
    begins_ahead = ratios[0] > 1
    crossing = find_crossing(levels, ratios, begins_ahead=begins_ahead)
    crossings = [find_crossing(levels, row, begins_ahead=begins_ahead) for row in zip(*drawn, strict=True)]
    return Curve(
        points=[Point(*point) for point in zip(levels, ratios, map(_interval, drawn), strict=True)],
        crossing=None if isinf(crossing) else crossing,
        crossing_interval=_interval(np.array(crossings)),
    )


def find_crossing(levels: Sequence[int], ratios: Sequence[float], *, begins_ahead: bool) -> float:
    """The first concurrency at which ratios that begin above 1 (or not) do so no longer.

    Returns: it, interpolated linearly between log₂ of levels and log of ratios; 0 if that is before the first level,
    inf if it is behind the last.
    """
    changed = [(ratio > 1) != begins_ahead for ratio in ratios]
    if True not in changed:
        return inf
    if not (place := changed.index(True)):
        return 0.0
    with np.errstate(divide="ignore"):
        before, behind = np.log(ratios[place - 1 : place + 1])
    share = before / (before - behind) if np.isfinite(before - behind) else 0.5
    low, high = np.log2(levels[place - 1 : place + 1])
    return float(2 ** (low + share * (high - low)))


def _ratio(over: Floats, under: Floats) -> Floats:
    """Where neither has anything they are equal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(over / under, nan=1.0, posinf=inf)


def _interval(values: Floats) -> Interval:
    """Of values some of which may be infinite, so without interpolation."""
    low, high = np.quantile(values, _TAILS, method="inverted_cdf")
    return Interval(float(low), float(high))
