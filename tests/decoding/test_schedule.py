"""Temperatures fall in a line, refinement's targets climb to everything, and clean shares from nothing."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.decoding.schedule import clean_share, commit_target, step_temperature

BUDGET = st.integers(1, 200)


def test_the_published_schedule_starts_at_its_maximum_and_ends_a_step_above_its_minimum() -> None:
    temperatures = [step_temperature(step, 48, 0.4, 0.8) for step in range(48)]
    assert temperatures[0] == 0.8
    assert temperatures[1] == pytest.approx(0.791667, abs=1e-6)
    assert temperatures[47] == pytest.approx(0.408333, abs=1e-6)


@given(budget=BUDGET)
def test_temperatures_fall_by_equal_steps(budget: int) -> None:
    temperatures = [step_temperature(step, budget, 0.4, 0.8) for step in range(budget)]
    for step, temperature in enumerate(temperatures):
        assert temperature == pytest.approx(0.8 - 0.4 * step / budget)


def test_a_budget_of_one_step_is_warm() -> None:
    assert step_temperature(0, 1, 0.4, 0.8) == 0.8


def test_equal_ends_make_a_constant_temperature() -> None:
    assert {step_temperature(step, 7, 1.0, 1.0) for step in range(7)} == {1.0}


@given(budget=BUDGET, count=st.integers(0, 300))
def test_targets_are_the_ceiling_of_the_share_of_steps_taken(budget: int, count: int) -> None:
    targets = [commit_target(step, budget, count) for step in range(budget)]
    assert targets == [ceil(Fraction(step + 1, budget) * count) for step in range(budget)]
    assert targets[-1] == count


@given(budget=BUDGET)
def test_clean_shares_count_the_steps_taken(budget: int) -> None:
    assert clean_share(0, budget) == 0
    assert clean_share(budget, budget) == 1
    assert clean_share(budget - 1, budget) == pytest.approx(1 - 1 / budget)
