"""Intervals: published values, the equation that defines Wilson's, and what a bootstrap must do."""

from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.evaluate.interval import clustered_interval, ratio_interval, wilson_interval


# Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
@pytest.mark.parametrize(
    ("passed", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_agrees_with_the_published_table(passed: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(passed, n) == pytest.approx((low, high), abs=5e-5)


@given(n=st.integers(1, 2000), data=st.data())
def test_each_end_of_wilson_is_a_rate_from_which_the_observed_one_is_just_in_reach(n: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(0, n))
    interval = wilson_interval(passed, n)
    assert 0 <= interval.low <= passed / n <= interval.high <= 1
    for end in interval:
        reach = 1.959963984540054 * sqrt(end * (1 - end) / n)
        assert abs(passed / n - end) == pytest.approx(reach, abs=1e-7)


def test_wilson_is_wide_where_all_passed() -> None:
    assert wilson_interval(10, 10) == pytest.approx((0.7225, 1.0), abs=5e-5)


@pytest.mark.parametrize(("passed", "n"), [(-1, 3), (4, 3), (0, 0)])
def test_an_impossible_count_is_refused(passed: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"{passed} of {n} passed"):
        wilson_interval(passed, n)


def test_a_ratio_that_is_the_same_everywhere_has_no_width() -> None:
    assert ratio_interval([4, 8, 12], [2, 4, 6]) == (2.0, 2.0)


def test_two_prompts_give_the_four_resamples_that_there_are() -> None:
    assert ratio_interval([0, 10], [1, 1]) == (0.0, 10.0)


def test_a_ratio_of_sums_is_not_a_mean_of_ratios() -> None:
    interval = ratio_interval([100] * 100 + [1] * 100, [100] * 100 + [10] * 100)
    assert 0.85 < interval.low < 10_100 / 11_000 < interval.high < 0.95


def test_four_times_the_prompts_halve_the_width() -> None:
    few, many = (ratio_interval([3, 5, 8, 4] * k, [2, 1, 2, 3] * k) for k in (25, 100))
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(2, rel=0.15)


def test_equal_data_give_equal_intervals() -> None:
    assert ratio_interval([1, 5, 9], [1, 2, 4]) == ratio_interval([1, 5, 9], [1, 2, 4])


@pytest.mark.parametrize(("above", "below"), [([], []), ([1, 2], [1]), ([1], [0])])
def test_a_ratio_needs_pairs_and_denominators_of_at_least_one(above: list[int], below: list[int]) -> None:
    with pytest.raises(ValueError, match="each at least 1"):
        ratio_interval(above, below)


def test_ten_answers_to_a_task_that_agree_are_no_more_than_one() -> None:
    rng = Random(0)
    tasks = [float(rng.random() < 0.5) for _ in range(60)]
    clustered = clustered_interval(tasks)
    single = wilson_interval(int(sum(tasks)), 60)
    assert clustered.high - clustered.low == pytest.approx(single.high - single.low, rel=0.1)
    taken_for_many = wilson_interval(int(sum(tasks)) * 10, 600)
    assert clustered.high - clustered.low > 2.5 * (taken_for_many.high - taken_for_many.low)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_nothing_varies_wilson_keeps_a_width(share: float) -> None:
    assert clustered_interval([share] * 10) == wilson_interval(int(10 * share), 10)
    assert clustered_interval([0.5] * 10) == (0.5, 0.5)


def test_no_task_has_no_interval() -> None:
    with pytest.raises(ValueError, match="there is no task"):
        clustered_interval([])
