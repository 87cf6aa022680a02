"""Intervals of constructed data."""

import numpy as np
import pytest

from mezzotint.bench.interval import percentiles, quantile_interval, ratio_interval, wilson


def test_wilsons_interval_is_the_published_one_and_has_a_width_at_both_ends() -> None:
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)  # Newcombe 1998, table I
    assert wilson(0, 20) == pytest.approx((0, 0.1611), abs=1e-4)
    assert wilson(20, 20) == pytest.approx((0.8389, 1), abs=1e-4)


def test_a_median_of_independent_values_has_the_interval_of_order_statistics() -> None:
    values = list(range(1, 101))
    low, high = quantile_interval(values, range(100), 0.5)
    assert (low, high) == pytest.approx((40, 61), abs=2)  # binomial order statistics of n = 100


def test_values_of_one_task_are_drawn_together_so_that_the_interval_is_as_wide_as_tasks_make_it() -> None:
    values = [float(task) for task in range(10) for _ in range(50)]
    clusters = [task for task in range(10) for _ in range(50)]
    low, high = quantile_interval(values, clusters, 0.5)
    alone = quantile_interval(values, range(500), 0.5)
    assert high - low >= 4 > alone.high - alone.low


def test_many_values_give_the_same_interval_as_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(np.random.default_rng(1).random(40))
    whole = quantile_interval(values, range(40), 0.95)
    monkeypatch.setattr("mezzotint.bench.interval._CELLS", 1000)
    assert quantile_interval(values, range(40), 0.95) == whole


def test_a_ratio_is_of_sums_and_open_where_nothing_may_be_under_it() -> None:
    assert ratio_interval([2, 4, 6], [1, 2, 3]) == (2, 2)
    low, high = ratio_interval([1, 1, 1], [1, 0, 0])
    assert (low, high) == (1, np.inf)


def test_infinite_ends_stay_infinite() -> None:
    assert percentiles(np.array([1.0] * 90 + [np.inf] * 10)) == (1, np.inf)
