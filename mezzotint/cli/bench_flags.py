"""The flags that the verbs of `mezzotint bench` share; what their values mean is said by the bench room.

No default of that room stands here: a flag left out is left to it, and its number is repeated in the help alone.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer


def _option(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help)


@dataclass(frozen=True, kw_only=True)
class Answering:
    """Who answers."""

    url: Annotated[
        str | None, _option("Measure a server with OpenAI's protocol in place of a checkpoint; its models by -m.")
    ] = None
    arms: Annotated[
        list[str] | None,
        _option(
            "MODEL[@STEPS][,plan=MODEL][,tool=MODEL][,retry=MODEL], an arm each, as in lab, lab:ar, lab@4.",
            "--model",
            "-m",
        ),
    ] = None
    api_key_env: Annotated[str | None, _option("The environment variable that holds the key for --url.")] = None
    temperature: Annotated[
        float | None, _option("Of every arm; 0 of ar, verified and mtp, and the server's own of others, unless given.")
    ] = None
    prefix_cache: Annotated[
        bool,
        typer.Option(
            "--prefix-cache",
            help="Let the server that is started for a checkpoint share prefixes, although arms repeat all prompts.",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """What is asked."""

    tasks: Annotated[
        str, _option("Task families with commas between, agent, a FILE.jsonl, or azure-code, azure-conv, mooncake.")
    ] = "extract"
    n: Annotated[int | None, _option("Tasks for each arm at each load; 48 unless given.", "--n")] = None
    seed: Annotated[int | None, _option("Same seed, same tasks, arrivals and seeds of requests; 0 unless given.")] = (
        None
    )
    retrieval: Annotated[float, _option("Seconds that a task waits for documents before it asks.")] = 0.0
    hops: Annotated[int | None, _option("agent only: hops of a task, or a few more; 24 unless given.")] = None
    tool_wait: Annotated[float | None, _option("agent only: seconds that a tool takes; 0.05 unless given.")] = None
    trace_file: Annotated[Path | None, _option("Traces only: the file; sought in MEZZOTINT_DATA unless given.")] = None
    scale: Annotated[float | None, _option("Traces only: of all lengths; 1 unless given.")] = None
    most_prompt: Annotated[int | None, _option("Traces only: tokens that a prompt is cut to; 100000 unless given.")] = (
        None
    )
    skip: Annotated[int | None, _option("Traces only: requests before the first that is used; 0 unless given.")] = None
    prose: Annotated[
        Path | None, _option("Traces only: a text to cut prompts from; Python's standard library unless given.")
    ] = None
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Traces only: let answers be as long as the trace has them.")
    ] = False
    command: Annotated[
        list[str] | None, _option("NAME=COMMAND that a file's verifiers may name; may be given several times.")
    ] = None
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Run what answers hold without a sandbox, with all that this user may do.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class Playing:
    """How a task is played, and what counts as good."""

    deadline: Annotated[
        float | None, _option("Seconds from a task's arrival, after which it is given up; 60 unless given.")
    ] = None
    max_attempts: Annotated[int | None, _option("Attempts at one hop; 2 unless given.")] = None
    backoff: Annotated[
        float | None,
        _option("Seconds before a failed request is tried again, doubled each time; 0.1 unless given."),
    ] = None
    max_tokens: Annotated[int | None, _option("Most tokens of an answer; 256 unless given.")] = None
    tell_verdicts: Annotated[
        bool,
        typer.Option("--tell-verdicts", help="Tell a router what became of each of its answers, so that it learns."),
    ] = False
    goal: Annotated[
        list[str] | None, _option("FIGURE=SECONDS that good tasks keep to, of ttfc, e2e, tta and itl; several times.")
    ] = None
    input_price: Annotated[float, _option("Dollars a million tokens read.")] = 0.0
    output_price: Annotated[float, _option("Dollars a million tokens written.")] = 0.0
    busy_price: Annotated[float, _option("Dollars a second in which the server worked.")] = 0.0


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """How it is measured, and where it is kept."""

    rounds: Annotated[int | None, _option("Parts in which arms take turns, A B then B A; 2 unless given.")] = None
    warm_up: Annotated[
        int | None, _option("Tasks before each part that do not count; one a slot, or 1, unless given.")
    ] = None
    max_in_flight: Annotated[
        int | None, _option("With a rate: unfinished tasks, above which one is dropped; 256 unless given.")
    ] = None
    output: Annotated[Path, _option("The folder for what is measured: a database, lines, the report.")] = Path("bench")
    name: Annotated[str | None, _option("The run's name in it; the verb's unless given.")] = None
    as_json: Annotated[bool, typer.Option("--json", help="Print one object instead of tables.")] = False


@dataclass(frozen=True, kw_only=True)
class Loads:
    """How much is asked at once, or how often, one of them; 1 at once, or a trace as it was recorded, unless given."""

    concurrency: Annotated[str | None, _option("Tasks at once, with commas between: as one ends the next arrives.")] = (
        None
    )
    rate: Annotated[str | None, _option("Tasks a second, with commas between, whatever became of earlier ones.")] = None
    arrival: Annotated[str | None, _option("With --rate: poisson or constant; poisson unless given.")] = None
    speed: Annotated[str | None, _option("Traces only: times faster than they were recorded, with commas between.")] = (
        None
    )
