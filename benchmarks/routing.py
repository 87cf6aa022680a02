"""`make experiment`: whether routing is worth it, on lab's mixed tasks below, at and above the crossover.

    python -m benchmarks.routing                         # about fifteen minutes
    python -m benchmarks.routing --tasks 36 --calibrate 36   # a short trial
    python -m benchmarks.routing --report                # what is finished, as tables

One server has every arm, and its router learns from one set of prompts, each arm asked at each load; then all arms and
`auto` answer another set in turns. A second server, which has measured nothing before, answers that set as `auto`
alone. The router sees what an HTTP request carries. What is finished is not measured again.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.arguments import counts
from benchmarks.machine import describe_run
from benchmarks.markers import rewrite_document
from benchmarks.routing_report import DEADLINE_S, Measured, render
from mezzotint.bench.arm import Arm, Way
from mezzotint.bench.arrival import Load
from mezzotint.bench.config import BenchConfig
from mezzotint.bench.families import family_hop
from mezzotint.bench.play import PlayConfig
from mezzotint.bench.store import Store
from mezzotint.bench.sweep import Progress, sweep
from mezzotint.bench.task import Task, Workload
from mezzotint.bench.wire import connect
from mezzotint.cli.child import running_server
from mezzotint.tasks import FAMILIES, Split

MIXTURE = tuple(name for name in FAMILIES if name != "infill")  # whose blanks no chat can ask for
ARMS = {
    "canvas-8": {"decoder": "diffusion", "steps": 8},
    "canvas-16": {"decoder": "diffusion", "steps": 16},
    "ar": {"decoder": "ar", "temperature": 0.0},
    "mtp": {"decoder": "mtp", "temperature": 0.0},
    "verified": {"decoder": "verified", "temperature": 0.0},
}
AUTO = "auto"
LOADS = (1, 6, 16)  # of this machine: the canvas leads at the first, and mtp behind the second
_CALIBRATION, _EXPERIMENT = 90, 91  # seeds


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One set of prompts put to some arms of the server whose router has that ledger."""

    name: str
    ledger: str
    arms: tuple[str, ...]
    workload: Workload
    tasks: int


def main(arguments: Sequence[str]) -> None:
    """Run what is not finished, and show what is."""
    options = _parse(arguments)
    stages = plan(options.tasks, options.calibrate)
    facts = describe_run(arguments, "routing")
    store = Store(options.folder)
    try:
        if not options.report:
            for stage in stages:
                run_stage(stage, store, options.loads, options.threads)
        measured = {stage.name: read(stage, store, options.loads) for stage in stages}
    finally:
        store.close()
    text = render(measured, facts)
    print(text)
    if options.write:
        rewrite_document(options.write, "routing", text)


def plan(tasks: int, calibrate: int) -> list[Stage]:
    """What is measured, in its order. Prompts of calibration are worded as train's are, and have other seeds."""
    learnt, asked = mixture("calibration", "train", _CALIBRATION), mixture("experiment", "test", _EXPERIMENT)
    return [
        Stage(name="calibration", ledger="calibrated", arms=tuple(ARMS), workload=learnt, tasks=calibrate),
        Stage(name="experiment", ledger="calibrated", arms=(*ARMS, AUTO), workload=asked, tasks=tasks),
        Stage(name="cold", ledger="cold", arms=(AUTO,), workload=asked, tasks=tasks),
    ]


def mixture(name: str, split: Split, seed: int) -> Workload:
    """Every family in turn. Prompts of test are those whose wordings train does not hold."""

    def make(index: int) -> Task:
        family = MIXTURE[index % len(MIXTURE)]
        number = 2 * (seed * 1_000_000 + index) + 1  # odd: of test these have wordings of their own
        hop = family_hop(FAMILIES[family], FAMILIES[family].generate(number, split))
        limits = {"x_route": {"deadline_ms": 1000 * DEADLINE_S, "max_attempts": 1}}
        hop = replace(hop, extra={**hop.extra, **limits})
        return Task(id=f"{family} {number}", family=family, seed=number, hops=(hop,))

    return Workload(
        name=name,
        make=make,
        note=f"{', '.join(MIXTURE)} in turn, {split} split; accepted by the family's exact verifier",
        digest=f"{name} {split} {seed} {','.join(MIXTURE)}",
    )


def run_stage(stage: Stage, store: Store, loads: Sequence[int], threads: int | None) -> None:
    """Measure what of a stage is not finished."""
    config = configure(stage, loads)
    run = store.open_run(stage.name, "routing", config.identity(stage.workload.digest), {})
    if store.finished(run) == {*_places(config)}:
        return
    fleet = store.folder / f"{stage.ledger}.toml"
    fleet.write_text(write_fleet(stage.ledger))
    flags = ["lab", "--fleet", str(fleet), *([] if threads is None else ["--threads", str(threads)])]

    async def go(url: str) -> None:
        async with connect(url) as http:
            await sweep(config, stage.workload, http, store, run, _tell)

    with running_server(flags, store.folder / f"{stage.name}.log") as url:
        asyncio.run(go(url))


def configure(stage: Stage, loads: Sequence[int]) -> BenchConfig:
    """A stage as the bench has it: every verdict is told to the router, whichever arm answered."""
    return BenchConfig(
        target=f"lab, ledger {stage.ledger}",
        arms=tuple(Arm(name=name, usual=Way(name)) for name in stage.arms),
        loads=tuple(Load(kind="closed", value=load) for load in loads),
        tasks=stage.tasks,
        rounds=min(6, stage.tasks),
        play=PlayConfig(deadline_s=DEADLINE_S, max_attempts=1, max_tokens=192, tells_verdicts=True),
    )


def write_fleet(ledger: str) -> str:
    """The file of the fleet."""
    lines = [f'ledger = "{ledger}.sqlite"']
    for name, fields in ARMS.items():
        told = [f"{key} = {json.dumps(value)}" for key, value in {"name": name, **fields}.items()]
        lines += ["", "[[local]]", *told]
    return "\n".join(lines) + "\n"


def read(stage: Stage, store: Store, loads: Sequence[int]) -> Measured:
    """What a stage measured: by load, by arm, its tasks by their index. Raises: ValueError if it is not finished."""
    run = store.find_run(stage.name)
    config = configure(stage, loads)
    if run is None or store.finished(run) != {*_places(config)}:
        raise ValueError(f"stage {stage.name} is not finished in {store.folder}; run without --report")
    measured: Measured = {load: {name: {} for name in stage.arms} for load in loads}
    for point in store.points(run):
        load = next(int(load.value) for load in config.loads if str(load) == point.place.load)
        measured[load][point.place.arm].update({played.task: played for played in point.done.played})
    return measured


def _places(config: BenchConfig) -> list[tuple[str, str, int]]:
    return [
        (arm.name, str(load), round) for load in config.loads for arm in config.arms for round in range(config.rounds)
    ]


def _tell(progress: Progress) -> None:
    if progress.event == "finished":
        print(*progress.part.place, flush=True, file=sys.stderr)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.routing", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/routing"), help="where what is measured is kept")
    parser.add_argument("--tasks", type=int, default=360, help="prompts that every policy answers at every load")
    parser.add_argument("--calibrate", type=int, default=180, help="other prompts that every arm answers before")
    parser.add_argument("--loads", type=counts, default=LOADS, help="tasks at once, with commas between them")
    parser.add_argument("--threads", type=int, help="of the server; as many as there are cores unless given")
    parser.add_argument("--report", action="store_true", help="measure nothing, show what is finished")
    parser.add_argument("--write", type=Path, help="write the tables into this document, between its markers")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
