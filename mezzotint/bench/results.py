"""What a run comes to so far: figures of each arm at each load, crossovers, frontier; how it is shown is elsewhere."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from mezzotint.bench.arrival import Load
from mezzotint.bench.config import BenchConfig
from mezzotint.bench.crossover import MEASURES, Crossover, Times, find_crossover
from mezzotint.bench.figures import Figure
from mezzotint.bench.fingerprint import Fingerprint, distance, take_fingerprint
from mezzotint.bench.pareto import Spot, find_dominated
from mezzotint.bench.point import Done
from mezzotint.bench.record import Request
from mezzotint.bench.store import Point
from mezzotint.bench.tally import Group, count_errors, count_outcomes, mean_parts, tally

_UNEQUAL = 0.05  # share of prompt tokens


class Comparison(NamedTuple):
    """Two arms over all loads that both were measured at, by one measure."""

    first: str
    second: str
    measure: str
    crossover: Crossover


class Dominated(NamedTuple):
    """An arm that another beats, at one load."""

    load: str
    arm: str
    by: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One arm at one load, of which all parts are finished.

    outcomes, errors, routed (by the arm that a router named): counts. parts: mean seconds a task.
    """

    arm: str
    load: Load
    n: int
    figures: Mapping[str, Figure]
    outcomes: Mapping[str, int]
    errors: Mapping[str, int]
    parts: Mapping[str, float]
    fingerprints: Mapping[str, Fingerprint]
    routed: Mapping[str, int]

    def apart(self, name: str, others: Sequence["Row"]) -> float | None:
        """How far a fingerprint is from that of the same arm at its first load among others; None for that itself."""
        first = next((row for row in others if row.arm == self.arm and name in row.fingerprints), self)
        return None if first.load == self.load else distance(self.fingerprints[name], first.fingerprints[name])


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that is finished. missing: parts of the run that are not."""

    rows: tuple[Row, ...]
    comparisons: tuple[Comparison, ...]
    dominated: tuple[Dominated, ...]
    missing: int


def compute(config: BenchConfig, points: Sequence[Point]) -> Results:
    """Add a run's points up. Arms and loads whose parts are not all finished are left out."""
    groups = _groups(config, points)
    rows = [_row(group, config) for group in groups]
    return Results(
        rows=tuple(rows),
        comparisons=tuple(_compare(config, groups)),
        dominated=tuple(
            Dominated(str(load), arm, by)
            for load in config.loads
            for arm, by in find_dominated(spots([row for row in rows if row.load == load])).items()
        ),
        missing=len(config.arms) * len(config.loads) * config.rounds - len(points),
    )


def find_warnings(results: Results) -> list[str]:
    """What a reader should know before figures are compared: busy clients, parts that do not add up, unequal caches."""
    found = [
        f"{row.arm}, {row.load}: {figure.note} ({name} is {figure.value:.1%})"
        for row in results.rows
        for name, figure in row.figures.items()
        if name in ("dispatch_share", "residual_share") and figure.note
    ]
    for load in dict.fromkeys(row.load for row in results.rows):
        cached = [row.figures["cached_share"].value for row in results.rows if row.load == load and _tells_cache(row)]
        if cached and max(cached) - min(cached) > _UNEQUAL:
            found.append(f"{load}: a prefix cache spared {min(cached):.0%} to {max(cached):.0%} of prompts, by the arm")
    return found


def spots(rows: Sequence[Row]) -> list[Spot]:
    """Acceptance at the first try against time to the whole answer, of each arm that ever answered."""
    return [
        Spot(row.arm, row.figures["first_try_rate"].value, row.figures["e2e_p50"].value, not row.fingerprints)
        for row in rows
        if "e2e_p50" in row.figures
    ]


def _tells_cache(row: Row) -> bool:
    return "cached_share" in row.figures


def _groups(config: BenchConfig, points: Sequence[Point]) -> list[Group]:
    groups = []
    for load in config.loads:
        for arm in config.arms:
            done: list[Done] = [each.done for each in points if each.place[:2] == (arm.name, str(load))]
            if len(done) == config.rounds:
                groups.append(Group(arm.name, load, tuple(done)))
    return groups


def _row(group: Group, config: BenchConfig) -> Row:
    return Row(
        arm=group.arm,
        load=group.load,
        n=len(group.played),
        figures=tally(group, config),
        outcomes=count_outcomes(group),
        errors=count_errors(group),
        parts=mean_parts(group),
        fingerprints=_fingerprints(group.answers),
        routed=dict(Counter(request.routed[0] for request in group.answers if request.routed[0]).most_common()),
    )


def _fingerprints(answers: Sequence[Request]) -> dict[str, Fingerprint]:
    """Of each model that an arm asked, under each sampler, budget and canvas that it used."""
    kinds: dict[str, list[Request]] = {}
    for answer in answers:
        name = f"{answer.model} {answer.sampler or ''} {answer.step_budget or 0} of {answer.canvas}"
        kinds.setdefault(name, []).append(answer)
    taken = {name: take_fingerprint(some) for name, some in kinds.items()}
    return {name: found for name, found in taken.items() if found is not None}


def _compare(config: BenchConfig, groups: Sequence[Group]) -> list[Comparison]:
    """The first arm with each other one, over loads of one kind, where there are two or more."""
    first, *others = config.arms
    if len(config.loads) < 2 or any(one.kind != other.kind for one, other in pairwise(config.loads)):
        return []
    found = []
    for other in others:
        sides = [
            {group.load.value: _times(group, config) for group in groups if group.arm == arm.name}
            for arm in (first, other)
        ]
        both = sorted(sides[0].keys() & sides[1].keys())
        for measure in MEASURES if len(both) > 1 else ():
            near, far = ({at: side[at] for at in both} for side in sides)
            crossover = find_crossover(near, far, measure)
            found.append(Comparison(first.name, other.name, measure, crossover))
    return found


def _times(group: Group, config: BenchConfig) -> Times:
    return Times(
        [played.seconds for played in group.played],
        [float(played.is_accepted) for played in group.played],
        config.play.deadline_s,
    )
