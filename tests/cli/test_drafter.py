"""Training a drafter from flags: what reaches the recipe."""

import json
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mezzotint.cli import app
from mezzotint.train import drafter
from mezzotint.train.config import DrafterConfig

ENTRY = {"step": 20, "examples": 280, "elapsed_s": 6.0, "loss": 1.5, "accepted": 2.5, "norm": 0.5}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Calls of the recipe, in its place, bound to its own signature."""
    made: list[dict[str, Any]] = []
    real = signature(drafter.train_drafter)

    def train_drafter(*given: Any, **options: Any) -> Path:
        call = real.bind(*given, **options).arguments
        call.pop("report")(ENTRY)
        made.append(call)
        return Path(call["folder"]) / "checkpoint"

    monkeypatch.setattr(drafter, "train_drafter", train_drafter)
    return made


def train(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["train", "drafter", *arguments])


def test_flags_left_out_leave_the_recipe_alone(calls: list[dict[str, Any]]) -> None:
    result = train()
    assert json.loads(result.stdout) == ENTRY
    assert calls == [
        {
            "folder": Path("runs/drafter"),
            "config": DrafterConfig(),
            "target": "lab",
            "minutes": None,
            "resume": True,
        }
    ]


def test_every_flag_reaches_the_recipe(calls: list[dict[str, Any]], tmp_path: Path) -> None:
    values: dict[str, Any] = {"mixture": {"repeat": 1.0}}
    for field in fields(DrafterConfig):
        if field.name != "mixture":
            usual: Any = field.default
            values[field.name] = usual + 1 if isinstance(usual, int) else usual / 2 + 0.01
    spelled = {name: "repeat=1.0" if name == "mixture" else str(value) for name, value in values.items()}
    flags = [part for name, text in spelled.items() for part in (f"--{name.replace('_', '-')}", text)]
    result = train(*flags, "--target", "there", "--output", str(tmp_path), "--minutes", "2.5", "--fresh")
    assert result.stderr == f"the checkpoint is in {tmp_path / 'checkpoint'}\n"
    config = DrafterConfig(**values)
    assert calls == [{"folder": tmp_path, "config": config, "target": "there", "minutes": 2.5, "resume": False}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--minutes", "nan"], "--minutes is nan"),
        (["--guesses", "0"], "guesses is 0"),
        (["--steps", "0"], "steps is 0"),
    ],
)
def test_a_run_that_makes_no_sense_is_refused(calls: list[Any], arguments: list[str], words: str) -> None:
    result = train(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert not calls


def test_a_fresh_run_whose_target_is_not_there_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "state.pt").write_text("old")
    result = train("--output", str(tmp_path), "--target", "nowhere", "--fresh")
    assert result.exit_code == 2
    assert "there is no folder 'nowhere'" in result.stderr
    assert (tmp_path / "state.pt").read_text() == "old"
