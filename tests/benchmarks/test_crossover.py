"""Ratios of two decoders by concurrency, and where they pass 1."""

from math import inf

import numpy as np
import pytest

from benchmarks.crossover import (
    FIGURES,
    Answers,
    accepted_a_second,
    find_crossing,
    median_latency,
    ratio_curve,
    tokens_a_second,
)

LEVELS = [1, 2, 4, 8]
RNG = np.random.default_rng(1)


def answers(scale: float, n: int = 40, accepted: float = 1.0) -> Answers:
    """Prompts of which some are harder for everybody, at a latency of `scale` times what they need."""
    hard = np.linspace(1, 5, n)
    return Answers(50 * np.ones(n), accepted * np.ones(n), scale * hard)


def test_what_one_slot_gives() -> None:
    found = Answers(np.array([10.0, 30.0]), np.array([1.0, 0.0]), np.array([2.0, 6.0]))
    assert (tokens_a_second(found), accepted_a_second(found), median_latency(found)) == (5.0, 0.125, 4.0)


@pytest.mark.parametrize(
    ("ratios", "crossing"),
    [
        ([2.0, 2.0, 0.5, 0.4], 2**1.5),
        ([2.0, 1.0, 0.5, 0.4], 2.0),
        ([4.0, 2.0, 2 ** (1 / 2), 0.5], 2 ** (2 + 1 / 3)),
        ([2.0, 0.5, 2.0, 0.5], 2**0.5),
        ([3.0, 2.0, 1.5, 1.1], inf),
        ([2.0, inf, 0.5, 0.5], 2**1.5),
    ],
)
def test_a_ratio_that_falls_below_one_does_so_between_two_levels(ratios: list[float], crossing: float) -> None:
    assert find_crossing(LEVELS, ratios, begins_ahead=True) == pytest.approx(crossing)
    assert find_crossing(LEVELS, [1 / ratio for ratio in ratios], begins_ahead=False) == pytest.approx(crossing)


def test_a_resample_that_begins_on_the_other_side_has_crossed_before() -> None:
    assert find_crossing(LEVELS, [0.9, 0.8, 0.7, 0.6], begins_ahead=True) == 0.0
    assert find_crossing(LEVELS, [0.9, 0.8, 1.7, 0.6], begins_ahead=True) == 0.0


def test_what_is_hard_for_both_leaves_the_interval_narrow() -> None:
    over, under = ({level: answers(scale) for level in LEVELS} for scale in (2.0, 1.0))
    for figure, value in (("tokens/s", 0.5), ("accepted/s", 0.5), ("p50", 2.0)):
        curve = ratio_curve(over, under, FIGURES[figure])
        assert [point.ratio for point in curve.points] == pytest.approx([value] * 4)
        assert all(point.interval == pytest.approx((value, value)) for point in curve.points)
        assert curve.crossing is None


def test_a_noisy_ratio_crosses_somewhere_in_its_interval() -> None:
    over, under = {}, {}
    for level, factor in zip(LEVELS, [0.4, 0.7, 1.4, 2.0], strict=True):
        over[level] = answers(factor)._replace(latency_s=factor * RNG.uniform(0.5, 1.5, 40))
        under[level] = answers(1)._replace(latency_s=RNG.uniform(0.5, 1.5, 40))
    curve = ratio_curve(over, under, tokens_a_second)
    low, high = curve.crossing_interval
    assert curve.crossing is not None
    assert 1 < low < curve.crossing < high < 8
    assert 2 < curve.crossing < 4
    for point in curve.points:
        assert point.interval.low < point.ratio < point.interval.high
    assert ratio_curve(over, under, tokens_a_second) == curve, "equal data agree"


def test_where_neither_has_a_right_answer_they_are_equal_and_where_one_has_none_it_is_behind() -> None:
    right, wrong = {1: answers(1)}, {1: answers(1, accepted=0.0)}
    assert ratio_curve(wrong, wrong, accepted_a_second).points[0].ratio == 1
    assert ratio_curve(wrong, right, accepted_a_second).points[0].ratio == 0
    assert ratio_curve(right, wrong, accepted_a_second).points[0].ratio == inf
