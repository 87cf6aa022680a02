"""Training from flags: what reaches the recipe, and how its progress is told."""

import json
from dataclasses import fields
from inspect import signature
from io import StringIO
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from mezzotint.cli import app
from mezzotint.cli.train import HELPS, reporting
from mezzotint.train import lab
from mezzotint.train.config import TrainConfig

ENTRY = {"step": 20, "examples": 320, "elapsed_s": 6.0, "causal": 1.5, "denoise": 2.5, "norm": 0.5}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Calls of the recipe, in its place, bound to its own signature."""
    made: list[dict[str, Any]] = []
    real = signature(lab.train_lab)

    def train_lab(*given: Any, **options: Any) -> Path:
        call = real.bind(*given, **options).arguments
        call["report"](ENTRY)
        made.append(call)
        return Path(call["folder"]) / "checkpoint"

    monkeypatch.setattr(lab, "train_lab", train_lab)
    return made


def train(*arguments: str) -> Result:
    result = CliRunner().invoke(app, ["train", "lab", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_flags_left_out_leave_the_recipe_alone(calls: list[dict[str, Any]]) -> None:
    train()
    [call] = calls
    del call["report"]
    assert call == {
        "folder": Path("runs/lab"), "config": TrainConfig(), "minutes": None, "start": None, "resume": True,
        "compiled": True,
    }  # fmt: skip


def test_every_field_of_the_config_is_a_flag(calls: list[dict[str, Any]]) -> None:
    spelled = {"widths": "8,16", "mixture": "extract=1.0", "on_policy_budgets": "3"}
    values: dict[str, Any] = {"widths": (8, 16), "mixture": {"extract": 1.0}, "on_policy_budgets": (3,)}
    for field in fields(TrainConfig):
        if field.name not in spelled:
            usual: Any = field.default
            values[field.name] = usual + 1 if isinstance(usual, int) else usual / 2 + 0.01
            spelled[field.name] = str(values[field.name])
    train(*(part for name, text in spelled.items() for part in (f"--{name.replace('_', '-')}", text)))
    assert calls[0]["config"] == TrainConfig(**values)


def test_every_help_is_of_a_field() -> None:
    assert set(HELPS) <= {field.name for field in fields(TrainConfig)}


def test_the_other_flags_reach_the_recipe_too(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    result = train("--output", str(tmp_path), "--minutes", "2.5", "--start", "there", "--eager")
    [call] = calls
    assert (call["folder"], call["minutes"], call["start"], call["compiled"]) == (
        tmp_path,
        2.5,
        "there",
        False,
    )
    assert result.stderr == f"the checkpoint is in {tmp_path / 'checkpoint'}\n"


def test_a_run_goes_on_unless_a_fresh_one_is_asked_for(calls: list[Any], tmp_path: Path) -> None:
    (tmp_path / "state.pt").write_text("old")
    train("--output", str(tmp_path))
    train("--output", str(tmp_path), "--fresh")
    assert [call["resume"] for call in calls] == [True, False]


def test_a_fresh_run_whose_start_is_not_there_leaves_the_old_one(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("state.pt", "curve.jsonl")]
    for file in files:
        file.write_text("old")
    options = ["--output", str(tmp_path), "--start", "nowhere", "--fresh", "--eager"]
    result = CliRunner().invoke(app, ["train", "lab", *options])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no folder 'nowhere'" in result.stderr
    assert [file.read_text() for file in files] == ["old", "old"]


@pytest.mark.usefixtures("calls")
def test_without_a_terminal_a_report_is_a_json_line() -> None:
    assert json.loads(train().stdout) == ENTRY


def test_a_loss_that_is_not_finite_is_null(capsys: pytest.CaptureFixture[str]) -> None:
    with reporting(Console(file=StringIO()), 100, None) as report:
        report({**ENTRY, "causal": nan, "norm": inf})
    assert json.loads(capsys.readouterr().out) == {**ENTRY, "causal": None, "norm": None}


@pytest.mark.parametrize(("minutes", "share"), [(None, " 20%"), (0.2, " 50%")])
def test_in_a_terminal_a_bar_shows_the_larger_share_of_steps_and_minutes(minutes: float | None, share: str) -> None:
    out = StringIO()
    terminal = Console(file=out, force_terminal=True, width=120, color_system=None, legacy_windows=False)
    with reporting(terminal, 100, minutes) as report:
        report(ENTRY)
    assert "step 20 of 100 · causal 1.500 · denoise 2.500" in out.getvalue()
    assert share in out.getvalue()


def test_the_bar_shows_the_numbers_of_its_recipe() -> None:
    out = StringIO()
    terminal = Console(file=out, force_terminal=True, width=120, color_system=None, legacy_windows=False)
    with reporting(terminal, 100, None, ("accepted",)) as report:
        report({"step": 20, "elapsed_s": 6.0, "accepted": 1.25})
    assert "step 20 of 100 · accepted 1.250" in out.getvalue()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--minutes", "0"], "--minutes is 0"),
        (["--minutes", "nan"], "--minutes is nan"),
        (["--steps", "0"], "steps is 0"),
        (["--mixture", "extract=0"], "mixture is"),
    ],
)
def test_a_run_that_makes_no_sense_is_refused(calls: list[Any], arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(app, ["train", "lab", *arguments])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert not calls


def test_weights_to_begin_with_are_refused_where_a_run_goes_on(calls: list[Any], tmp_path: Path) -> None:
    (tmp_path / "state.pt").write_text("old")
    result = CliRunner().invoke(app, ["train", "lab", "--output", str(tmp_path), "--start", "there"])
    assert result.exit_code == 2
    assert "--fresh" in result.stderr
    train("--output", str(tmp_path), "--start", "there", "--fresh")
    assert len(calls) == 1


def test_there_are_two_recipes() -> None:
    assert CliRunner().invoke(app, ["train", "elsewhere"]).exit_code == 2
    text = CliRunner().invoke(app, ["train"]).output
    assert all(recipe in text for recipe in ("lab", "drafter"))
