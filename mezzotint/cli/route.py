"""`mezzotint route explain` and `route table`: what a fleet would do with a prompt, and what it has measured."""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from mezzotint.cli.flags import unfold
from mezzotint.cli.options import Loading

if TYPE_CHECKING:
    from mezzotint.router.fleet import Fleet

_COLUMNS = {  # of the ledger, and what they are called here
    "arm": "arm",
    "kind": "class",
    "load": "load",
    "requests": "requests",
    "acceptance": "accepted",
    "rescued": "rescued",
    "seconds": "first s",
    "accepted_p50_s": "p50 s",
    "accepted_p95_s": "p95 s",
    "cost_per_accepted_usd": "$ each",
}
File = Annotated[Path, typer.Option("--fleet", help="The file of arms, as `mezzotint serve` is given it.")]


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What of a request shapes a decision, besides its prompt."""

    schema: Annotated[Path | None, typer.Option(help="A JSON Schema that the answer is to follow.")] = None
    goal: Annotated[str, typer.Option(help="auto, auto:fast, auto:cheap, auto:best, or an arm to pin.")] = "auto"
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens of the answer.")] = None
    deadline: Annotated[float | None, typer.Option(help="Seconds that all attempts may take together.")] = None
    max_cost: Annotated[float | None, typer.Option(help="Dollars that they may cost.")] = None


@unfold
def explain(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What would be asked.")],
    file: File,
    loading: Loading,
    asking: Asking,
) -> None:
    """Say which arms a fleet would try for a prompt, and why, without running any of them.

    It knows what the ledger holds, and takes every arm to be up and idle.
    """
    fleet = _load(file, loading)
    print(asyncio.run(_explain(fleet, _write_body(prompt, asking))))


@unfold
def table(
    file: File,
    loading: Loading,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object a row.")] = False,
) -> None:
    """Print what a fleet has measured: a row for each arm, class of task and load.

    accepted: share of judged first attempts; rescued: requests accepted thanks to a fallback; first s: median of first
    attempts; p50, p95: of time to accepted; $ each: all that was spent ÷ accepted requests.
    """
    rows = asyncio.run(_read_table(_load(file, loading)))
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    shown = Table(box=None)
    for name, title in _COLUMNS.items():
        shown.add_column(title, justify="left" if name in ("arm", "kind") else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*(_show(row[name]) for name in _COLUMNS))
    wide = None if sys.stdout.isatty() else 160
    Console(width=wide).print(shown if rows else "Nothing is measured yet, by this configuration.")


def _load(file: Path, loading: Loading) -> "Fleet":
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.cli.fleet import load_fleet

    return load_fleet(file, loading).fleet


async def _explain(fleet: "Fleet", body: dict[str, Any]) -> str:
    from mezzotint.server.errors import ApiError

    await fleet.recall()
    try:
        return fleet.explain(body)
    except ApiError as error:
        raise ValueError(error.message) from error
    finally:
        await fleet.stop()


async def _read_table(fleet: "Fleet") -> list[dict[str, Any]]:
    try:
        return [dict(row) for row in await fleet.table()]
    finally:
        await fleet.stop()


def _write_body(prompt: str, asking: Asking) -> dict[str, Any]:
    body: dict[str, Any] = {"model": asking.goal, "messages": [{"role": "user", "content": prompt}]}
    if asking.schema is not None:
        schema = json.loads(asking.schema.read_text(encoding="utf-8"))
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    if asking.max_tokens is not None:
        body["max_tokens"] = asking.max_tokens
    route: dict[str, Any] = {"explore": False}  # what it would do, not what it might try
    route |= {"deadline_ms": asking.deadline and asking.deadline * 1000, "max_cost_usd": asking.max_cost}
    body["x_route"] = {name: value for name, value in route.items() if value is not None}
    return body


def _show(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
