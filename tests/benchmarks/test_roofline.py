"""The measurement behind the cpu's constants: it runs, its points alternate, and what it keeps can be read again."""

from pathlib import Path

import pytest

from benchmarks.roofline import Point, as_json, fit_points, forwards, lab_setting, main, measure, read_points
from benchmarks.roofline_fit import forward_ms
from mezzotint.bench.operators import Forward
from mezzotint.bench.roofline import Efficiency
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.train.lab import initialise
from tests.benchmarks.tiny import CONFIG


def test_the_points_on_disk_are_those_that_are_measured() -> None:
    assert [point.forward for point in read_points()] == list(forwards())


def test_the_fit_sees_no_point_that_it_is_tested_on() -> None:
    points = read_points()
    spoilt = [point._replace(taken_ms=1e6) if place % 2 else point for place, point in enumerate(points)]
    assert fit_points(spoilt) == fit_points(points)


def test_a_fit_recovers_the_constants_that_made_its_points() -> None:
    made = Efficiency(bandwidth=0.5, products=0.4, attention=0.3, kernel_us=2.0, logit_passes=50.0, host_ms=0.1)
    points = [Point(forward, forward_ms(lab_setting(), forward, made)) for forward in forwards()]
    found = fit_points(points)
    for point in points:
        assert forward_ms(lab_setting(), point.forward, found) == pytest.approx(point.taken_ms, rel=0.02)


@pytest.mark.parametrize(
    "forward", [Forward(2, 8, 16, 8, denoises=True), Forward(1, 8, 16, denoises=True), Forward(2, 1, 16, 1)]
)
def test_a_forward_takes_some_time(forward: Forward) -> None:
    assert measure(initialise(DiffusionGemma(CONFIG), seed=0), forward, budget_s=0.0) > 0


def test_what_is_kept_can_be_read_again(tmp_path: Path) -> None:
    points = [Point(Forward(1, 8, 16, 8, denoises=True), 1.25), Point(Forward(1, 1, 16, 1), 0.5)]
    (tmp_path / "points.json").write_text(as_json(["--measure"], points))
    assert read_points(tmp_path / "points.json") == points


def test_both_tables_are_printed_without_measuring(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    printed = capsys.readouterr().out
    assert "| vLLM, diffusion, h200, tokens/s | 1288 |" in printed
    assert printed.count("| test |") == len(read_points()) // 2


def test_keeping_what_was_not_measured_is_refused() -> None:
    with pytest.raises(SystemExit):
        main(["--write"])
