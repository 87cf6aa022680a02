"""What a run refuses to be told, and what its schedule says of each step."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from mezzotint.tasks import FAMILIES
from mezzotint.train.config import TrainConfig


@pytest.mark.parametrize(
    "wrong",
    [
        {"mixture": {}},
        {"mixture": {"extract": -0.1, "parallel_rule": 1.0}},
        {"mixture": {"extract": 0.0}},
        {"mixture": {"poetry": 1.0}},
        {"steps": 0},
        {"examples": 0},
        {"canvases": 0},
        {"log_every": 0},
        {"widths": ()},
        {"widths": (32, 0)},
        {"on_policy_budgets": ()},
        {"on_policy_budgets": (0, 4)},
        {"peak_rate": 0.0},
        {"peak_rate": float("nan")},
        {"matrix_rate": -1.0},
        {"clip": 0.0},
        {"warmup": -1},
        {"weight_decay": -0.1},
        {"causal_weight": -1.0},
        {"prompt_weight": -0.1},
        {"checkpoint_s": -1.0},
        {"final_share": 1.1},
        {"ema": 1.5},
        {"easy_until": -0.1},
        {"easy_noise": 2.0},
        {"all_noise": 1.01},
        {"span_noise": -0.3},
        {"conditioned": 1.2},
        {"on_policy": 2.0},
        {"mined": 1.5},
        {"on_policy": 0.5, "sharpen": -0.2},
    ],
    ids=str,
)
def test_a_value_outside_its_range_is_refused_by_name(wrong: dict[str, Any]) -> None:
    name, value = list(wrong.items())[-1]
    with pytest.raises(ValueError, match=f"^{name} is ") as refusal:
        TrainConfig(**wrong)
    assert str(value) in str(refusal.value)


def test_an_option_that_would_have_no_effect_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sharpen is 0\.2; .* give on_policy"):
        TrainConfig(sharpen=0.2, on_policy=0.0)
    with pytest.raises(ValueError, match="canvases is 1; on_policy takes half"):
        TrainConfig(on_policy=0.5, canvases=1)
    TrainConfig(sharpen=0.2, on_policy=0.5, canvases=2)
    with pytest.raises(ValueError, match=r"mined is 0\.5; .* give on_policy"):
        TrainConfig(mined=0.5, on_policy=0.0)


def test_an_unknown_family_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=", ".join(FAMILIES)):
        TrainConfig(mixture={"extract": 0.5, "poetry": 0.5})


def test_the_rate_climbs_to_its_peak_and_then_falls_to_the_final_share() -> None:
    config = TrainConfig(steps=100, warmup=10, peak_rate=2e-3, final_share=0.05)
    rates = [config.rate(step) for step in range(120)]
    assert rates[:10] == pytest.approx([2e-4 * (step + 1) for step in range(10)])
    assert max(rates) == rates[9] == rates[10] == 2e-3
    assert all(later < earlier for earlier, later in pairwise(rates[10:101]))
    assert rates[55] == pytest.approx(2e-3 * 0.525)  # halfway along the cosine
    assert rates[100:] == pytest.approx([1e-4] * 20)


def test_a_run_without_warm_up_begins_at_its_peak() -> None:
    assert TrainConfig(warmup=0, peak_rate=1e-3).rate(0) == 1e-3
    assert TrainConfig(warmup=50, steps=50, peak_rate=1e-3, final_share=0.1).rate(50) == 1e-3


def test_canvases_are_easy_for_the_first_part_of_a_run_only() -> None:
    config = TrainConfig(steps=40, easy_until=0.25)
    assert [config.plan(step, 1.0).easy for step in (0, 9, 10, 39)] == [True, True, False, False]
    assert not replace(config, easy_until=0.0).plan(0, 1.0).easy


def test_the_causal_loss_weighs_less_once_it_is_learnt() -> None:
    config = TrainConfig(causal_weight=2.0)
    assert config.plan(0, 0.051).causal_weight == 2.0
    assert config.plan(0, 0.049).causal_weight == pytest.approx(0.6)


def test_the_asked_share_of_steps_is_on_policy_with_every_budget() -> None:
    config = TrainConfig(on_policy=0.3, on_policy_budgets=(2, 5), on_policy_from=0.0)
    budgets = [config.plan(step, 1.0).budget for step in range(4000)]
    assert 0.27 < sum(budget is not None for budget in budgets) / 4000 < 0.33
    assert 0.4 < budgets.count(2) / (budgets.count(2) + budgets.count(5)) < 0.6
    assert budgets == [config.plan(step, 0.0).budget for step in range(4000)]
    assert budgets != [replace(config, seed=1).plan(step, 1.0).budget for step in range(4000)]


def test_the_asked_share_of_the_on_policy_steps_is_mined_and_no_others() -> None:
    config = TrainConfig(on_policy=0.5, mined=0.4, on_policy_from=0.0)
    plans = [config.plan(step, 1.0) for step in range(2000)]
    visiting = [plan for plan in plans if plan.budget is not None]
    assert 0.33 < sum(plan.mined for plan in visiting) / len(visiting) < 0.47
    assert not any(plan.mined for plan in plans if plan.budget is None)
    unmined = replace(config, mined=0.0)
    assert [unmined.plan(step, 1.0).budget for step in range(2000)] == [plan.budget for plan in plans]


def test_no_step_is_on_policy_before_its_share_of_the_run_is_over() -> None:
    config = TrainConfig(steps=400, on_policy=1.0, on_policy_from=0.25)
    assert [config.plan(step, 1.0).budget is None for step in range(400)] == [True] * 100 + [False] * 300


def test_no_step_is_on_policy_where_none_is_asked() -> None:
    assert all(TrainConfig(on_policy=0.0).plan(step, 1.0).budget is None for step in range(3000, 3200))
