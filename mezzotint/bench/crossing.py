"""Up to how many requests at once a plan has diffusion ahead; measured crossovers are bench.crossover's."""

from typing import NamedTuple

from mezzotint.bench.plan import Decoder, Question, at, estimate

SEARCHED = 256  # requests at once


class Crossing(NamedTuple):
    """Where diffusion falls behind. at: requests at once, between whole numbers; None if nowhere up to searched_to.

    searched_to: as many as fit into memory, at most SEARCHED. behind_alone: it is behind for one request already.
    """

    at: float | None
    searched_to: int
    behind_alone: bool


def crossings(question: Question) -> dict[Decoder, Crossing]:
    """Where diffusion first falls behind ar and mtp as requests grow in number, by tokens/s of all together."""
    alone = estimate(at(question, 1))
    if "diffusion" not in alone:
        return {}
    most = min(SEARCHED, *(each.footprint.max_concurrency for each in alone.values()))
    rates = [{name: each.tokens_per_s for name, each in alone.items()}]
    rates += [{name: each.tokens_per_s for name, each in estimate(at(question, c)).items()} for c in range(2, most + 1)]
    return {name: _first([each["diffusion"] / each[name] for each in rates]) for name in alone if name in ("ar", "mtp")}


def _first(ratios: list[float]) -> Crossing:
    """The first crossing of 1, interpolated between its neighbours; ratios[0] is that of one request."""
    for place, ratio in enumerate(ratios):
        if ratio < 1:
            if place == 0:
                return Crossing(1.0, len(ratios), behind_alone=True)
            before = ratios[place - 1]
            return Crossing(place + (before - 1) / (before - ratio), len(ratios), behind_alone=False)
    return Crossing(None, len(ratios), behind_alone=False)
