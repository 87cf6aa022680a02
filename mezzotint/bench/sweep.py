"""Every arm at every load, in parts whose order of arms turns around; what is finished is not measured again.

round 1   A B C      a machine that slows down, or an hour of the day,
round 2   C B A      falls on all arms alike
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import httpx2

from mezzotint.bench.arm import Arm
from mezzotint.bench.arrival import Load, arrival_times
from mezzotint.bench.config import BenchConfig
from mezzotint.bench.figures import check_goals
from mezzotint.bench.inspect import inspect
from mezzotint.bench.play import Lane
from mezzotint.bench.point import Done, Note, Turn, run_closed, run_schedule
from mezzotint.bench.record import Played
from mezzotint.bench.store import Place, Run, Store, line
from mezzotint.bench.task import Workload

_SPARE = 50_000  # other tasks for every round, where a workload has that many


class Part(NamedTuple):
    """One arm at one load, with some of the tasks."""

    arm: Arm
    load: Load
    round: int
    tasks: range

    @property
    def place(self) -> Place:
        """As it is kept."""
        return Place(self.arm.name, str(self.load), self.round)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Something that happened. kept: the part was finished by an earlier start. ended: a task of it ended."""

    part: Part
    event: Literal["kept", "begun", "ended", "finished"]


def list_parts(config: BenchConfig) -> Iterator[Part]:
    """All parts in the order in which they are measured."""
    for load in config.loads:
        for round in range(config.rounds):
            first, last = (config.tasks * at // config.rounds for at in (round, round + 1))
            for arm in config.arms if round % 2 == 0 else config.arms[::-1]:
                yield Part(arm, load, round, range(first, last))


async def sweep(
    config: BenchConfig,
    workload: Workload,
    http: httpx2.AsyncClient,
    store: Store,
    run: Run,
    tell: Callable[[Progress], None],
) -> None:
    """Measure what is not finished yet. Each part is kept as soon as it is finished, whatever happens after it.

    Raises: ValueError for more tasks than the workload has, or goals that its answers do not allow.
    """
    if workload.size is not None and config.tasks > workload.size:
        raise ValueError(f"tasks is {config.tasks}, but {workload.name} has {workload.size}; ask for at most that")
    finished = store.finished(run)
    with store.lines(run.name).open("a", encoding="utf-8") as file:
        for part in list_parts(config):
            if part.place in finished:
                tell(Progress(part=part, event="kept"))
                continue
            tell(Progress(part=part, event="begun"))

            def note(played: Played, part: Part = part) -> None:
                check_goals(config.goals, played.requests)
                if played.task in part.tasks:
                    print(line(part.place, played), file=file, flush=True)
                    tell(Progress(part=part, event="ended"))

            done = await _measure(config, workload, http, part, note)
            store.write_point(run, part.place, done, file)
            tell(Progress(part=part, event="finished"))


async def _measure(config: BenchConfig, workload: Workload, http: httpx2.AsyncClient, part: Part, note: Note) -> Done:
    zero = time.perf_counter()
    lane = Lane(http, part.arm, config.play, lambda: time.perf_counter() - zero)
    turn = Turn(part.tasks, config.warm_up_at(part.load), config.tasks + part.round * _SPARE)
    if part.load.kind == "closed":
        done = await run_closed(lane, workload, turn, part.load.slots, note)
    else:
        trace = workload.arrivals[part.tasks.start : part.tasks.stop]
        times = arrival_times(part.load, len(part.tasks), seed=f"{config.seed}/{part.round}", trace=trace)
        done = await run_schedule(lane, workload, turn, times, note, max_in_flight=config.max_in_flight)
    await lane.settle()
    inspected = [await inspect(played, workload.task(played.task)) for played in done.played]
    return done._replace(played=tuple(inspected))
