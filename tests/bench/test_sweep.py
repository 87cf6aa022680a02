"""Arms, loads and rounds: the order in which they are measured, what is kept, and what a second start does."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mezzotint.bench.arm import read_arm
from mezzotint.bench.arrival import Load
from mezzotint.bench.config import BenchConfig
from mezzotint.bench.play import PlayConfig
from mezzotint.bench.store import Store
from mezzotint.bench.sweep import Progress, list_parts, sweep
from mezzotint.bench.task import Workload
from mezzotint.bench.wire import connect
from tests.bench.scripted import CANVAS, METRICS, Body, Reply, Script, Scripted, say, serving, workload


def make_config(arms: str = "a b", loads: tuple[float, ...] = (1, 2), **options: Any) -> BenchConfig:
    return BenchConfig(
        target="test",
        arms=tuple(map(read_arm, arms.split())),
        loads=tuple(Load(kind="closed", value=value) for value in loads),
        **{"tasks": 4, "warm_up": 1, "play": PlayConfig(max_attempts=1), **options},
    )


def measure(
    config: BenchConfig, folder: Path, script: Script, tasks: Workload | None = None
) -> tuple[list[Progress], Scripted]:
    async def measuring() -> tuple[list[Progress], Scripted]:
        told: list[Progress] = []
        asked = tasks or workload()
        async with serving(script) as (server, url), connect(url) as http:
            store = Store(folder)
            try:
                run = store.open_run("run", "run", config.identity(asked.digest), {})
                await sweep(config, asked, http, store, run, told.append)
            finally:
                store.close()
            return told, server

    return asyncio.run(measuring())


def yes(body: Body) -> Reply:
    return say(["yes"], gap_s=0.002)


def test_arms_take_turns_whose_order_turns_around_and_every_task_is_in_one_part() -> None:
    parts = list(list_parts(make_config("a b c", rounds=2, tasks=5)))
    assert ["".join(part.arm.name for part in parts[at : at + 3]) for at in (0, 3, 6, 9)] == [
        "abc",
        "cba",
        "abc",
        "cba",
    ]
    for arm in "abc":
        mine = [number for part in parts if part.arm.name == arm and part.load.value == 1 for number in part.tasks]
        assert mine == list(range(5))


def test_what_was_measured_comes_back_from_the_store_as_it_was(tmp_path: Path) -> None:
    config = make_config()
    metrics = METRICS | {"generation_time_ms": 1.0, "diffusion": CANVAS | {"denoise_steps": [3, 6]}}
    measure(config, tmp_path, lambda body: say(["ye", "s"], metrics=metrics))
    store = Store(tmp_path)
    run = store.find_run("run")
    assert run is not None
    points = store.points(run)
    assert len(points) == 2 * 2 * 2
    lines = [json.loads(line) for line in store.lines("run").read_text().splitlines()]
    assert len(lines) == sum(len(point.done.played) for point in points) == 4 * 2 * 2
    for point in points:
        for played in point.done.played:
            [request] = played.requests
            assert (played.outcome, request.steps, request.semantics, request.queue_s) == (
                "accepted",
                (3, 6),
                "canvas",
                0,
            )
            assert played.parts.generation == pytest.approx(0.001)
            assert len(request.arrivals) == 2
            [line] = [
                each
                for each in lines
                if (each["task"], each["arm"], each["load"], each["round"]) == (played.task, *point.place)
            ]
            assert line["requests"][0]["arrivals"] == list(request.arrivals)
            assert line["due_s"] == played.due_s


def test_people_may_ask_the_database_in_sql(tmp_path: Path) -> None:
    measure(make_config(), tmp_path, yes)
    query = """select p.arm, count(*), avg(r.ended_s - r.sent_s) from requests r join tasks t on r.of = t.key
               join points p on t.point = p.id group by p.arm order by p.arm"""
    base = sqlite3.connect(tmp_path / "bench.sqlite")
    rows = base.execute(query).fetchall()
    base.close()
    assert [(arm, count) for arm, count, _ in rows] == [("a", 8), ("b", 8)]
    assert all(seconds >= 0.002 for *_, seconds in rows)


def test_a_second_start_measures_nothing_again(tmp_path: Path) -> None:
    measure(make_config(), tmp_path, yes)
    told, server = measure(make_config(), tmp_path, yes)
    assert server.asked == []
    assert {progress.event for progress in told} == {"kept"}


def test_an_interrupt_loses_nothing_that_was_finished_and_half_a_part_leaves_no_trace(tmp_path: Path) -> None:
    count = 0

    def interrupt(body: Body) -> Reply:
        nonlocal count
        count += 1
        if count == 14:
            raise KeyboardInterrupt
        return yes(body)

    with pytest.raises(KeyboardInterrupt):
        measure(make_config(), tmp_path, interrupt)
    store = Store(tmp_path)
    run = store.find_run("run")
    assert run is not None
    kept = store.finished(run)
    before = len(store.points(run))
    store.close()
    assert 0 < len(kept) < 8
    told, _ = measure(make_config(), tmp_path, yes)
    assert sum(progress.event == "kept" for progress in told) == before
    assert sum(progress.event == "finished" for progress in told) == 8 - before
    lines = (tmp_path / "run.jsonl").read_text().splitlines()
    assert len(lines) == 4 * 2 * 2
    assert len({tuple(json.loads(line)[key] for key in ("arm", "load", "round", "task")) for line in lines}) == 16


def test_another_configuration_under_the_same_name_is_refused_with_what_differs(tmp_path: Path) -> None:
    measure(make_config(), tmp_path, yes)
    with pytest.raises(
        ValueError, match=r"tasks was 4 and is 6; play.max_attempts was 1 and is 2; give the same flags"
    ):
        measure(make_config(tasks=6, play=PlayConfig(max_attempts=2)), tmp_path, yes)
    with pytest.raises(ValueError, match='workload was "test" and is "other"'):
        measure(make_config(), tmp_path, yes, Workload(name="o", make=workload().make, note="", digest="other"))


def test_a_run_of_which_nothing_is_finished_stands_in_nobodys_way(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tasks is 4, but test has 3"):
        measure(make_config(), tmp_path, yes, workload(3))
    told, _ = measure(make_config(tasks=2), tmp_path, yes)
    assert sum(progress.event == "finished" for progress in told) == 8
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 2 * 2 * 2


def test_what_only_figures_depend_on_may_change(tmp_path: Path) -> None:
    measure(make_config(), tmp_path, yes)
    _, server = measure(make_config(goals={"tta": 1.0}), tmp_path, yes)
    assert server.asked == []


def test_a_goal_for_single_tokens_is_refused_as_soon_as_a_canvas_answers(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"itl is asked of answers that come a block at a time .* take ttfc, icl, e2e"):
        measure(make_config(goals={"itl": 0.01}), tmp_path, lambda body: say(["yes"], metrics=METRICS))


def test_more_tasks_than_a_file_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="tasks is 4, but test has 3; ask for at most that"):
        measure(make_config(), tmp_path, yes, workload(3))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"arms": "a a"}, "arm 'a' is named twice"),
        ({"loads": (2, 2)}, "load '2 at once' is named twice"),
        ({"rounds": 5}, "rounds is 5 of 4 tasks"),
        ({"warm_up": -1}, "warm_up is -1"),
        ({"goals": {"speed": 1.0}}, "goal is speed=1; give positive seconds to some of ttfc"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make_config(**options)
