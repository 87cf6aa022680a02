"""The page of the command line: as the commands are, and whole."""

from dataclasses import fields

import pytest

from mezzotint import SamplingParams
from mezzotint.cli.document import page
from mezzotint.train.config import DrafterConfig, TrainConfig
from tests.disk import document


def test_the_page_on_disk_is_the_one_that_the_commands_write() -> None:
    assert document("docs/cli.md") == page(), "run `make docs`"


def test_every_verb_and_flag_is_on_the_page() -> None:
    sections = dict(part.split("\n", 1) for part in page().split("\n## ")[1:])
    verbs = {
        "generate": SamplingParams,
        "chat": SamplingParams,
        "train lab": TrainConfig,
        "train drafter": DrafterConfig,
    }
    for verb, config in verbs.items():
        for field in fields(config):
            assert f"| `--{field.name.replace('_', '-')}" in sections[f"mezzotint {verb}"]
    assert "`mezzotint generate [OPTIONS] {PROMPT}`" in sections["mezzotint generate"]
    assert "| `--json` |" in sections["mezzotint models"]
    assert "| `--version` |" in sections["mezzotint"]


def test_the_page_is_the_same_in_any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = page()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert page() == usual
