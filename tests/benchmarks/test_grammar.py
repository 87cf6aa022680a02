"""The figures of the grammars: the whole suite is counted, and every question is timed."""

import re
from pathlib import Path

import pytest

from benchmarks.grammar import main
from benchmarks.grammar_step import QUESTIONS


def test_every_schema_of_the_suite_is_counted_and_every_question_timed(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--walks", "3", "--data", str(data_dir), "--step", "lab", "--rounds", "1"])
    printed = capsys.readouterr().out
    assert "| all | 2277 | 1291 (56.7%) | 1072 (47.1%) |" in printed
    for name in (
        "read the vocabulary",
        "narrow and compile",
        "forced",
        "mask",
        "copy",
        "closure",
        "mask on the logits",
        "count_valid, valid ids",
    ):
        assert f"\n| {name} | " in printed
    [beside] = re.findall(r"A denoising step of lab: [\d.]+ ms\n\n(?:\|.*\n){2}((?:\|.*\n)+)", printed)
    assert [line.split(" | ")[0] for line in beside.splitlines()] == [f"| {name}" for name in QUESTIONS]
    assert beside.count("%") == 2 * len(QUESTIONS)
