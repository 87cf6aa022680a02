"""The figures of choices: what calibration error and Brier score are, and who chooses at what cost."""

import json
from pathlib import Path

import pytest

from benchmarks.choosing import main
from benchmarks.choosing_report import Answer, brier_score, calibration_error
from tests.cli.conftest import write_tiny

PAGE = "above\n\n<!-- choosing: begin -->\nold\n<!-- choosing: end -->\n\nbelow\n"


def answer(*probabilities: float, right: int = 0) -> Answer:
    return Answer(
        seed=0, decoder="ar", variant="single", probabilities=probabilities, right=right, forwards=len(probabilities)
    )


def test_who_is_as_often_right_as_it_is_sure_is_calibrated() -> None:
    honest = [answer(0.75, 0.25, right=int(place == 0)) for place in range(4)]
    assert calibration_error(honest) == 0
    assert calibration_error([answer(0.75, 0.25, right=1)]) == 0.75
    assert calibration_error([answer(1.0, 0.0)] * 3) == 0


def test_the_calibration_error_is_weighted_by_bins() -> None:
    sure, unsure = [answer(0.95, 0.05)] * 3, [answer(0.55, 0.45, right=1)]
    assert calibration_error([*sure, *unsure]) == pytest.approx((3 * 0.05 + 0.55) / 4)
    assert calibration_error([*sure, *unsure], bins=1) == pytest.approx(abs(0.75 - (3 * 0.95 + 0.55) / 4))


def test_the_brier_score_is_the_squared_distance_from_what_was_right() -> None:
    assert brier_score([answer(1.0, 0.0)]) == 0
    assert brier_score([answer(1.0, 0.0, right=1)]) == 2
    assert brier_score([answer(0.6, 0.3, 0.1)]) == pytest.approx(0.16 + 0.09 + 0.01)
    assert brier_score([answer(0.25, 0.25, 0.25, 0.25, right=2)]) == pytest.approx(0.75)


def test_of_equal_probabilities_the_first_is_taken() -> None:
    assert answer(0.5, 0.5).is_right
    assert not answer(0.5, 0.5, right=1).is_right


def test_both_decoders_choose_at_the_same_prompts_and_their_forwards_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(write_tiny(tmp_path / "tiny", canvas_length=64, sees=False))
    page, file = tmp_path / "page.md", tmp_path / "found.json"
    page.write_text(PAGE)
    main(["--model", model, "--n", "4", "--json", str(file), "--write", str(page)])
    told = json.loads(file.read_text())
    assert "python -m benchmarks.choosing --model" in told["run"]["command"]
    found = told["answers"]
    assert [(each["seed"], each["decoder"]) for each in found[:4]] == [
        (0, "diffusion"),
        (0, "ar"),
        (1, "diffusion"),
        (1, "ar"),
    ]
    for each in found:
        assert sum(each["probabilities"]) == pytest.approx(1)
        assert each["forwards"] == (1 if each["decoder"] == "diffusion" else len(each["probabilities"]))
    written = page.read_text()
    assert "old" not in written
    assert written.split("-->")[1].split("<!--")[0].strip() == capsys.readouterr().out.strip()
    assert "\n| all | `diffusion` | 4 | " in written
    assert "\n| all | `ar` | 4 | " in written


def test_a_number_of_prompts_below_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--n", "0"])
    assert "--n is 0; give 1 or more" in capsys.readouterr().err
