"""Arms are asked before there is traffic, and the ledger knows them afterwards."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mezzotint.cli import app

FLEET = '[[local]]\nname = "canvas"\nsteps = 2\n[[local]]\nname = "plain"\ndecoder = "ar"\ntemperature = 0\n'


@pytest.fixture
def run(tiny: Path, tmp_path: Path) -> Callable[..., Result]:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    return lambda *arguments: CliRunner().invoke(app, [*arguments, "--fleet", str(file), "--model", str(tiny)])


def test_every_arm_is_measured_at_every_load_and_known_from_then_on(run: Callable[..., Result]) -> None:
    done = run(
        "calibrate", "--loads", "1,2", "--rounds", "2", "--tasks", "choose", "--probes", "3", "--max-tokens", "8"
    )
    assert done.exit_code == 0, done.output
    assert "8 of 8" in done.stderr
    rows = [json.loads(line) for line in run("route", "table", "--json").stdout.splitlines()]
    assert {(row["arm"], sum(r["requests"] for r in rows if r["arm"] == row["arm"])) for row in rows} == {
        ("canvas", 6),
        ("plain", 6),
    }
    assert all(row["verdicts"] == row["requests"] for row in rows)
    assert "nothing is measured yet" not in run("route", "explain", "Hello", "--max-tokens", "8").stdout


def test_chats_of_a_file_are_asked_and_none_is_judged(run: Callable[..., Result], tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}) + "\n")
    done = run("calibrate", "--loads", "1", "--rounds", "1", "--file", str(file))
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in run("route", "table", "--json").stdout.splitlines()]
    assert {row["arm"] for row in rows} <= {"canvas", "plain"}
    assert all(row["verdicts"] == 0 or row["acceptance"] == 0 for row in rows), "an empty answer is one that failed"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--loads", "one"], "write whole numbers"),
        (["--loads", "0"], "at least 1"),
        (["--tasks", "infill"], "no chat can ask"),
        (["--tasks", "nothing"], "choose from extract"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_loaded(
    run: Callable[..., Result], flags: list[str], told: str
) -> None:
    done = run("calibrate", *flags)
    assert done.exit_code == 2
    assert told in done.stderr
