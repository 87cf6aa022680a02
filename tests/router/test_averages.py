"""Averages that forget: the exact solver against scipy's, what groups keep, and ratios against numpy's."""

import numpy as np
import pytest
from scipy.optimize import nnls

from mezzotint.router.averages import Line, Means, Ratios


@pytest.mark.parametrize("seed", range(8))
def test_the_line_is_the_one_that_scipy_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 4.0, (40, 3))
    y = x @ rng.uniform(-1.0, 1.0, 3) + rng.normal(0.0, 0.1, 40)
    line = Line(3, 1e12)
    for row, value in zip(x, y, strict=True):
        line.note(tuple(row), value)
    expected, _ = nnls(x, y)
    found = [line.predict(tuple(row)) for row in np.eye(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_a_line_without_observations_predicts_nothing() -> None:
    assert Line(2, 10.0).predict((1.0, 5.0)) == 0.0


def test_a_line_forgets_by_weight() -> None:
    line = Line(1, 10.0)
    line.note((1.0,), 1.0, weight=10.0)
    line.note((1.0,), 4.0, weight=10.0)
    assert line.predict((1.0,)) == pytest.approx(3.0, rel=1e-3)  # 10 that count half, and 10


def test_much_of_one_group_does_not_wash_out_another() -> None:
    grouped, mixed = Line(2, 20.0), Line(2, 20.0)
    for group, count in ((1, 50), (8, 2000)):
        for _ in range(count):
            grouped.note((1.0, group), 2.0 + 3.0 * group, group=group)
            mixed.note((1.0, group), 2.0 + 3.0 * group)
    assert grouped.predict((1.0, 1.0)) == pytest.approx(5.0, rel=1e-3)
    assert mixed.predict((1.0, 1.0)) > 10.0


def test_a_signed_line_may_fall() -> None:
    line = Line(2, 1e6, is_signed=True)
    for x in range(20):
        line.note((1.0, float(x)), 10.0 - 0.5 * x)
    assert line.predict((1.0, 10.0)) == pytest.approx(5.0, rel=1e-3)


def test_a_mean_is_shrunk_to_its_prior_by_four_observations() -> None:
    means = Means(1e9)
    for _ in range(4):
        means.note("a", 10.0)
    assert means.mean("a", 2.0) == pytest.approx(6.0)
    assert means.mean("b", 2.0) == 2.0
    assert means.plain("b", 7.0) == 7.0


def test_ratios_are_told_of_the_last_256_only() -> None:
    ratios = Ratios()
    rng = np.random.default_rng(0)
    values = rng.lognormal(0.1, 0.3, 400).clip(0.01, 100.0)
    for value in values:
        ratios.note(float(value))
    last = values[-256:]
    for share in (0.05, 0.5, 0.95, 1.0):
        assert ratios.quantile(share) == pytest.approx(np.quantile(last, share))
    kept = np.sort(last)[6:-6]
    assert ratios.bias == pytest.approx(kept.mean())
    assert ratios.deviation == pytest.approx(np.log(kept).std())


def test_one_stall_moves_the_bias_by_no_more_than_a_hundredth() -> None:
    ratios = Ratios()
    for _ in range(100):
        ratios.note(1.0)
    ratios.note(90.0)
    assert ratios.bias == pytest.approx(1.0, abs=0.01)


def test_a_few_ratios_correct_only_in_part_and_leave_the_spread_assumed() -> None:
    ratios = Ratios()
    assert ratios.bias == 1.0
    for _ in range(5):
        ratios.note(16.0)
    assert ratios.bias == pytest.approx(2.0)
    assert ratios.quantile(0.95) > 1.5 * ratios.bias
