"""A run from beginning to end, and on from where an earlier one was."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mezzotint.evaluate.ask import Record
from mezzotint.evaluate.journal import read_journal
from mezzotint.evaluate.question import AnswerError
from mezzotint.evaluate.session import Plan, Result, run_suite
from tests.evaluate.asked import Scribe, suite


def run(scribe: Scribe, *ids: str, noted: list[Record] | None = None, **options: Any) -> Result:
    note = (noted if noted is not None else []).append
    return asyncio.run(run_suite(suite(*ids), scribe, Plan(**options), note))


def test_a_run_goes_on_with_its_file_and_asks_only_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    first = Scribe(lambda id, seed: AnswerError("away") if id == "b" else "yes")
    row = run(first, "a", "b", "c", output=path).row
    assert (row.answers, row.errors, row.pass_rate) == (2, 1, 1.0)
    second, noted = Scribe(lambda id, seed: "no"), list[Record]()
    result = run(second, "a", "b", "c", output=path, noted=noted)
    assert [id for id, _ in second.asked] == ["b"]
    assert [record.id for record in noted] == ["a", "c", "b"]
    assert (result.row.answers, result.row.errors) == (3, 0)
    assert result.row.pass_rate == pytest.approx(2 / 3)
    whole = run(Scribe(lambda id, seed: "no" if id == "b" else "yes"), "a", "b", "c")
    assert result.row == whole.row
    assert len(read_journal(path)[1]) == 4  # with the one that was in vain


def test_more_epochs_and_more_questions_go_on_with_a_file_and_fewer_take_a_part(tmp_path: Path) -> None:
    path = tmp_path / "answers"
    run(Scribe(lambda id, seed: "yes"), "a", output=path)
    scribe = Scribe(lambda id, seed: "no")
    row = run(scribe, "a", "b", output=path, epochs=2).row
    assert [id for id, _ in scribe.asked] == ["b", "a", "b"]
    assert (row.answers, row.pass_rate, row.k, row.pass_at_k, row.pass_all_k) == (4, 0.25, 2, 0.5, 0.0)
    idle = Scribe(lambda id, seed: "no")
    assert run(idle, "a", output=path).row.pass_rate == 1.0
    assert idle.asked == []


def test_a_file_of_another_seed_is_refused(tmp_path: Path) -> None:
    run(Scribe(lambda id, seed: "yes"), "a", output=tmp_path / "answers")
    with pytest.raises(ValueError, match="seed is 0, not 1"):
        run(Scribe(lambda id, seed: "yes"), "a", output=tmp_path / "answers", seed=1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"epochs": 0}, "epochs is 0; ask each question 1 to 1000 times"),
        ({"epochs": 2, "k": 3}, "k is 3; take 1 to 2, the epochs"),
        ({"k": 0}, "k is 0; take 1 to 1"),
        ({"at_once": 0}, "at_once is 0; ask at least 1"),
        ({"seed": -1}, "seed is -1; it must lie between 0 and"),
    ],
)
def test_a_plan_that_cannot_be_kept_is_refused(options: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Plan(**options)  # type: ignore[arg-type]
