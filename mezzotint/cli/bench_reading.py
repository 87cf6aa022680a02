"""The flags of `mezzotint bench` as the bench room's words: workload, loads, arms, configuration."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mezzotint.cli.bench_flags import Answering, Loads, Measuring, Playing, Tasks
from mezzotint.cli.commands import read_commands

if TYPE_CHECKING:
    from mezzotint.bench.arm import Arm
    from mezzotint.bench.arrival import Load
    from mezzotint.bench.config import BenchConfig
    from mezzotint.bench.task import Workload

_OF_AGENTS = ("hops", "tool_wait")
_OF_TRACES = ("trace_file", "scale", "most_prompt", "skip", "prose", "ignore_eos")
_OF_FILES = ("command", "unsafe")


def read_workload(tasks: Tasks) -> "Workload":
    """What is asked. Raises: ValueError naming flag, value and remedy; OSError."""
    from mezzotint.bench.agent import agent_workload
    from mezzotint.bench.families import family_workload
    from mezzotint.bench.files import file_workload
    from mezzotint.bench.traces import TRACES

    seed, name = tasks.seed or 0, tasks.tasks
    common: dict[str, Any] = {"seed": seed, "retrieval_s": tasks.retrieval}
    for flag, seconds in (("retrieval", tasks.retrieval), ("tool-wait", tasks.tool_wait)):
        if seconds is not None and not 0 <= seconds < float("inf"):
            raise ValueError(f"--{flag} is {seconds:g}; give 0 or more seconds")
    is_file = name.endswith(".jsonl")
    for flags, what, fits in (
        (_OF_AGENTS, "agent", name == "agent"),
        (_OF_TRACES, "traces", name in TRACES),
        (_OF_FILES, "files", is_file),
    ):
        given = [flag for flag in flags if getattr(tasks, flag) not in (None, False)]
        if given and not fits:
            raise ValueError(f"--{given[0].replace('_', '-')} is for {what}, but --tasks is {name!r}; drop it")
    if name == "agent":
        hops, wait = tasks.hops, tasks.tool_wait
        return agent_workload(hops=24 if hops is None else hops, tool_wait_s=0.05 if wait is None else wait, **common)
    if name in TRACES:
        return _read_trace(tasks, common)
    if is_file:
        from mezzotint.evaluate.verify import make_verifier

        make = partial(make_verifier, commands=read_commands(tasks.command or ()), walls=not tasks.unsafe)
        return file_workload(Path(name), make, **common)
    return family_workload(tuple(part.strip() for part in name.split(",")), **common)


def read_loads(loads: Loads, workload: "Workload", *, most: int | None = None) -> "tuple[Load, ...]":
    """How much is asked. most: values that may be given. Raises: ValueError naming flag, value and remedy."""
    from mezzotint.bench.arrival import Load

    given = [(kind, text) for kind in ("concurrency", "rate", "speed") if (text := getattr(loads, kind)) is not None]
    if len(given) > 1:
        raise ValueError(f"--{given[0][0]} and --{given[1][0]} both say when tasks arrive; give one of them")
    kind, text = given[0] if given else ("speed" if workload.arrivals else "concurrency", "1")
    if loads.arrival not in (None, "poisson", "constant"):
        raise ValueError(f"--arrival is {loads.arrival!r}; write poisson or constant")
    if loads.arrival is not None and kind != "rate":
        raise ValueError(f"--arrival is {loads.arrival!r} without --rate; give that too, or drop it")
    if kind == "speed" and not workload.arrivals:
        raise ValueError(f"--speed is for traces, and {workload.name} is none; give --concurrency or --rate")
    values = _numbers(kind, text)
    if most is not None and len(values) > most:
        raise ValueError(f"--{kind} is {text}; give one load, or compare several by `mezzotint bench crossover`")
    kinds: Any = {"concurrency": "closed", "rate": loads.arrival or "poisson", "speed": "trace"}
    return tuple(Load(kind=kinds[kind], value=value) for value in sorted(values))


def read_arms(texts: Sequence[str], answering: Answering) -> "tuple[Arm, ...]":
    """Who is compared. Raises: ValueError for a form that is not understood."""
    from mezzotint.bench.arm import read_arm

    if answering.temperature is not None and not 0 <= answering.temperature < float("inf"):
        raise ValueError(f"--temperature is {answering.temperature:g}; give 0 or more, and a finite number")
    return tuple(read_arm(text, answering.temperature) for text in texts)


def read_config(
    target: str,
    arms: "tuple[Arm, ...]",
    loads: "tuple[Load, ...]",
    tasks: Tasks,
    playing: Playing,
    measuring: Measuring,
) -> "BenchConfig":
    """All of it. Raises: ValueError naming option, value and remedy."""
    from mezzotint.bench.config import BenchConfig, Prices
    from mezzotint.bench.play import PlayConfig

    if measuring.name is not None and (Path(measuring.name).name != measuring.name or "\0" in measuring.name):
        told = f"--name is {measuring.name!r}, which names a place and no run"
        raise ValueError(f"{told}; leave out what leads elsewhere, and name the folder by --output")
    if measuring.max_in_flight is not None and all(load.kind == "closed" for load in loads):
        raise ValueError(f"--max-in-flight is {measuring.max_in_flight}, which is for --rate and traces; drop it")
    played = {
        "deadline_s": playing.deadline,
        "max_attempts": playing.max_attempts,
        "backoff_s": playing.backoff,
        "max_tokens": playing.max_tokens,
    }
    given = {
        "tasks": tasks.n,
        "seed": tasks.seed,
        "rounds": measuring.rounds,
        "warm_up": measuring.warm_up,
        "max_in_flight": measuring.max_in_flight,
    }
    return BenchConfig(
        target=target,
        arms=arms,
        loads=loads,
        play=PlayConfig(**_known(played), tells_verdicts=playing.tell_verdicts),
        prices=Prices(input=playing.input_price, output=playing.output_price, busy=playing.busy_price),
        goals=_read_goals(playing.goal or ()),
        **_known(given),
    )


def _read_trace(tasks: Tasks, common: Mapping[str, Any]) -> "Workload":
    from mezzotint.bench.traces import TraceConfig, measure_tokens, trace_workload

    folder = os.environ.get("MEZZOTINT_DATA")
    given = {
        "file": tasks.trace_file,
        "folder": Path(folder) if folder else None,
        "scale": tasks.scale,
        "most_prompt": tasks.most_prompt,
        "skip": tasks.skip,
        "prose": tasks.prose,
    }
    config = TraceConfig(name=tasks.tasks, ignore_eos=tasks.ignore_eos, **_known(given))
    return trace_workload(config, measure_tokens(config.prose), **common)


def _known(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _numbers(flag: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--{flag} is {text!r}; write numbers with commas between them") from None


def _read_goals(given: Sequence[str]) -> dict[str, float]:
    try:
        return {name: float(seconds) for name, _, seconds in (goal.partition("=") for goal in given)}
    except ValueError:
        raise ValueError(f"--goal is {', '.join(given)}; write FIGURE=SECONDS, as in tta=2") from None
