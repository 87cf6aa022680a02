"""Dataclasses as flags."""

from dataclasses import dataclass, field
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner, Result

from mezzotint.cli.flags import unfold


@dataclass(frozen=True, kw_only=True)
class Shape:
    size: int = 3
    name: Annotated[str | None, typer.Option(help="What it is called.")] = None
    sides: tuple[int, ...] = (1, 2)
    shares: dict[str, float] = field(default_factory=lambda: {"a": 0.5})


def run(*arguments: str) -> Result:
    app = typer.Typer()

    @app.command()
    @unfold
    def draw(title: str, shape: Shape, twice: bool = False) -> None:
        print((title, shape, twice))

    return CliRunner().invoke(app, list(arguments))


def test_a_verb_is_called_with_whole_dataclasses() -> None:
    assert run("t").stdout == f"{('t', Shape(), False)}\n"


def test_each_field_is_a_flag() -> None:
    result = run("t", "--size", "4", "--name", "n", "--sides", "5,6,7", "--shares", "b=1,c=2.5", "--twice")
    wanted = Shape(size=4, name="n", sides=(5, 6, 7), shares={"b": 1.0, "c": 2.5})
    assert result.stdout == f"{('t', wanted, True)}\n"


def test_help_tells_defaults_and_how_a_list_is_written() -> None:
    text = run("--help").stdout
    for words in (
        "What it is called.",
        "[default: 3]",
        "N,N,…",
        "[default: 1,2]",
        "NAME=SHARE,…",
        "[default: a=0.5]",
    ):
        assert words in text


@pytest.mark.parametrize("arguments", [["--sides", "1,x"], ["--shares", "a"], ["--shares", "a=x"], ["--size", "x"]])
def test_what_is_no_number_is_refused(arguments: list[str]) -> None:
    assert run("t", *arguments).exit_code == 2
