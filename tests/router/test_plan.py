"""Plans of attempts: the fast form against the plain one, the best order, ceilings, and its time."""

import time
from itertools import permutations
from math import exp, log
from statistics import median

import numpy as np
import pytest

from mezzotint.router.plan import Choices, Terms, weigh_plans

TERMS = Terms(time=1.0, money=100.0, miss_s=50.0, deadline_s=4.0, most_cost_usd=None, most_attempts=3, verifies=True)


def draw_choices(seed: int, arms: int, *, independent: bool = False) -> Choices:
    rng = np.random.default_rng(seed)
    acceptance = rng.uniform(0.2, 0.95, arms)
    second = np.tile(acceptance, (arms, 1))
    return Choices(
        seconds=rng.uniform(0.1, 3.0, arms),
        cost_usd=rng.uniform(0.0, 0.01, arms),
        deviation=rng.uniform(0.05, 0.6, arms),
        acceptance=acceptance,
        failure=rng.uniform(0.0, 0.2, arms),
        second=second if independent else second * rng.uniform(0.1, 1.0, (arms, arms)),
    )


def weigh_slowly(choices: Choices, terms: Terms, plan: list[int]) -> float:
    """The objective of one plan, attempt by attempt."""
    seconds = money = answered = 0.0
    reach, left = 1.0, terms.deadline_s
    for place, arm in enumerate(plan):
        took = float(choices.seconds[arm])
        rate = float(choices.acceptance[arm])
        for before in plan[:place]:
            rate *= float(choices.second[before, arm] / choices.acceptance[arm])
        if left > 0.0:
            in_time = 1.0 / (1.0 + exp(log(took / left) * 1.702 / float(choices.deviation[arm])))
            accepted = min(1.0, rate) * in_time
            seconds += reach * min(took, left)
            money += reach * float(choices.cost_usd[arm])
            answered += reach * accepted
            reach *= 1.0 - accepted if terms.verifies else float(choices.failure[arm])
        left -= took
    return terms.time * (seconds + (1.0 - answered) * min(terms.miss_s, max(0.0, left))) + terms.money * money


def plan_of(row: np.ndarray) -> list[int]:
    return [int(arm) for arm in row if arm >= 0]


@pytest.mark.parametrize("verifies", [True, False])
def test_all_plans_at_once_are_weighed_as_each_by_itself(verifies: bool) -> None:
    choices, terms = draw_choices(1, 4), TERMS._replace(verifies=verifies)
    plans = weigh_plans(choices, terms)
    slow = [weigh_slowly(choices, terms, plan_of(row)) for row in plans.arms]
    np.testing.assert_allclose(plans.objective, slow, rtol=1e-10)


def test_eight_arms_have_584_plans_of_up_to_three_attempts() -> None:
    plans = weigh_plans(draw_choices(0, 8), TERMS)
    assert len({tuple(plan_of(row)) for row in plans.arms}) == len(plans.arms) == 8 + 8**2 + 8**3


@pytest.mark.parametrize("seed", range(5))
def test_without_a_deadline_the_best_order_of_independent_arms_is_that_of_time_over_acceptance(seed: int) -> None:
    choices = draw_choices(seed, 3, independent=True)
    plans = weigh_plans(choices, TERMS._replace(deadline_s=1e9, money=0.0))
    objectives = {tuple(plan_of(row)): value for row, value in zip(plans.arms, plans.objective, strict=True)}
    best = min(permutations(range(3)), key=lambda order: objectives[order])
    assert list(best) == sorted(range(3), key=lambda arm: choices.seconds[arm] / choices.acceptance[arm])


def test_a_plan_that_may_cost_too_much_is_out_even_if_it_would_seldom_get_so_far() -> None:
    choices = draw_choices(2, 3)
    plans = weigh_plans(choices, TERMS._replace(most_cost_usd=float(choices.cost_usd.max()) * 1.01))
    costs = np.array([sum(choices.cost_usd[plan_of(row)]) for row in plans.arms])
    assert (np.isinf(plans.objective) == (costs > choices.cost_usd.max() * 1.01)).all()
    assert np.isfinite(plans.objective).any()


def test_a_fallback_that_is_sure_to_be_late_is_worth_nothing() -> None:
    choices = draw_choices(3, 2, independent=True)
    plans = weigh_plans(choices, TERMS._replace(deadline_s=float(choices.seconds[0])))
    found = {tuple(plan_of(row)): value for row, value in zip(plans.arms, plans.acceptance, strict=True)}
    assert found[(0, 1)] == found[(0,)]


def test_no_more_attempts_are_planned_than_the_request_allows() -> None:
    assert weigh_plans(draw_choices(0, 4), TERMS._replace(most_attempts=1)).arms.shape == (4, 1)
    assert weigh_plans(draw_choices(0, 4), TERMS._replace(most_attempts=8)).arms.shape == (4 + 16 + 64, 3)


def test_weighing_all_plans_of_eight_arms_takes_well_under_three_milliseconds() -> None:
    choices, took = draw_choices(4, 8), []
    for _ in range(50):
        started = time.process_time()
        weigh_plans(choices, TERMS)
        took.append(time.process_time() - started)
    print(f"584 plans: median {median(took) * 1e3:.3f} ms")
    assert median(took) < 3e-3
