"""How a prompt is cut into calls, batched or typed does not change what encode and denoise say."""

import pytest
import torch

from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.weights import load_model
from tests.contract.reference import Twin
from tests.contract.trace import draw_inputs, encoded, furthest, our_trace, soft_embedding

EXACT = 1e-10


@pytest.fixture(scope="module")
def exact(published: Twin) -> DiffusionGemma:
    """The published pattern in float64, where a sum's order cannot hide a mistake."""
    return load_model(published.directory, dtype=torch.float64)


@pytest.mark.parametrize("cuts", [(20, 20), (39, 1), (5, 11, 24), (15, 1, 24), (1, 16, 23), (17, 16, 7)], ids=str)
def test_a_prompt_encoded_in_parts_is_the_prompt_encoded_at_once(exact: DiffusionGemma, cuts: tuple[int, ...]) -> None:
    inputs = draw_inputs(sum(cuts))
    at_once, whole = encoded(exact, inputs.prompt)
    in_parts, parts = encoded(exact, *inputs.prompt.split(cuts, 1))
    assert furthest(parts, whole) <= EXACT
    assert furthest(exact.denoise(inputs.first, in_parts), exact.denoise(inputs.first, at_once)) <= EXACT


@pytest.mark.parametrize("window", [None, 1, 16, 64])
@pytest.mark.parametrize("lengths", [(5, 15, 40), (1, 16, 17), (24, 3, 39)], ids=str)
def test_rows_of_different_lengths_say_what_each_says_alone(
    exact: DiffusionGemma, lengths: tuple[int, ...], window: int | None
) -> None:
    inputs = draw_inputs(40, rows=len(lengths))
    soft = soft_embedding(exact, inputs.beliefs)
    kv, _ = encoded(exact, inputs.prompt)
    together = exact.denoise(inputs.first, kv, soft, window=window, lengths=torch.tensor(lengths))
    for row, length in enumerate(lengths):
        mine = slice(row, row + 1)
        context, _ = encoded(exact, inputs.prompt[mine, :length])
        alone = exact.denoise(inputs.first[mine], context, soft[mine], window=window)
        assert furthest(together[mine], alone) <= EXACT


def test_a_denoise_leaves_the_context_as_it_was(exact: DiffusionGemma) -> None:
    inputs = draw_inputs(20)
    kv, _ = encoded(exact, inputs.prompt)
    before = exact.denoise(inputs.first, kv)
    exact.denoise(inputs.second, kv, soft_embedding(exact, inputs.beliefs))
    assert kv.length == 20
    assert torch.equal(exact.denoise(inputs.first, kv), before)


def test_float64_and_float32_say_the_same(published: Twin, exact: DiffusionGemma) -> None:
    inputs = draw_inputs(40)
    wide = our_trace(exact, inputs)
    assert wide.plain.dtype == torch.float64
    assert furthest(our_trace(published.model, inputs), wide) <= 1e-4


def test_no_self_conditioning_is_a_zero_soft_embedding(published: Twin) -> None:
    inputs = draw_inputs(20)
    kv, _ = encoded(published.model, inputs.prompt)
    zero = torch.zeros(*inputs.first.shape, published.shape.width)
    off = published.model.denoise(inputs.first, kv, None)
    assert torch.equal(off, published.model.denoise(inputs.first, kv, zero))
