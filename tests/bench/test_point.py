"""Many tasks under one load, against a server with known delays: what arrives when, what counts, what is dropped."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from mezzotint.bench.arm import read_arm
from mezzotint.bench.play import Lane, PlayConfig
from mezzotint.bench.point import Done, Turn, run_closed, run_schedule
from mezzotint.bench.record import Played
from mezzotint.bench.task import Task, Workload
from mezzotint.bench.wire import connect
from tests.bench.scripted import Script, Scripted, hop, say, serving, task, workload

Measure = Callable[[Lane, list[Played]], Coroutine[Any, Any, Done]]


def run(script: Script, measure: Measure, **config: Any) -> tuple[Done, list[Played], Scripted]:
    async def running() -> tuple[Done, list[Played], Scripted]:
        noted: list[Played] = []
        async with serving(script) as (server, url), connect(url) as http:
            lane = Lane(http, read_arm("model"), PlayConfig(**config), time.perf_counter)
            return await measure(lane, noted), noted, server

    return asyncio.run(running())


def closed(slots: int, turn: Turn, tasks: Workload | None = None) -> Measure:
    return lambda lane, noted: run_closed(lane, tasks or workload(), turn, slots, noted.append)


def scheduled(arrivals: Sequence[float], *, warm_up: int = 0, max_in_flight: int = 99) -> Measure:
    turn = Turn(range(len(arrivals)), warm_up, len(arrivals))

    def measure(lane: Lane, noted: list[Played]) -> Coroutine[Any, Any, Done]:
        return run_schedule(lane, workload(), turn, arrivals, noted.append, max_in_flight=max_in_flight)

    return measure


def test_a_closed_loop_keeps_its_slots_taken_until_the_last_measured_task_has_ended() -> None:
    done, noted, server = run(lambda body: say(["yes"], gap_s=0.01), closed(3, Turn(range(7), 3, 100)))
    assert [played.task for played in done.played] == list(range(7))
    assert server.most_going == 3
    beside = {played.task for played in noted} - set(range(7))
    assert {100, 101, 102} <= beside, "three tasks of warm-up"
    assert len(server.asked) >= 7 + 3 + 2, "two slots go on with others beside the last measured task"


def test_a_slots_next_task_arrives_as_its_last_one_ends() -> None:
    done, _, _ = run(lambda body: say(["yes"], gap_s=0.01), closed(1, Turn(range(4), 0, 100)))
    for one, other in zip(done.played, done.played[1:], strict=False):
        assert other.due_s == one.ended_s
    assert done.window_s == pytest.approx(sum(played.seconds for played in done.played))


def test_a_schedule_waits_for_nobody_and_its_zero_is_the_arrival() -> None:
    arrivals = [0.0, 0.01, 0.02, 0.03]
    done, _, server = run(lambda body: say(["yes"], gap_s=0.08), scheduled(arrivals))
    assert server.most_going == 4, "a slow answer delays no arrival"
    first = done.played[0].due_s
    assert [played.due_s - first for played in done.played] == pytest.approx(arrivals)
    for played in done.played:
        assert played.seconds == played.ended_s - played.due_s >= 0.08
        assert 0 <= played.parts.dispatch <= played.requests[0].due_s - played.due_s


def test_a_task_that_finds_too_many_unfinished_is_dropped_and_told() -> None:
    done, noted, server = run(lambda body: say(["yes"], gap_s=0.05), scheduled([0.0, 0.0, 0.0], max_in_flight=2))
    assert len(server.asked) == 2
    assert sorted(played.outcome for played in done.played) == ["accepted", "accepted", "cancelled"]
    assert len(noted) == 3


def test_warm_up_of_a_schedule_comes_before_its_zero_and_does_not_count() -> None:
    done, noted, server = run(lambda body: say(["yes"], gap_s=0.01), scheduled([0.0], warm_up=2))
    assert (len(done.played), len(noted), len(server.asked)) == (1, 3, 3)
    assert done.window_s == done.played[0].seconds


def test_what_fails_while_judging_ends_the_point_as_the_error_that_it_was() -> None:
    class Broken:
        async def verify(self, messages: Any, answer: Any) -> Any:
            raise ZeroDivisionError

    def make(index: int) -> Task:
        return task(index, hop().__class__(messages=({"role": "user", "content": "?"},), verifier=Broken()))

    broken = Workload(name="broken", make=make, note="", digest="")
    with pytest.raises(ZeroDivisionError):
        run(lambda body: say(["yes"]), closed(2, Turn(range(3), 0, 100), broken))
