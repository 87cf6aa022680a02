"""The autoregressive draw, against a plain loop and against its law."""

from math import exp

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mezzotint.decoding.propose import draw_next
from mezzotint.decoding.random import position_uniform
from tests.decoding.chance import fits

# Tenths and odd fractions: sums of such powers of e never meet a filter's edge, where rounding would decide.
TENTHS = st.integers(-80, 80).map(lambda count: count / 10)
LOGITS = st.lists(TENTHS, min_size=1, max_size=12, unique=True)
SHARE = st.integers(1, 997).map(lambda count: count / 997)
TEMPERATURE = st.integers(1, 40).map(lambda count: count / 10)
UNIFORM = st.floats(0, 1, exclude_max=True)
LARGEST = 1 - 2.0**-53


def draw(logits: Tensor, uniform: float, **options: float | None) -> int:
    given = {"temperature": 1.0, "top_k": None, "top_p": 1.0, "min_p": 0.0, **options}
    return draw_next(logits, uniform, **given)  # type: ignore[arg-type]


def filtered(
    logits: list[float], temperature: float, top_k: int | None, top_p: float, min_p: float
) -> dict[int, float]:
    """Probability by token id after the filters, one after another as each is defined."""
    weights = {token: exp((logit - max(logits)) / temperature) for token, logit in enumerate(logits)}
    order = sorted(weights, key=lambda token: (-weights[token], token))[:top_k]
    total, held = sum(weights[token] for token in order), 0.0
    kept: list[int] = []
    for token in order:
        if kept and held >= top_p * total:
            break
        kept.append(token)
        held += weights[token]
    kept = [token for token in kept if weights[token] >= min_p * weights[order[0]]]
    return {token: weights[token] / sum(weights[token] for token in kept) for token in sorted(kept)}


@given(
    logits=LOGITS,
    uniform=UNIFORM,
    temperature=TEMPERATURE,
    top_k=st.none() | st.integers(1, 14),
    top_p=SHARE,
    min_p=st.just(0.0) | SHARE,
)
def test_a_draw_is_the_inverse_distribution_in_id_order_of_what_the_filters_left(
    logits: list[float], uniform: float, temperature: float, top_k: int | None, top_p: float, min_p: float
) -> None:
    law = filtered(logits, temperature, top_k, top_p, min_p)
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    token = draw(torch.tensor(logits, dtype=torch.float64), uniform, **options)
    assert token in law
    before = sum(mass for other, mass in law.items() if other < token)
    assert before - 1e-12 <= uniform <= before + law[token] + 1e-12


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 2.0, "top_k": 5},
        {"top_p": 0.8},
        {"min_p": 0.2},
        {"top_k": 6, "min_p": 0.05},
    ],
    ids=str,
)
def test_draws_by_position_follow_the_law(options: dict[str, float | None]) -> None:
    logits = torch.randn(10, generator=torch.Generator().manual_seed(4))
    counts = [0] * 10
    for position in range(3000):
        counts[draw(logits, position_uniform(1, position), **options)] += 1
    given = {"temperature": 1.0, "top_k": None, "top_p": 1.0, "min_p": 0.0, **options}
    law = filtered(logits.tolist(), **given)  # type: ignore[arg-type]
    assert fits(counts, [law.get(token, 0.0) for token in range(10)])


@given(logits=LOGITS, uniform=UNIFORM)
def test_temperature_zero_takes_the_argmax(logits: list[float], uniform: float) -> None:
    assert draw(torch.tensor(logits), uniform, temperature=0.0) == torch.tensor(logits).argmax()


def test_among_equals_the_lowest_id_is_the_argmax_and_stays_under_top_k() -> None:
    level = torch.zeros(6)
    assert draw(level, LARGEST, temperature=0.0) == 0
    assert {draw(level, uniform, top_k=2) for uniform in (0.0, 0.4, 0.6, LARGEST)} == {0, 1}


@given(uniform=UNIFORM)
def test_each_filter_at_its_strictest_leaves_the_likeliest(uniform: float) -> None:
    logits = torch.tensor([0.0, 3.0, 1.0, 2.9])
    strictest: list[dict[str, float | None]] = [{"top_k": 1}, {"top_p": 1e-9}, {"min_p": 1.0}]
    assert [draw(logits, uniform, **options) for options in strictest] == [1, 1, 1]


@given(logits=LOGITS, top_k=st.integers(1, 12), temperature=TEMPERATURE)
def test_the_largest_uniform_draws_the_last_token_that_the_filters_left(
    logits: list[float], top_k: int, temperature: float
) -> None:
    token = draw(torch.tensor(logits, dtype=torch.float64), LARGEST, top_k=top_k, temperature=temperature)
    law = filtered(logits, temperature, top_k, 1.0, 0.0)
    assert token in law
    assert sum(mass for other, mass in law.items() if other > token) < 2.0**-52


def test_a_filter_takes_its_share_of_what_the_one_before_left() -> None:
    logits = torch.tensor([0.4, 0.3, 0.2, 0.1]).log()
    assert draw(logits, LARGEST, top_k=2, top_p=0.5) == 0  # 0.4 is more than half of 0.7
    assert draw(logits, LARGEST, top_p=0.5) == 1


def test_a_token_without_mass_is_never_drawn() -> None:
    masked = torch.tensor([-1e4, 0.0, -1e4, 0.0, -1e4])
    assert [draw(masked, uniform) for uniform in (0.0, 0.49, 0.51, LARGEST)] == [1, 1, 3, 3]


def test_the_coldest_and_the_warmest_temperatures_stay_finite() -> None:
    logits = torch.tensor([-30.0, 30.0, 29.0])
    assert draw(logits, LARGEST, temperature=1e-6) == 1
    assert [draw(logits, uniform, temperature=100.0) for uniform in (0.0, 0.5, LARGEST)] == [0, 1, 2]
