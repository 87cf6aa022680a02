"""`mezzotint evaluate --suite`: flags in, a row out; what is asked, and how it is judged, the evaluate room says."""

import json
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mezzotint.cli.commands import read_commands
from mezzotint.cli.judging import Judged, Judging, judge_answers, open_judge
from mezzotint.cli.options import Decoding, Loading, choose_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from mezzotint.evaluate.ask import Record
    from mezzotint.evaluate.config import Arm
    from mezzotint.evaluate.endpoint import EndpointAnswerer
    from mezzotint.evaluate.local import LocalAnswerer
    from mezzotint.evaluate.question import Answerer, Suite
    from mezzotint.evaluate.session import Plan

_URL_AT_ONCE = 8


def _option(help: str) -> Any:
    return typer.Option(help=help)


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is asked of whom, and how often; None leaves an option to the evaluate room."""

    suite: Annotated[
        str | None, _option("Instead of --tasks: humaneval, mbpp+, gsm8k, extract …, or a folder of your own tasks.")
    ] = None
    url: Annotated[str | None, _option("Ask a server with OpenAI's protocol, by its URL up to and with /v1.")] = None
    name: Annotated[str | None, typer.Option("--name", "-m", help="The model's name at --url.")] = None
    data: Annotated[Path | None, _option("The folder of benchmark files; MEZZOTINT_DATA unless given.")] = None
    epochs: Annotated[int | None, _option("Times that each question is asked, with other seeds; 1 unless given.")] = (
        None
    )
    k: Annotated[int | None, typer.Option("--k", help="Of pass@k and pass^k; the epochs unless given.")] = None
    max_tokens: Annotated[int | None, _option("Most tokens of an answer; the suite's own unless given.")] = None
    at_once: Annotated[int | None, _option("Questions asked at once, of --url only; 8 unless given.")] = None
    command: Annotated[
        list[str] | None, _option("NAME=COMMAND that verifiers of a folder may name; may be given several times.")
    ] = None
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Run what answers hold without a sandbox, with all that this user may do.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The flags that suites have in common with tasks, as they were written."""

    decoder: str | None
    n: int | None
    seed: int | None
    steps: str | None
    sampler: str | None
    temperature: float | None
    preset: str | None
    form: str | None


def refuse_without_suite(asking: Asking, judging: Judging) -> None:
    """Raises: ValueError naming a flag that only suites have."""
    for part in (asking, judging):
        for item in fields(part):
            if getattr(part, item.name) != item.default:
                raise ValueError(f"--{item.name.replace('_', '-')} is for suites: name one by --suite, or drop it")


def evaluate_suite(
    asking: Asking, judging: Judging, shared: Shared, loading: Loading, output: Path | None, *, as_json: bool
) -> None:
    """Put a suite to a model, and print its row. Raises: ValueError naming flag, value and remedy."""
    import asyncio

    from mezzotint.evaluate.sandbox import SandboxError

    try:
        errors = asyncio.run(_evaluate(asking, judging, shared, loading, output, as_json=as_json))
    except SandboxError as error:
        raise ValueError(f"{error}: --unsafe") from error
    if errors:
        typer.echo(f"{errors} answers are missing; the same command with --output asks for them again", err=True)
        raise typer.Exit(1)


async def _evaluate(
    asking: Asking, judging: Judging, shared: Shared, loading: Loading, output: Path | None, *, as_json: bool
) -> int:
    """Returns: how many answers could not be had."""
    from mezzotint.evaluate.session import run_suite
    from mezzotint.evaluate.suite_table import format_notes, format_rows

    plan = _read_plan(asking, shared, output)
    async with AsyncExitStack() as stack:
        if judge := open_judge(judging, asking.url, asking.name):
            await stack.enter_async_context(judge)
        suite = _read_suite(asking, shared, judge)
        if asking.url:
            answerer: Answerer = await stack.enter_async_context(_open_server(asking, shared))
        else:
            answerer = _open_checkpoint(asking, shared, loading, plan)
        with _following(len(suite.questions) * plan.epochs) as note:
            result = await run_suite(suite, answerer, plan, note)
        judged = Judged() if judge is None else await judge_answers(judging, judge, suite, result)
    if as_json:
        told = {"rows": [asdict(result.row)], "skipped": dict(suite.skipped), "note": suite.note, **judged.told}
        print(json.dumps(told, allow_nan=False))
    else:
        print("\n".join(part for part in (format_rows([result.row]), format_notes(suite), *judged.lines) if part))
    return result.row.errors


def _read_plan(asking: Asking, shared: Shared, output: Path | None) -> "Plan":
    from mezzotint.evaluate.session import Plan

    if asking.at_once is not None and not asking.url:
        raise ValueError(f"--at-once is {asking.at_once}, but a checkpoint here is asked one by one; drop it")
    at_once = _URL_AT_ONCE if asking.url and asking.at_once is None else asking.at_once
    given = {"epochs": asking.epochs, "seed": shared.seed, "at_once": at_once}
    return Plan(k=asking.k, output=output, **{name: value for name, value in given.items() if value is not None})


def _read_suite(asking: Asking, shared: Shared, judge: Any) -> "Suite":
    from mezzotint.evaluate.suites import read_suite

    folder = asking.data or (Path(os.environ["MEZZOTINT_DATA"]) if os.environ.get("MEZZOTINT_DATA") else None)
    return read_suite(
        str(asking.suite),
        data=folder,
        n=shared.n,
        seed=shared.seed or 0,
        max_tokens=asking.max_tokens,
        commands=read_commands(asking.command or ()),
        judge=judge,
        walls=not asking.unsafe,
    )


def _open_server(asking: Asking, shared: Shared) -> "EndpointAnswerer":
    from mezzotint.evaluate.endpoint import EndpointAnswerer, EndpointOptions

    if asking.name is None:
        raise ValueError("--url needs the model's name there; give it by -m")
    if not str(asking.url).startswith(("http://", "https://")):
        raise ValueError(f"--url is {asking.url!r}; write http://HOST:PORT/v1 or https://…")
    options: dict[str, Any] = {
        "decoder": shared.decoder,
        "sampler": shared.sampler,
        "steps": _one_budget(shared),
        "preset": shared.preset,
        "temperature": shared.temperature,
        "form": shared.form or "free",
    }
    key = os.environ.get("OPENAI_API_KEY") or "none"
    return EndpointAnswerer(str(asking.url), asking.name, key, EndpointOptions(**options))


def _open_checkpoint(asking: Asking, shared: Shared, loading: Loading, plan: "Plan") -> "LocalAnswerer":
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.cli.answer import set_up
    from mezzotint.evaluate.local import LocalAnswerer

    if asking.name is not None:
        raise ValueError(f"--name is {asking.name!r}, which is for --url; name a checkpoint as the argument")
    target = choose_target(loading.model, shared.decoder)
    arm = _read_arm(replace(shared, decoder=target.decoder))
    if plan.epochs > 1 and arm.decoder != "diffusion" and arm.temperature == 0:
        told = f"decoder {arm.decoder} at temperature 0 answers alike in every epoch"
        raise ValueError(f"{told}; give --temperature, or ask for one epoch")
    llm = set_up(replace(loading, model=target.model), Decoding()).llm
    return LocalAnswerer(llm, Path(target.model).name, arm)


def _read_arm(shared: Shared) -> "Arm":
    from mezzotint.evaluate.config import arm_of

    return arm_of(
        decoder=shared.decoder,
        sampler=shared.sampler,
        steps=_one_budget(shared),
        temperature=shared.temperature,
        form=shared.form or "free",
        preset=shared.preset,
    )


def _one_budget(shared: Shared) -> int | None:
    if shared.steps is None:
        return None
    try:
        return int(shared.steps)
    except ValueError:
        raise ValueError(f"--steps is {shared.steps!r}; a suite is asked with one budget: give one number") from None


@contextmanager
def _following(total: int) -> "Iterator[Callable[[Record], None]]":
    """What to call with each record; in a terminal a bar follows."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("answers", total=total)
        yield lambda record: progress.update(bar, advance=1)
