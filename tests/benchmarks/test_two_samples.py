"""Comparisons of two samples: figures from the literature, and the error rates that a test is said to have."""

from math import comb, sqrt

import pytest

from benchmarks.two_samples import compare_means, compare_rates, detectable_difference, difference_interval


def test_the_interval_of_a_difference_is_the_published_one() -> None:
    """Newcombe 1998, table II, method 10: 56/70 − 48/80 and 9/10 − 3/10."""
    assert difference_interval(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert difference_interval(9, 10, 3, 10) == pytest.approx((0.1705, 0.8090), abs=5e-5)


def test_two_rates_are_told_apart_by_the_pooled_z() -> None:
    found = compare_rates(45, 50, 30, 50)
    assert found.difference == pytest.approx(0.3)
    assert found.p_value == pytest.approx(0.000532, rel=2e-3)  # z = 0.3 ÷ √(0.75 · 0.25 · 0.04)
    assert compare_rates(30, 50, 45, 50).p_value == found.p_value


@pytest.mark.parametrize("passed", [0, 7, 10])
def test_equal_rates_are_never_told_apart_and_have_an_interval(passed: int) -> None:
    found = compare_rates(passed, 10, 2 * passed, 20)
    assert found.p_value == 1
    assert found.interval.low < 0 < found.interval.high


def chance_of_alarm(rate: float, other: float, n: int, alpha: float) -> float:
    """That rates of `n` trials each are told apart, summed over all outcomes."""
    chances = [[comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)] for p in (rate, other)]
    return sum(
        first * second
        for k, first in enumerate(chances[0])
        for m, second in enumerate(chances[1])
        if first * second > 1e-12 and compare_rates(k, n, m, n).p_value < alpha
    )


def test_equal_rates_raise_an_alarm_as_seldom_as_is_said_and_different_ones_as_often() -> None:
    n, alpha, rate = 120, 0.01, 0.91
    assert chance_of_alarm(rate, rate, n, alpha) == pytest.approx(alpha, abs=0.003)
    assert chance_of_alarm(0.98, 0.85, n, alpha) >= 0.9  # as tests/contract/test_lab.py says
    half = detectable_difference(rate, n, n, alpha=alpha, power=0.9) / 2
    assert 0.9 <= chance_of_alarm(rate + half, rate - half, n, alpha) <= 0.96


def test_two_means_are_told_apart_by_their_errors() -> None:
    found = compare_means([1.0, 2.0, 3.0], [4.0, 6.0])
    error = sqrt(1 / 3 + 2 / 2)
    assert found.difference == -3
    assert found.interval == pytest.approx((-3 - 1.95996 * error, -3 + 1.95996 * error), abs=1e-4)
    assert found.p_value == pytest.approx(0.00937, abs=1e-4)  # z = 3 ÷ 1.1547


def test_constants_are_equal_or_they_are_not() -> None:
    assert compare_means([2, 2], [2, 2]).p_value == 1
    assert compare_means([2, 2], [3, 3]).p_value == 0
