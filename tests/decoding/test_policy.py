"""How much is drafted: what is learned of acceptance, what a round may cost, and how much may be lost."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.decoding.policy import (
    ASKED_SLACK,
    FIRST_GUESS,
    MOST_STEPS,
    SMALL_MODEL,
    Acceptance,
    Costs,
    Plan,
    Policy,
    Round,
    break_even,
)

SURE, LOST = 0.0, 9.0  # nats: of the first bin, and of the last


def policy(**changes: object) -> Policy:
    return replace(Policy(costs=SMALL_MODEL, longest=64), **changes)  # type: ignore[arg-type]


def failed(width: int = 16, steps: int = 1) -> Round:
    """A round whose sure drafts were all wrong."""
    return Round(width, [5.0] * steps, [SURE] * (width - 1), 0, 1)


def whole(width: int = 16, steps: int = 1) -> Round:
    """A round whose drafts were all right."""
    return Round(width, [5.0] * steps, [SURE] * (width - 1), width - 1, width)


def test_a_round_costs_its_steps_and_one_encode_in_autoregressive_steps() -> None:
    costs = Costs(denoise=2, denoise_token=0.5, encode_token=0.25)
    assert costs.round(1, 0) == 1, "an autoregressive step is the unit"
    assert costs.round(8, 3) == 3 * (2 + 8 * 0.5) + 1 + 7 * 0.25
    assert costs.round(8, 3, encoded=4) == 3 * (2 + 8 * 0.5) + 1 + 3 * 0.25


@pytest.mark.parametrize("name", ["denoise", "denoise_token", "encode_token"])
@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan")])
def test_a_cost_that_is_none_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}; a cost is a finite number from 0 up"):
        Costs(**{name: value})


@pytest.mark.parametrize(("cost", "rate"), [(1, 0), (3, 0.67), (6, 0.83), (11, 0.91), (20, 0.95)])
def test_a_long_canvas_breaks_even_where_its_run_of_accepted_drafts_is_as_long_as_it_costs(
    cost: float, rate: float
) -> None:
    assert break_even(cost) == pytest.approx(rate, abs=0.005)
    run = sum(break_even(cost) ** length for length in range(2000))
    assert run == pytest.approx(cost)


@pytest.mark.parametrize(
    ("fixed", "width", "steps"),
    [({}, 16, 1), ({"fixed_width": 24}, 24, 1), ({"fixed_steps": 2}, 16, 2), ({"fixed_width": 200}, 64, 1)],
)
def test_a_request_breaks_even_where_its_least_round_does(fixed: dict[str, int], width: int, steps: int) -> None:
    asked = policy(**fixed)
    cost = SMALL_MODEL.round(width, steps)
    assert asked.break_even == break_even(cost)
    assert 0.6 < asked.break_even < 0.9


def test_a_round_that_costs_more_than_it_could_ever_bring_never_breaks_even() -> None:
    assert policy(costs=Costs(denoise=39)).break_even == 1.0
    assert policy(longest=1).break_even == 1.0, "there is no room for a draft"


RECORDS = st.lists(
    st.tuples(st.lists(st.floats(0, 12), min_size=1, max_size=12), st.integers(0, 12)), min_size=1, max_size=40
)


@given(records=RECORDS)
def test_acceptance_never_rises_with_entropy_whatever_was_seen(records: list[tuple[list[float], int]]) -> None:
    table = FIRST_GUESS
    for entropies, accepted in records:
        table = table.record(entropies, min(accepted, len(entropies)))
    rates = table.rates()
    assert len(rates) == len(table.hits) == 16
    assert all(after <= before for before, after in pairwise(rates))
    assert all(0 <= rate <= 1 + 1e-12 for rate in rates)
    assert sum(rate * trials for rate, trials in zip(rates, table.trials, strict=True)) == pytest.approx(
        sum(table.hits)
    ), "pooling moves no acceptance from one end of the table to the other"


def test_rates_that_fall_already_stay_as_they_were_counted() -> None:
    table = Acceptance((4.0, 2.0, 1.0), (4.0, 4.0, 4.0))
    assert table.rates() == [1.0, 0.5, 0.25]
    assert table._replace(hits=(1.0, 2.0, 0.0)).rates() == [0.375, 0.375, 0.0]


def test_what_follows_the_first_rejected_draft_teaches_nothing() -> None:
    learned = FIRST_GUESS.record([SURE, SURE, LOST, SURE, SURE], 2)
    before, after = FIRST_GUESS, learned
    assert after.trials[0] - before.trials[0] == after.hits[0] - before.hits[0] == 2
    assert (after.trials[-1] - before.trials[-1], after.hits[-1] - before.hits[-1]) == (1, 0)
    assert sum(after.trials) - sum(before.trials) == 3


def test_the_expected_run_multiplies_what_was_accepted_at_each_entropy() -> None:
    table = FIRST_GUESS
    for _ in range(200):
        table = table.record([1.1, LOST], 1).record([1.1], 0)
    rate = table.rates()[12]
    assert 0.45 < rate < 0.55
    assert table.expect([]) == 0
    assert table.expect([1.1, 1.9, 1.2]) == pytest.approx(rate + rate**2 + rate**3)
    assert table.expect([LOST] * 9) < 0.05


def test_old_rounds_are_forgotten_by_halves() -> None:
    table = FIRST_GUESS
    for _ in range(40):
        table = table.record([SURE] * 15, 15)
        assert sum(table.trials) <= 512
    for _ in range(40):
        table = table.record([SURE], 0)
    remembered = table.rates()[0]
    for _ in range(1000):
        table = table.record([SURE], 0)
    assert table.rates()[0] < 0.1 < remembered


def test_drafts_grow_with_full_acceptance_and_shrink_to_twice_what_was_kept() -> None:
    grown = policy(credit=32.0)
    widths = []
    for _ in range(4):
        widths.append(grown.plan(1000).width)
        grown = grown.learn(whole(widths[-1]))
    assert widths == [16, 32, 64, 64]
    assert [
        grown.learn(Round(64, [9.0], [SURE] * 63, accepted, accepted + 1)).width for accepted in (0, 7, 8, 15, 16, 62)
    ] == [16, 16, 32, 32, 64, 64]


@pytest.mark.parametrize(("room", "width"), [(100, 16), (16, 16), (9, 9), (4, 4), (2, 1), (1, 1)])
def test_a_canvas_is_never_wider_than_what_may_yet_be_emitted_nor_drafts_where_it_cannot_pay(
    room: int, width: int
) -> None:
    assert policy().plan(room).width == width
    assert policy(longest=8).plan(room).width == min(width, 8)


def test_what_a_request_fixed_is_drafted_in_every_round_and_at_most_what_fits() -> None:
    fixed = policy(fixed_width=7, fixed_steps=9, credit=0.0)
    assert fixed.plan(100) == Plan(7, 9)
    assert fixed.plan(5) == Plan(5, 9)
    assert fixed.plan(1) == Plan(1, 0)
    assert [fixed.goes_on(Plan(7, 9), [0.0] * steps) for steps in (1, 8, 9)] == [True, True, False]


def test_a_request_that_fixed_one_number_is_still_guarded_by_its_account() -> None:
    assert policy(fixed_steps=3, credit=ASKED_SLACK).plan(100) == Plan(16, 3)
    assert policy(fixed_steps=9, credit=ASKED_SLACK).plan(100) == Plan(1, 0), "nine steps cost more than may be lost"
    assert policy(fixed_width=24, credit=ASKED_SLACK).plan(100) == Plan(24, 4)
    assert policy(fixed_width=24, credit=0.5).plan(100) == Plan(1, 0)


def test_a_round_takes_no_more_steps_than_could_be_paid_were_all_rejected() -> None:
    for credit in (0.0, 1.0, 2.0, 3.0, 5.0, 8.0):
        width, steps = policy(credit=credit).plan(100)
        assert SMALL_MODEL.round(width, steps) - 1 <= credit
        assert steps in (0, MOST_STEPS) or SMALL_MODEL.round(width, steps + 1) - 1 > credit


def test_where_the_surest_drafts_do_not_break_even_nothing_is_drafted() -> None:
    wronged = policy()
    for _ in range(50):
        wronged = replace(wronged.learn(failed()), credit=8.0)
    assert wronged.acceptance.rates()[0] < break_even(SMALL_MODEL.round(16, 1))
    assert wronged.plan(100) == Plan(1, 0)


@pytest.mark.parametrize("credit", [1.0, 1.5, 1.75])
def test_ar_goes_on_undisturbed_exactly_until_the_account_can_pay_a_round(credit: float) -> None:
    lost = policy(credit=credit)
    steps = lost.rest(100)
    assert 1 <= steps <= 16
    assert lost.plan(100) == lost.rested(steps - 1).plan(100) == Plan(1, 0)
    assert lost.rested(steps).plan(100).steps or steps == 16


def test_where_no_round_could_pay_ar_still_asks_again_after_sixteen_tokens() -> None:
    assert policy(costs=Costs(denoise=39)).rest(1000) == 16
    assert policy(credit=0.0).rest(100) == 16, "a first round takes longer to save than so many steps"
    assert policy(credit=31.9).rested(1000).credit == 32, "what is saved has a bound"


def test_a_large_vocabulary_whose_step_costs_forty_tokens_is_decoded_token_by_token() -> None:
    assert policy(costs=Costs(denoise=39)).plan(1000) == Plan(1, 0)


def test_drafting_stops_when_another_step_is_not_worth_its_cost() -> None:
    learned = policy(growth=(10.0, 5))  # a second step brings 2 tokens on average
    plan, costs = Plan(16, 4), SMALL_MODEL
    for expected in (1.0, 2.0, 5.0, 9.0, 14.0):
        rate = (expected + 1) / costs.round(16, 1)
        better = (min(15, expected + 2) + 1) / costs.round(16, 2)
        assert learned.goes_on(plan, [expected]) == (better > rate)
    assert learned.goes_on(plan, [1.0])
    assert not learned.goes_on(plan, [14.0])


def test_the_second_step_is_tried_once_and_a_third_expects_half_of_what_it_brought() -> None:
    assert policy().goes_on(Plan(16, 4), [3.0])
    assert policy().goes_on(Plan(16, 4), [1.0, 9.0])
    assert not policy().goes_on(Plan(16, 4), [8.5, 9.0])
    assert not policy().goes_on(Plan(16, 2), [1.0, 9.0]), "the round has no more steps"
    assert not policy().goes_on(Plan(16, 4), [15.0]), "nothing is left to win"


class Spent(NamedTuple):
    """What a simulated request cost in autoregressive steps, and its drafts."""

    time: float
    drafted: int
    accepted: int


Adversary = Callable[[random.Random, int, int], tuple[list[float], int]]


def honest_and_wrong(chance: random.Random, count: int, emitted: int) -> tuple[list[float], int]:
    return [LOST] * count, 0


def sure_and_wrong(chance: random.Random, count: int, emitted: int) -> tuple[list[float], int]:
    return [SURE] * count, 0


def random_in_all(chance: random.Random, count: int, emitted: int) -> tuple[list[float], int]:
    return [chance.expovariate(1) for _ in range(count)], chance.randint(0, count)


def right_until_it_is_trusted(chance: random.Random, count: int, emitted: int) -> tuple[list[float], int]:
    return [SURE] * count, count if emitted // 40 % 2 == 0 else 0


def rarely_right(chance: random.Random, count: int, emitted: int) -> tuple[list[float], int]:
    return [chance.choice((SURE, 0.5, LOST)) for _ in range(count)], int(chance.random() < 0.5)


ADVERSARIES: list[Adversary] = [
    honest_and_wrong,
    sure_and_wrong,
    random_in_all,
    right_until_it_is_trusted,
    rarely_right,
]


def simulate(chance: random.Random, adversary: Adversary, costs: Costs, tokens: int) -> Spent:
    """A request of so many tokens whose drafts, entropies and acceptance an adversary chooses."""
    state, emitted, time, drafted, taken = Policy(costs=costs, longest=64), 0, 0.0, 0, 0
    while emitted < tokens:
        plan = state.plan(tokens - emitted)
        if not plan.steps:
            rested = min(state.rest(tokens - emitted), tokens - emitted)
            state, emitted, time = state.rested(rested), emitted + rested, time + rested
            continue
        entropies: list[float] = []
        accepted, expected = 0, []
        while plan.steps:
            entropies, accepted = adversary(chance, plan.width - 1, emitted)
            expected.append(state.acceptance.expect(entropies))
            if not state.goes_on(plan, expected):
                break
        time += costs.round(plan.width, len(expected))
        state = state.learn(Round(plan.width, expected, entropies, accepted, accepted + 1))
        assert state.credit >= -1e-9
        emitted, drafted, taken = emitted + accepted + 1, drafted + len(entropies), taken + accepted
    assert emitted == tokens
    return Spent(time, drafted, taken)


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda adversary: adversary.__name__)
def test_whatever_the_drafts_are_a_request_costs_ars_time_three_percent_and_three_steps(
    adversary: Adversary,
) -> None:
    for seed in range(400):
        chance = random.Random(seed)
        costs = Costs(
            denoise=chance.uniform(0, 4), denoise_token=chance.uniform(0, 0.1), encode_token=chance.uniform(0, 0.1)
        )
        tokens = chance.randint(1, 160)
        spent = simulate(chance, adversary, costs, tokens)
        assert spent.time <= 1.03 * tokens + 3


@pytest.mark.parametrize("adversary", [honest_and_wrong, sure_and_wrong, rarely_right])
def test_where_few_drafts_are_accepted_it_costs_at_most_fifteen_percent_more_than_ar(adversary: Adversary) -> None:
    for seed in range(40):
        chance = random.Random(seed)
        spent = simulate(chance, adversary, SMALL_MODEL, 32 + seed)
        assert spent.accepted < 0.1 * spent.drafted
        assert spent.time <= 1.15 * (32 + seed)


def test_where_drafts_are_right_it_costs_a_fraction_of_ar() -> None:
    chance = random.Random(0)
    spent = simulate(chance, lambda chance, count, emitted: ([0.001] * count, count), SMALL_MODEL, 400)
    assert spent.time < 400 / 8
