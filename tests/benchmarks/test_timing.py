"""Calls in turn, and what is said of their times, by a clock that the calls themselves move."""

from collections.abc import Callable

import pytest

from benchmarks.timing import Times, as_measured, compare, one_more, time_in_turn


class Clock:
    """Seconds that pass only when a call takes them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order: list[str] = []

    def __call__(self) -> float:
        return self.now

    def taking(self, name: str, seconds: float) -> Callable[[int], None]:
        def call(turn: int) -> None:
            self.order.append(f"{name}{turn}")
            self.now += seconds * (1 + turn)

        return call


def test_each_call_gets_one_time_a_round_and_the_warm_up_none() -> None:
    clock = Clock()
    calls = {"a": clock.taking("a", 1), "b": clock.taking("b", 10)}
    assert time_in_turn(calls, 3, clock=clock) == {"a": (1, 2, 3), "b": (10, 20, 30)}


def test_every_second_round_runs_backwards() -> None:
    clock = Clock()
    time_in_turn({"a": clock.taking("a", 1), "b": clock.taking("b", 1)}, 3, clock=clock)
    assert clock.order == "a0 b0 a0 b0 b1 a1 a2 b2".split()


def test_less_than_one_round_is_refused() -> None:
    with pytest.raises(ValueError, match="rounds is 0"):
        time_in_turn({}, 0)


def test_one_more_step_is_what_the_longer_run_takes_more() -> None:
    assert one_more([10.0, 12.0, 30.0], [2.0, 4.0, 6.0], 4) == Times((2.0, 2.0, 6.0), 2.0)
    assert one_more([10.0, 12.0], [6.0, 2.0], 2).minimum == 4, "of both minima, not the least difference"


def test_a_ratio_is_of_medians_and_its_interval_holds_it() -> None:
    ratio = compare(as_measured([8.0, 9.0, 40.0]), as_measured([2.0, 3.0, 3.0]))
    assert (ratio.value, ratio.of_minima) == (3, 4)
    assert ratio.interval.low <= 3 <= ratio.interval.high
    assert ratio.interval.high > ratio.interval.low


def test_rounds_are_resampled_as_pairs() -> None:
    slow_round = [1.0, 1.0, 1.0, 50.0, 50.0]
    ratio = compare(as_measured([4 * value for value in slow_round]), as_measured(slow_round))
    assert ratio.interval == (4, 4)
