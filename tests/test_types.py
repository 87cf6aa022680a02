"""What a receipt adds up to."""

from dataclasses import FrozenInstanceError, replace
from typing import Any, cast

import pytest

from mezzotint.types import Receipt, tokens_per_forward

CANVAS = Receipt(
    decoder="diffusion",
    sampler="report",
    seed=5,
    prompt_tokens=79,
    output_tokens=600,
    denoise_steps=(17, 48, 20),
    block_tokens=(256, 256, 88),
    step_budget=48,
    canvas_length=256,
    encodes=2,
)
AR = Receipt(decoder="ar", sampler=None, seed=6, prompt_tokens=3, output_tokens=7, encodes=7)


def test_forwards_are_denoising_steps_and_encodes_after_prefill() -> None:
    assert CANVAS.forwards == 17 + 48 + 20 + 2
    assert AR.forwards == 7


def test_tokens_per_forward_are_the_reports_tokens_over_steps_and_blocks_less_one() -> None:
    steps, blocks = sum(CANVAS.denoise_steps), len(CANVAS.denoise_steps)
    assert CANVAS.tokens_per_forward == 600 / (steps + blocks - 1)


def test_a_prompt_costs_no_forward() -> None:
    longer = replace(CANVAS, prompt_tokens=10_000)
    assert longer.forwards == CANVAS.forwards
    assert longer.tokens_per_forward == CANVAS.tokens_per_forward


def test_ar_has_one_token_a_forward() -> None:
    assert AR.tokens_per_forward == 1.0


def test_where_nothing_ran_there_are_no_tokens_per_forward() -> None:
    assert tokens_per_forward(0, 0) == 0.0
    assert tokens_per_forward(0, 4) == 0.0
    assert tokens_per_forward(9, 4) == 2.25


@pytest.mark.parametrize(("steps", "hits"), [((), 0), ((47,), 0), ((48,), 1), ((48, 3, 48), 2)])
def test_a_block_that_used_its_whole_step_budget_is_a_hit(steps: tuple[int, ...], hits: int) -> None:
    assert replace(CANVAS, denoise_steps=steps).budget_hits == hits


def test_ar_has_no_blocks_and_hits_no_budget() -> None:
    assert (AR.denoise_steps, AR.block_tokens, AR.step_budget, AR.budget_hits) == ((), (), 0, 0)


def test_a_receipt_is_keyword_only_and_frozen() -> None:
    with pytest.raises(TypeError, match="positional"):
        cast(Any, Receipt)("ar", None, 0, 1, 1)
    with pytest.raises(FrozenInstanceError):
        cast(Any, AR).seed = 0
