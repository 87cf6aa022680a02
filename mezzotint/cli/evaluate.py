"""`mezzotint evaluate`: flags in, rows out; how answers are scored is said by the evaluate room."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mezzotint.cli.flags import unfold
from mezzotint.cli.judging import Judging
from mezzotint.cli.options import Compiled, Decoding, Device, Drafter, Dtype, Loading, Threads, choose_target
from mezzotint.cli.suite import Asking, Shared, evaluate_suite, refuse_without_suite

if TYPE_CHECKING:
    from mezzotint.evaluate.config import EvaluateConfig
    from mezzotint.evaluate.run import Answer


def _option(help: str) -> Any:
    return typer.Option(help=help)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The fields of EvaluateConfig as flags spell them; None leaves one to it."""

    tasks: Annotated[
        str | None, _option("Task families, with commas between; all unless given, with presets all but infill.")
    ] = None
    decoder: Annotated[str | None, _option("Decoders, with commas between; diffusion,ar unless given.")] = None
    n: Annotated[
        int | None, typer.Option("--n", help="Prompts of each task; 200 unless given, of a suite all of its file.")
    ] = None
    seed: Annotated[int | None, _option("Same seed, same prompts and same answers; 0 unless given.")] = None
    steps: Annotated[
        str | None,
        _option("Step budgets of diffusion, with commas between, a row each; the model's unless given."),
    ] = None
    sampler: Annotated[str | None, _option("Of diffusion; report with the checkpoint's own numbers unless given.")] = (
        None
    )
    temperature: Annotated[
        float | None, _option("Of every decoder; 1 for diffusion and 0 for the others unless given.")
    ] = None
    preset: Annotated[
        str | None,
        _option("fast, balanced or best, with commas between, a row each; no decoder's own then unless given too."),
    ] = None
    form: Annotated[
        str | None,
        _option("free, grammar or both with a comma: whether answers follow what prompts declare; free unless given."),
    ] = None


@unfold
def evaluate(
    asked: Asked,
    asking: Asking,
    judging: Judging,
    model: Annotated[
        str,
        typer.Argument(help="A bundled model, a folder or a hub id; MODEL:DECODER names the decoder too."),
    ] = "lab",
    device: Device = None,
    dtype: Dtype = None,
    threads: Threads = None,
    compiled: Compiled = None,
    drafter: Drafter = None,
    output: Annotated[
        Path | None, _option("Write every answer to this file, one JSON object a line; a suite goes on with it.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one list of objects, one a row; of a suite an object with all.")
    ] = False,
) -> None:
    """Score a model on held-out tasks, one row for each task, decoder and step budget, or on a suite.

    All decoders answer the same prompts, taking turns. A suite is put to one arm, of a checkpoint or of a server. In a
    terminal a bar shows the progress.
    """
    loading = Loading(model=model, device=device, dtype=dtype, threads=threads, compiled=compiled, drafter=drafter)
    if asking.suite is not None:
        _refuse_tasks(asked, loading, asking)
        shared = Shared(**{item.name: getattr(asked, item.name) for item in fields(Shared)})
        evaluate_suite(asking, judging, shared, loading, output, as_json=as_json)
        return
    refuse_without_suite(asking, judging)
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.cli.answer import set_up
    from mezzotint.evaluate.run import answer_prompts
    from mezzotint.evaluate.score import score
    from mezzotint.evaluate.table import format_table

    target = choose_target(model, asked.decoder)
    config = read(replace(asked, decoder=target.decoder))
    llm = set_up(replace(loading, model=target.model), Decoding()).llm
    with _recording(output) as record:
        rows = score(_follow(answer_prompts(llm, config), config.answers, record))
    print(json.dumps([asdict(row) for row in rows], allow_nan=False) if as_json else format_table(rows))


def _refuse_tasks(asked: Asked, loading: Loading, asking: Asking) -> None:
    """Raises: ValueError for flags that say nothing of a suite, or of a server."""
    if asked.tasks is not None:
        raise ValueError(f"--tasks is {asked.tasks!r}, but --suite {asking.suite!r}; give one of them")
    if asking.url is not None and loading != Loading():
        raise ValueError("a checkpoint and how it runs are named, but --url asks a server; drop one of the two")


def read(asked: Asked) -> "EvaluateConfig":
    """What an evaluation is told by its flags. Raises: ValueError naming flag, value and remedy."""
    from mezzotint.evaluate.config import BLANKS, EvaluateConfig
    from mezzotint.tasks import FAMILIES

    tasks, presets = _split(asked.tasks), _split(asked.preset)
    if tasks is None and presets is not None:
        tasks = tuple(task for task in FAMILIES if task not in BLANKS)
    decoders = () if asked.preset is not None and asked.decoder is None else _split(asked.decoder)
    options: dict[str, Any] = {
        "tasks": tasks,
        "decoders": decoders,
        "presets": presets,
        "n": asked.n,
        "seed": asked.seed,
        "steps": _budgets(asked.steps),
        "sampler": asked.sampler,
        "temperature": asked.temperature,
        "forms": _split(asked.form),
    }
    return EvaluateConfig(**{name: value for name, value in options.items() if value is not None})


def _split(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(part.strip() for part in text.split(","))


def _budgets(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--steps is {text!r}; write whole numbers with commas between them") from None


@contextmanager
def _recording(output: Path | None) -> "Iterator[Callable[[Answer], None]]":
    """What to call with each answer; a run that is cut short leaves what it had. Raises: ValueError for a used file."""
    if output is None:
        yield lambda answer: None
        return
    if output.exists() and output.stat().st_size:
        raise ValueError(f"--output is {output}, which holds answers already; name another file, or remove it")
    with output.open("w", encoding="utf-8") as file:
        yield lambda answer: print(
            json.dumps(answer.record(), ensure_ascii=False, allow_nan=False), file=file, flush=True
        )


def _follow(answers: "Iterable[Answer]", total: int, record: "Callable[[Answer], None]") -> "Iterator[Answer]":
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("answers", total=total)
        for answer in answers:
            record(answer)
            progress.update(bar, advance=1, description=answer.prompt.task)
            yield answer
