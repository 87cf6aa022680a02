"""`mezzotint bench`: flags in, figures and a report out; what is measured, and how, is said by the bench room."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mezzotint.cli.bench_flags import Answering, Loads, Measuring, Playing, Tasks
from mezzotint.cli.bench_reading import read_arms, read_config, read_loads, read_workload
from mezzotint.cli.flags import unfold
from mezzotint.cli.measure import (
    Plan,
    bundled_arms,
    measure,
    name_target,
    print_results,
    refuse_one,
    split,
    write_report,
)
from mezzotint.cli.options import Compiled, Device, Drafter, Dtype, Loading, Threads

_Target = Annotated[
    str, typer.Argument(help="A bundled model, a folder or a hub id, served for the measurement; not with --url.")
]
_DECODERS = "diffusion,ar,verified,mtp"


def _option(help: str) -> Any:
    return typer.Option(help=help)


@unfold
def run(
    answering: Answering,
    tasks: Tasks,
    loads: Loads,
    playing: Playing,
    measuring: Measuring,
    target: _Target = "lab",
    device: Device = None,
    dtype: Dtype = None,
    threads: Threads = None,
    compiled: Compiled = None,
    drafter: Drafter = None,
) -> None:
    """Measure one workload at one load: time until tasks are accepted, and what it is spent on.

    Started again with the same flags it measures what is not finished, or only writes the report again.
    """
    loading = Loading(model=target, device=device, dtype=dtype, threads=threads, compiled=compiled, drafter=drafter)
    names = answering.arms or _usual_arms(answering, loading, ["diffusion"])
    _measure("run", answering, tasks, loads, playing, measuring, loading, names, most_loads=1)


@unfold
def crossover(
    answering: Answering,
    tasks: Tasks,
    loads: Loads,
    playing: Playing,
    measuring: Measuring,
    target: _Target = "lab",
    decoder: Annotated[
        str | None, _option(f"Decoders of the checkpoint, the first against each other; {_DECODERS} unless given.")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    threads: Threads = None,
    compiled: Compiled = None,
    drafter: Drafter = None,
) -> None:
    """Find the load at which the first arm stops being faster than each other one, with its interval.

    All arms get the same tasks at every load, in turns. Loads are 1,2,4,8,16 at once unless given.
    """
    loading = Loading(model=target, device=device, dtype=dtype, threads=threads, compiled=compiled, drafter=drafter)
    names = _compared(answering, loading, decoder, split(decoder or _DECODERS))
    refuse_one(names, "crossover")
    if loads == Loads():
        loads = Loads(concurrency="1,2,4,8,16")
    _measure("crossover", answering, tasks, loads, playing, measuring, loading, names)


@unfold
def pareto(
    answering: Answering,
    tasks: Tasks,
    loads: Loads,
    playing: Playing,
    measuring: Measuring,
    target: _Target = "lab",
    steps: Annotated[
        str | None, _option("Step budgets of diffusion, with commas between; 1,2,4,8,16 unless given.")
    ] = None,
    decoder: Annotated[
        str | None, _option("Decoders to compare those with, with commas between; ar,verified,mtp unless given.")
    ] = None,
    device: Device = None,
    dtype: Dtype = None,
    threads: Threads = None,
    compiled: Compiled = None,
    drafter: Drafter = None,
) -> None:
    """Set quality against time at one load, over step budgets and decoders; what another arm beats is marked."""
    loading = Loading(model=target, device=device, dtype=dtype, threads=threads, compiled=compiled, drafter=drafter)
    if answering.arms and steps is not None:
        raise ValueError(f"--steps is {steps}, and arms are named by -m; write MODEL@STEPS there, or drop one")
    [arm] = bundled_arms(loading, ["diffusion"])
    budgets = [f"{arm}@{budget}" for budget in split(steps or "1,2,4,8,16")]
    names = _compared(answering, loading, decoder, split(decoder or "ar,verified,mtp"), budgets)
    refuse_one(names, "pareto")
    _measure("pareto", answering, tasks, loads, playing, measuring, loading, names, most_loads=1)


def report(
    output: Annotated[Path, _option("The folder that holds what was measured.")] = Path("bench"),
    name: Annotated[str | None, _option("The run's name in it; the last one's unless given.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object instead of tables.")] = False,
) -> None:
    """Write the report of a run again, from what is stored."""
    from mezzotint.bench.store import DATABASE, Store

    if not (output / DATABASE).is_file():
        raise ValueError(f"--output is {output}, which holds no {DATABASE}; name the folder of a measurement")
    store = Store(output)
    try:
        names = store.names()
        found = store.find_run(name or names[-1]) if names else None
        if found is None:
            raise ValueError(f"--name is {name!r}; in {output} there are {', '.join(names) or 'no runs'}")
        print_results(store, found, write_report(store, found), as_json=as_json)
    finally:
        store.close()


def _usual_arms(answering: Answering, loading: Loading, decoders: list[str]) -> list[str]:
    if answering.url is not None:
        raise ValueError(f"--url is {answering.url}, but no model is named; name those that answer there by -m")
    return bundled_arms(loading, decoders)


def _compared(
    answering: Answering, loading: Loading, decoder: str | None, decoders: list[str], budgets: list[str] | None = None
) -> list[str]:
    if answering.arms:
        if decoder is not None:
            raise ValueError(f"--decoder is {decoder}, and arms are named by -m; drop one of the two")
        return answering.arms
    others = _usual_arms(answering, loading, decoders)
    return [*(budgets or ()), *others]


def _measure(
    verb: str,
    answering: Answering,
    tasks: Tasks,
    loads: Loads,
    playing: Playing,
    measuring: Measuring,
    loading: Loading,
    names: list[str],
    *,
    most_loads: int | None = None,
) -> None:
    workload = read_workload(tasks)
    config = read_config(
        name_target(answering, loading),
        read_arms(names, answering),
        read_loads(loads, workload, most=most_loads),
        tasks,
        playing,
        measuring,
    )
    measure(
        Plan(
            verb=verb,
            config=config,
            workload=workload,
            answering=answering,
            loading=loading,
            measuring=measuring,
        )
    )
