"""A measurement from its beginning, or from where it was, to its report; what is measured is said by the bench room."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from mezzotint.cli.bench_flags import Answering, Measuring
from mezzotint.cli.child import running_server
from mezzotint.cli.options import Loading

if TYPE_CHECKING:
    from mezzotint.bench.config import BenchConfig
    from mezzotint.bench.store import Run, Store
    from mezzotint.bench.sweep import Progress
    from mezzotint.bench.task import Workload


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A measurement as the flags describe it. verb: of `mezzotint bench`."""

    verb: str
    config: "BenchConfig"
    workload: "Workload"
    answering: Answering
    loading: Loading
    measuring: Measuring


def name_target(answering: Answering, loading: Loading) -> str:
    """What answers, in words that stay the same at the next start. Raises: ValueError for what it cannot be told."""
    if answering.url is not None and answering.prefix_cache:
        raise ValueError(f"--prefix-cache is of a server that is started here, and --url asks {answering.url}; drop it")
    if answering.url is not None:
        return answering.url
    return " ".join(["mezzotint serve", *_serve_flags(answering, loading)])


def measure(plan: Plan) -> None:
    """Measure what is not finished yet, write the report, and print what it says.

    Raises: ValueError for a run of that name with another configuration.
    """
    from mezzotint.bench.environment import describe
    from mezzotint.bench.store import Store

    name = plan.measuring.name or plan.verb
    told = {
        "config": json.loads(json.dumps(asdict(plan.config))),
        "workload": {"name": plan.workload.name, "note": plan.workload.note},
        "environment": describe(["mezzotint", *sys.argv[1:]]),
    }
    store = Store(plan.measuring.output)
    try:
        run = store.open_run(name, plan.verb, plan.config.identity(plan.workload.digest), told)
        try:
            _measure(plan, store, run)
        finally:  # what is finished is worth a report, however this ended
            path = write_report(store, run)
        print_results(store, run, path, as_json=plan.measuring.as_json)
    except (KeyboardInterrupt, SystemExit):
        typer.echo(f"interrupted; the same command goes on, from what is finished in {plan.measuring.output}", err=True)
        raise
    finally:
        store.close()


def write_report(store: "Store", run: "Run") -> Path:
    """Make a run's page from what is stored. Returns: its path."""
    from mezzotint.bench.report import render

    path = store.folder / f"{run.name}.html"
    path.write_text(render(run, store.points(run)), encoding="utf-8")
    return path


def print_results(store: "Store", run: "Run", path: Path, *, as_json: bool) -> None:
    """A run's figures, as tables or as one object, and where the rest is."""
    from mezzotint.bench.config import restore
    from mezzotint.bench.results import compute
    from mezzotint.bench.summary import as_object, format_summary

    results = compute(restore(run.told["config"]), store.points(run))
    if as_json:
        print(json.dumps(as_object(run, results), ensure_ascii=False))
        return
    print(format_summary(run, results))
    print(f"\nreport: {path}\nrecords: {store.lines(run.name)}")


def _measure(plan: Plan, store: "Store", run: "Run") -> None:
    from mezzotint.bench.sweep import list_parts

    finished = store.finished(run)
    if all(part.place in finished for part in list_parts(plan.config)):
        return
    answering = plan.answering
    flags = [] if answering.url else _serve_flags(answering, plan.loading)
    log = store.folder / f"{run.name}.server.log"
    opened = nullcontext(answering.url) if answering.url else running_server(flags, log)
    with opened as url, _showing(plan.config) as tell:
        asyncio.run(_sweep(plan, url, store, run, tell))


async def _sweep(plan: Plan, url: str, store: "Store", run: "Run", tell: "Callable[[Progress], None]") -> None:
    from mezzotint.bench.sweep import sweep
    from mezzotint.bench.wire import connect

    async with connect(url, _read_key(plan.answering)) as http:
        await sweep(plan.config, plan.workload, http, store, run, tell)


def _read_key(answering: Answering) -> str | None:
    if answering.api_key_env is None:
        return None
    if not (key := os.environ.get(answering.api_key_env)):
        raise ValueError(f"--api-key-env is {answering.api_key_env}, but that variable is not set; set it")
    return key


def _serve_flags(answering: Answering, loading: Loading) -> list[str]:
    """Of the server that answers for a checkpoint. It shares no prefixes unless told to: arms repeat all prompts."""
    flags = [] if answering.prefix_cache else ["--no-prefix-cache"]
    flags += ["--compile"] if loading.compiled else []
    for name in ("model", "device", "dtype", "threads", "drafter"):
        if (value := getattr(loading, name)) is not None:
            flags += [f"--{name}", str(value)]
    return flags


@contextmanager
def _showing(config: "BenchConfig") -> "Iterator[Callable[[Progress], None]]":
    """A bar of all tasks on standard error, or a line a part where that is no terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        total = config.tasks * len(config.arms) * len(config.loads)
        shown = bar.add_task("tasks", total=total)

        def tell(progress: "Progress") -> None:
            part = progress.part
            where = f"{part.arm.name}, {part.load}, round {part.round + 1}"
            match progress.event:
                case "kept":
                    bar.update(shown, advance=len(part.tasks))
                case "begun":
                    bar.update(shown, description=where)
                case "ended":
                    bar.update(shown, advance=1)
            if progress.event in ("kept", "finished") and not console.is_terminal:
                console.print(f"{progress.event}: {where}", highlight=False)

        yield tell


def bundled_arms(loading: Loading, decoders: Sequence[str]) -> list[str]:
    """Arms of a checkpoint that is served here, as its server names them."""
    return [f"{Path(loading.model).name}:{decoder}" for decoder in decoders]


def split(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",")]


def refuse_one(arms: Sequence[Any], verb: str) -> None:
    """Raises: ValueError where there is nothing to compare."""
    if len(arms) < 2:
        raise ValueError(f"{verb} compares arms, and there is one; name another by -m")
