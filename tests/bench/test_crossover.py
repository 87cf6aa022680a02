"""Crossovers of constructed times, at loads that are known."""

from collections.abc import Callable
from math import exp, inf, log

import numpy as np
import pytest

from mezzotint.bench.crossover import Crossover, Times, find_crossover, find_zero

LOADS = (1.0, 2.0, 4.0, 8.0, 16.0)
DEADLINE = 60.0


def times(seconds: list[float], accepted: list[float] | None = None) -> Times:
    return Times(seconds, accepted or [1.0] * len(seconds), DEADLINE)


def cross(log_ratio: Callable[[float], float], *, spread: float = 0.0, n: int = 60) -> Crossover:
    """Prompts that are as hard for both arms; their log ratio at a load is log_ratio, with a spread of their own."""
    draw = np.random.default_rng(7)
    hard, own = np.exp(draw.normal(0, 1, n)), draw.normal(0, 1, n) * spread
    first = {
        load: times([float(each * exp(log_ratio(load) + more)) for each, more in zip(hard, own, strict=True)])
        for load in LOADS
    }
    second = {load: times(list(map(float, hard))) for load in LOADS}
    return find_crossover(first, second)


def test_a_crossover_at_a_known_load_is_found_and_its_interval_holds_it() -> None:
    found = cross(lambda load: 0.5 * log(load / 6.0), spread=0.1)
    assert found.load == pytest.approx(6.0, rel=0.1)
    assert found.interval.low < 6.0 < found.interval.high
    assert found.interval.low > 4.0
    assert found.interval.high < 9.0
    assert found.told.startswith(f"{found.load:.2g} (")


def test_without_spread_the_interval_is_the_point() -> None:
    found = cross(lambda load: 0.5 * log(load / 6.0))
    assert found.load == pytest.approx(6.0)
    assert found.interval == pytest.approx((6.0, 6.0))
    assert [point.ratio for point in found.points] == pytest.approx([(load / 6) ** 0.5 for load in LOADS])


def test_an_arm_that_is_faster_everywhere_or_nowhere_has_no_crossover_in_range() -> None:
    faster = cross(lambda load: -0.5, spread=0.1)
    assert (faster.load, faster.interval) == (inf, (inf, inf))
    assert faster.told == "none in range: faster up to 16"
    slower = cross(lambda load: 0.5, spread=0.1)
    assert (slower.load, slower.interval) == (0.0, (0.0, 0.0))
    assert slower.told == "none in range: slower from 1 on"


def test_a_bound_that_replicates_do_not_have_in_range_is_open() -> None:
    high = cross(lambda load: 0.5 * log(load / 14.0), spread=0.6)
    assert 8 < high.load < inf
    assert high.interval.high == inf
    assert high.told.endswith("to > 16)")
    low = cross(lambda load: 0.5 * log(load / 1.15), spread=0.6)
    assert 1 < low.load < 2
    assert low.interval.low == 0
    assert "(< 1 to" in low.told


def test_what_is_hard_for_both_arms_does_not_widen_the_interval() -> None:
    found = cross(lambda load: 0.5 * log(load / 6.0), spread=0.01)
    assert found.interval.high / found.interval.low < 1.1, "though prompts differ by factors"


def test_a_task_that_was_not_accepted_counts_as_its_deadline_at_least() -> None:
    failed = times([0.1, 70.0, 1.0], [0.0, 0.0, 1.0])
    assert list(failed.censored) == [60.0, 70.0, 1.0]
    fast_but_wrong = {load: times([0.1] * 9, [0.0] * 9) for load in LOADS}
    right = {load: times([1.0] * 9) for load in LOADS}
    assert find_crossover(fast_but_wrong, right).load == 0.0


def test_time_spent_an_accepted_task_counts_failures_by_their_time() -> None:
    first = {load: times([1.0] * 4, [1.0, 0.0, 1.0, 0.0]) for load in LOADS}
    second = {load: times([1.5] * 4) for load in LOADS}
    found = find_crossover(first, second, "expected")
    assert [point.ratio for point in found.points] == pytest.approx([2.0 / 1.5] * 5)
    assert find_crossover(second, first, "expected").load == inf


def test_an_arm_that_never_succeeds_is_slower_without_end() -> None:
    never = {load: times([1.0] * 4, [0.0] * 4) for load in LOADS}
    always = {load: times([1.0] * 4) for load in LOADS}
    assert find_crossover(never, always, "expected").points[0].ratio == inf
    assert find_crossover(never, never, "expected").points[0].ratio == 1.0


def test_a_dip_among_the_loads_is_pooled_with_its_neighbours() -> None:
    assert find_zero([1, 2, 4], np.array([-1.0, 0.2, -0.4])) == inf, "0.2 and −0.4 are −0.1 on average"
    assert find_zero([1, 2, 4, 8], np.array([-1.0, 0.3, -0.1, 1.0])) == pytest.approx(exp(log(2) * 10 / 11))


def test_arms_that_were_not_measured_alike_are_refused() -> None:
    one = {1.0: times([1.0]), 2.0: times([1.0])}
    for other in ({1.0: times([1.0])}, {1.0: times([1.0]), 2.0: times([1.0, 2.0])}, {}):
        with pytest.raises(ValueError, match="measure both at the same"):
            find_crossover(one, other)
