"""Which arms others beat."""

from mezzotint.bench.pareto import Spot, find_dominated


def test_an_arm_is_beaten_by_one_that_is_better_in_one_and_not_worse_in_the_other() -> None:
    spots = [Spot("slow", 0.9, 2.0), Spot("fast", 0.9, 1.0), Spot("best", 0.95, 3.0), Spot("bad", 0.5, 1.0)]
    assert find_dominated(spots) == {"slow": "fast", "bad": "fast"}


def test_equal_arms_do_not_beat_each_other() -> None:
    assert find_dominated([Spot("a", 0.9, 1.0), Spot("b", 0.9, 1.0, is_reference=True)]) == {}
