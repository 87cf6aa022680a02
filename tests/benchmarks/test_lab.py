"""The report on the bundled model: what is run for it, and what its command line does with it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import lab
from benchmarks.distribution import Answers, Drawn
from benchmarks.gates import Key, key_of
from benchmarks.lab_scores import Report, read_report, score_arms, write_report
from mezzotint.evaluate.config import EvaluateConfig
from mezzotint.llm import LLM, Completion
from mezzotint.tasks import FAMILIES
from tests.benchmarks.rows import good_arms, scored
from tests.evaluate.canned import Call, CannedLLM, completion
from tests.model.compiler import needs_compiler

DRAWN = Drawn(Answers((True, True, False), (4, 5, 9)), Answers((True, False, False), (3, 5, 8)))
PAGE = "# Lab\n\nabove\n\n<!-- report: begin -->\nold\n<!-- report: end -->\n\nbelow\n"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A report that was run before, of a model that repairs too little."""
    arms = [*good_arms().values(), scored("repair", "ar", passed=109)]
    write_report(tmp_path / "lab.json", Report(run={"commit": "abc"}, scored=arms, drawn=DRAWN))
    return tmp_path / "lab.json"


def answer(call: Call) -> Completion:
    """Right on even seeds; the time is the same for all."""
    seed = call.params.seed or 0
    right = FAMILIES["parallel_rule"].generate(seed, "test").answer
    return completion(right if seed % 2 == 0 else "0", call.params, steps=(3,), encodes=25, tokens=25)


def test_each_arm_keeps_what_became_of_every_prompt_in_its_order() -> None:
    config = EvaluateConfig(tasks=("parallel_rule",), n=4, steps=(4, 16))
    seen: list[object] = []

    def follow(answers: Any) -> Iterator[Any]:
        for each in answers:
            seen.append(each)
            yield each

    found = list(score_arms(cast(LLM, CannedLLM(answer)), config, "eager", follow))
    assert [(each.row.decoder, each.row.step_budget) for each in found] == [
        ("diffusion", 4),
        ("diffusion", 16),
        ("ar", 0),
    ]
    for each in found:
        assert each.kernels == "eager"
        assert each.accepted == (True, False, True, False)
        assert each.seconds == (0.75,) * 4
        assert each.row.pass_rate == 0.5
    assert len(seen) == 12


def test_what_is_kept_is_read_as_it_was(kept: Path) -> None:
    report = read_report(kept)
    assert report.scored == [*good_arms().values(), scored("repair", "ar", passed=109)]
    assert report.drawn == DRAWN
    write_report(kept, report)
    assert read_report(kept) == report


@pytest.mark.parametrize("text", ["{", "[]", '{"run": {}, "scored": [{}], "drawn": null}'])
def test_what_is_no_report_is_refused_by_name(text: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"other\.json is no report of this version"):
        read_report(path)


def test_a_kept_report_is_written_into_its_place_without_a_run(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(lab, "LLM")
    page = kept.with_name("page.md")
    page.write_text(PAGE)
    assert lab.main(["--from", str(kept), "--write", str(page)]) == 0
    above, below = (PAGE.split("<!-- report: begin -->")[0], PAGE.split("<!-- report: end -->")[1])
    written = page.read_text()
    assert written.startswith(above)
    assert written.endswith(below)
    assert "old" not in written
    assert "12 of 13 are met." in written
    assert written.split("-->")[1].split("<!--")[0].strip() == capsys.readouterr().out.strip()


def test_a_gate_that_fails_fails_the_check(kept: Path) -> None:
    assert lab.main(["--from", str(kept), "--check"]) == 1
    write_report(kept, Report(run={}, scored=list(good_arms().values())))
    assert lab.main(["--from", str(kept), "--check"]) == 0


@needs_compiler
@pytest.mark.slow
def test_a_run_has_every_decoder_and_budget_and_both_kernels(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "lab.json"
    told = ["--tasks", "extract,parallel_rule", "--n", "2", "--others", "3", "--against-transformers", "2"]
    lab.main([*told, "--json", str(path)])
    report = read_report(path)
    arms = [("diffusion", budget) for budget in (4, 8, 16, 48)] + [("ar", 0), ("verified", 0), ("mtp", 0)]
    asked = [Key(task, *arm) for task in ("extract", "parallel_rule") for arm in arms]
    asked += [Key("extract", decoder, budget, "eager") for decoder, budget in (("diffusion", 16), ("ar", 0))]
    assert [key_of(each) for each in report.scored] == asked
    assert [each.row.n for each in report.scored] == [2] * 7 + [3] * 7 + [2] * 2
    assert report.drawn is not None
    assert all(min(side.steps) >= 2 and len(side.accepted) == 2 for side in report.drawn)
    assert re.fullmatch(r"[0-9a-f]{12}", report.run["weights"])
    assert report.run["command"].startswith("python -m benchmarks.lab --tasks extract,parallel_rule")
    assert json.loads(path.read_text())["drawn"]["theirs"]["steps"] == list(report.drawn.theirs.steps)


@pytest.mark.parametrize("count", ["0", "1", "-3", "many"])
def test_too_few_prompts_are_refused(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        lab.main([f"--n={count}"])
    assert f"{count!r} is no number of prompts; give 2 or more" in capsys.readouterr().err
