"""The figures of filled blanks: every way fills the same ones, and what is right is counted as such."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.infilling import fill_blanks, main
from benchmarks.infilling_report import ARMS, Answer, seams_table, ways_table
from mezzotint.llm import LLM
from mezzotint.tasks import FAMILIES
from mezzotint.tasks.infill import whole
from mezzotint.text.parse import Reply
from tests.cli.conftest import write_tiny

PAGE = "above\n\n<!-- infilling: begin -->\nold\n<!-- infilling: end -->\n\nbelow\n"
GIVEN = Answer(
    seed=0,
    arm="tokens",
    has_lines=False,
    wanted="return 1",
    text="return 2",
    passed=False,
    exact=False,
    right_length=True,
    tokens=6,
    forwards=3,
    seconds=0.5,
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny(tmp_path_factory.mktemp("infilling") / "tiny", canvas_length=64, sees=False))


def test_every_way_fills_the_same_blanks_and_the_tables_stand_where_they_belong(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, file = tmp_path / "page.md", tmp_path / "found.json"
    page.write_text(PAGE)
    main(["--model", model, "--n", "2", "--json", str(file), "--write", str(page)])
    told = json.loads(file.read_text())
    assert "python -m benchmarks.infilling --model" in told["run"]["command"]
    assert [(answer["seed"], answer["arm"]) for answer in told["answers"]] == [
        *((0, arm) for arm in ARMS),
        *((1, arm) for arm in ARMS[::-1]),
    ]
    written = page.read_text()
    assert written.startswith("above\n")
    assert written.endswith("below\n")
    assert "old" not in written
    assert written.split("-->")[1].split("<!--")[0].strip() == capsys.readouterr().out.strip()
    assert "| `ar`, prefix only | 2 | " in written


def test_an_answer_is_judged_by_the_tasks_own_verifier(model: str) -> None:
    family, llm = FAMILIES["infill"], LLM(model)
    assert family.accept_continuation is not None
    assert llm.tokenizer is not None
    for answer in fill_blanks(llm, 1):
        example = family.generate(answer.seed, "test")
        passes = family.accept_continuation if answer.arm == "ar" else family.accept
        assert answer.passed == passes(example, Reply(answer.text))
        assert answer.wanted == example.answer
        assert answer.has_lines == ("\n" in example.answer)
        assert (answer.right_length is None) == (answer.arm == "ar")
        assert whole(example, answer.wanted).startswith(example.begins)
        assert answer.forwards > 0 < answer.seconds


def test_shares_are_of_all_blanks_and_a_blind_way_has_no_length() -> None:
    answers = [GIVEN, replace(GIVEN, passed=True, exact=True, forwards=1), replace(GIVEN, right_length=False)]
    row = ways_table({"tokens": answers, "ar": [replace(GIVEN, arm="ar", right_length=None)]}).splitlines()[2:]
    assert row[0].startswith(
        "| diffusion, ids given | 3 | 33.3 % | 6.1 – 79.2 | 33.3 % | 66.7 % | 2.57 | 2.3 | 0.500 |"
    )
    assert row[1].startswith("| `ar`, prefix only | 1 | 0.0 % | 0.0 – 79.3 | 0.0 % | – | 2.00 |")


def test_lines_are_told_apart_and_compared_with_what_ids_alone_give() -> None:
    lines = replace(GIVEN, has_lines=True, wanted="a\nb")
    trained = [GIVEN, replace(GIVEN, text=" "), lines]
    fixed = [replace(answer, arm="fixed") for answer in trained]
    seamed = [replace(answer, arm="surplus", text="return 2") for answer in trained]
    table = seams_table({"tokens": trained, "fixed": fixed, "surplus": seamed}).splitlines()[2:]
    assert [row.split(" | ")[2] for row in table] == ["2", "2", "2", "1", "1", "1"]
    assert [row.split(" | ")[-2] for row in table[:3]] == ["50.0 %", "50.0 %", "0.0 %"]
    assert [row.split(" | ")[-1] for row in table[:3]] == ["– |", "100.0 % |", "50.0 % |"]
    assert seams_table({"tokens": [GIVEN], "fixed": [GIVEN], "surplus": [GIVEN]}).count("\n") == 4


def test_a_number_of_blanks_below_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--n", "0"])
    assert "--n is 0; give 1 or more" in capsys.readouterr().err
