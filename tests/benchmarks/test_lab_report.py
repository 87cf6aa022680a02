"""Made-up scores as tables: every figure in its column, and a gate that failed shown as failed."""

from benchmarks.distribution import Answers, Drawn
from benchmarks.gates import Key
from benchmarks.lab_report import render
from benchmarks.lab_scores import Report
from tests.benchmarks.rows import good_arms, scored


def cells(text: str, begins: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.startswith(begins)]
    return [cell.strip() for cell in line.strip("|").split("|")]


def page(*more: Key, drawn: Drawn | None = None, **told: object) -> str:
    arms = good_arms()
    for key in more:
        arms[key] = scored(key.task, key.decoder, key.budget, kernels=key.kernels, **told)  # type: ignore[arg-type]
    return render(Report(run={"commit": "abc", "weights": "123"}, scored=list(arms.values()), drawn=drawn))


def test_a_good_model_is_shown_to_meet_everything() -> None:
    text = page()
    assert "13 of 13 are met." in text
    assert "unmet" not in text
    assert cells(text, "| `extract`, diffusion passes")[1:] == [
        "≥ 80 %", "≥ 92 %", "99.0 %", "96.4 – 99.7", "200", "met, goal too",
    ]  # fmt: skip
    assert cells(text, "| commit") == ["commit", "abc"]


def test_a_gate_that_fails_is_shown_as_failed() -> None:
    text = page(Key("call", "ar", 0), passed=180)
    assert "12 of 13 are met." in text
    assert cells(text, "| `call`, ar passes") == [
        "`call`, ar passes", "≥ 95 %", "", "90.0 %", "85.1 – 93.4", "200", "**unmet**",
    ]  # fmt: skip


def test_a_goal_that_is_missed_and_a_gate_without_runs_are_shown_as_such() -> None:
    assert cells(page(Key("call", "diffusion", 16), passed=160), "| `call`, diffusion passes")[-1] == "met, goal not"
    text = render(Report(run={}, scored=[scored("extract", "ar", passed=198)]))
    assert "1 of 13 are met." in text
    assert cells(text, "| `repair`, ar passes")[3:] == ["not measured", "", "", "**unmet**"]
    assert "### Eager" not in text


def test_each_kind_of_arm_has_its_row() -> None:
    text = page(Key("chat", "mtp", 0), Key("sudoku", "verified", 16), passed=0, rate=2.25, seconds=0.0314)
    assert cells(text, "| `chat` | mtp") == ["`chat`", "mtp", "–", "200", "0 %", "0.0 – 1.9", "2.2", "–", "0.031"]
    assert cells(text, "| `sudoku` | verified")[4:] == ["0 %", "0.0 – 1.9", "2.2", "4.2", "0.031"]
    assert cells(text, "| `chat` | diffusion | 48")[2:] == ["48", "200", "99.0 %", "96.4 – 99.7", "9.0", "4.2", "0.050"]
    assert cells(text, "| `infill` | ar | –")[3:] == ["200", "50.0 %", "43.1 – 56.9", "1", "–", "0.100"]


def test_both_kernels_have_a_table_of_their_own() -> None:
    compiled, eager = page().split("### Eager")
    assert compiled.count("| `extract` | ar | – |") == 1
    assert eager.split("###")[0].count("| `extract` |") == 2


def test_signs_are_counted_by_family_at_the_usual_budget() -> None:
    text = page().split("### Answers that went wrong")[1]
    assert cells(text, "| `chat` | diffusion") == ["`chat`", "diffusion", "200", "10", "20", "30", "40", "50"]
    assert cells(text, "| `chat` | ar") == ["`chat`", "ar", "200", "10", "20", "30", "40", "50"]
    assert len([line for line in text.splitlines() if line.startswith("| `")]) == 20


def test_both_sides_and_their_difference_are_shown() -> None:
    ours = Answers((True,) * 90 + (False,) * 10, (4, 5) * 50)
    theirs = Answers((True,) * 80 + (False,) * 20, (4, 6) * 50)
    text = page(drawn=Drawn(ours, theirs))
    assert cells(text, "| Mezzotint") == ["Mezzotint", "100", "90.0 %", "82.6 – 94.5", "4.50"]
    assert cells(text, "| transformers' `generate`")[1:] == ["100", "80.0 %", "71.1 – 86.7", "5.00"]
    said = " ".join(text.splitlines()[-3:])
    assert "+10.0 points passed (95 %: +0.0 to +19.9; equal sides lie as far apart with chance 0.05)" in said
    assert "-0.50 steps (-0.72 to -0.28; 0.00)" in said
    assert "A test at 1 % finds nine in ten of rates that are 19.8 points apart." in said
    assert "transformers" not in page()
