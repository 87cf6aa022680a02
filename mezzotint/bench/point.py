"""Many tasks under one load: slots that are always taken, or a schedule that waits for nobody."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, cycle
from typing import NamedTuple

from mezzotint.bench.play import Lane, play
from mezzotint.bench.record import Parts, Played
from mezzotint.bench.task import Task, Workload

Note = Callable[[Played], None]


class Turn(NamedTuple):
    """The tasks of one point: `measured` by their index, and how many come before that do not count.

    spare: index from which tasks are taken that do not count, before the measured ones and beside the last of them.
    """

    measured: range
    warm_up: int
    spare: int


class Done(NamedTuple):
    """A point that was measured, its tasks by their index. window_s: from its first arrival to its last end."""

    played: tuple[Played, ...]
    window_s: float


async def run_closed(lane: Lane, workload: Workload, turn: Turn, slots: int, note: Note) -> Done:
    """Keep `slots` tasks going until the last measured one has ended; a slot's next task arrives as its last one ends.

    note: called with every task that ends, of whatever kind. The tasks beside the last measured ones are cancelled.
    """
    asks = _in_order(workload, turn, 2 * slots)
    played: list[Played] = []
    whole = asyncio.Event()

    async def slot(due_s: float) -> None:
        for number, task in asks:
            ended = await play(lane, number, task, due_s)
            note(ended)
            due_s = ended.ended_s
            if number in turn.measured:
                played.append(ended)
                if len(played) == len(turn.measured):
                    whole.set()

    begun_s = lane.clock()
    try:
        async with asyncio.TaskGroup() as group:
            slots_taken = [group.create_task(slot(begun_s)) for _ in range(slots)]
            await whole.wait()
            for one in slots_taken:
                one.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return _done(played)


async def run_schedule(
    lane: Lane, workload: Workload, turn: Turn, arrivals: Sequence[float], note: Note, *, max_in_flight: int
) -> Done:
    """Begin each measured task at its arrival, seconds from now, whatever became of those before it.

    Warm-up goes one by one before that. A task that finds max_in_flight unfinished ones is dropped, never delayed.
    """
    for number in range(turn.spare, turn.spare + turn.warm_up):
        note(await play(lane, number, workload.task(number), lane.clock()))
    tasks = {number: workload.task(number) for number in turn.measured}  # made now: the schedule waits for nothing
    played, going = list[Played](), set[int]()
    begun_s = lane.clock()

    async def begin(number: int, due_s: float) -> None:
        played.append(await play(lane, number, tasks[number], due_s))
        going.discard(number)
        note(played[-1])

    try:
        async with asyncio.TaskGroup() as group:
            for number, after_s in zip(turn.measured, arrivals, strict=True):
                due_s = begun_s + after_s
                await asyncio.sleep(max(0.0, due_s - lane.clock()))
                if len(going) < max_in_flight:
                    going.add(number)
                    group.create_task(begin(number, due_s))
                else:
                    played.append(_drop(number, tasks[number], due_s, lane.clock()))
                    note(played[-1])
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return _done(played)


def _in_order(workload: Workload, turn: Turn, beside: int) -> Iterator[tuple[int, Task]]:
    """Warm-up, the measured tasks, and `beside` others over and over; all made now, so that no slot waits for one."""
    first = turn.spare + turn.warm_up
    numbers = [*range(turn.spare, first), *turn.measured, *range(first, first + beside)]
    tasks = [(number, workload.task(number)) for number in numbers]
    return chain(tasks[: len(tasks) - beside], cycle(tasks[len(tasks) - beside :]))


def _drop(number: int, task: Task, due_s: float, now: float) -> Played:
    return Played(
        task=number,
        id=task.id,
        family=task.family,
        outcome="cancelled",
        due_s=due_s,
        ended_s=now,
        hops=len(task.hops),
        parts=Parts(dispatch=now - due_s),
        requests=(),
    )


def _done(played: Sequence[Played]) -> Done:
    window_s = max(each.ended_s for each in played) - min(each.due_s for each in played)
    return Done(tuple(sorted(played, key=lambda each: each.task)), window_s)
