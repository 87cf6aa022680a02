"""Policies are compared on the same prompts, and an interval says how far others would have moved the figure."""

import pytest

from benchmarks.routing_scores import Task, acceptance, best, choose_oracle, compare, mean_seconds


def tasks(*seconds: float, accepted: bool = True) -> list[Task]:
    return [Task(value, accepted) for value in seconds]


def test_a_policy_that_is_twice_as_fast_on_every_prompt_is_so_without_doubt() -> None:
    slow = tasks(*(0.1 + index / 50 for index in range(40)))
    fast = [task._replace(seconds=task.seconds / 2) for task in slow]
    standing = compare(fast, slow)
    assert standing.slower.value == pytest.approx(0.5)
    assert standing.slower.interval.low == pytest.approx(0.5) == standing.slower.interval.high
    assert standing.more_accepted.value == 0


def test_an_interval_holds_the_value_and_narrows_with_more_prompts() -> None:
    some, many = tasks(*[0.1, 0.5] * 10), tasks(*[0.1, 0.5] * 200)
    for figure in (mean_seconds(some), mean_seconds(many)):
        assert figure.value == pytest.approx(0.3)
        assert figure.interval.low < 0.3 < figure.interval.high
    width = [figure.interval.high - figure.interval.low for figure in (mean_seconds(some), mean_seconds(many))]
    assert width[1] < width[0] / 3


def test_acceptance_is_compared_prompt_by_prompt() -> None:
    others = tasks(0.1, 0.1, 0.1) + tasks(1.0, accepted=False)
    ours = tasks(0.1, 0.1, 0.1, 0.2)
    standing = compare(ours, others)
    assert standing.more_accepted.value == pytest.approx(0.25)
    assert acceptance(others).value == pytest.approx(0.75)
    assert standing.more_accepted.interval.low == 0  # prompts on which both agree may have been drawn alone


def test_the_best_policy_has_the_least_mean_not_the_least_median() -> None:
    assert best({"often": tasks(0.1, 0.1, 9.0), "steady": tasks(0.5, 0.5, 0.5)}) == "steady"


def test_an_oracle_takes_for_each_family_the_arm_that_was_fastest_there() -> None:
    arms = {
        "ar": {"copy": tasks(0.3, 0.3), "rule": tasks(0.2, 0.2)},
        "diffusion": {"copy": tasks(0.1, 0.1), "rule": tasks(0.4, 0.4)},
    }
    assert choose_oracle(arms) == {"copy": "diffusion", "rule": "ar"}


def test_other_prompts_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="1 tasks stand beside 2; give the same prompts"):
        compare(tasks(0.1), tasks(0.1, 0.2))
