"""In bfloat16, where kernels may round apart, logits point as the reference's do and agree where it is sure.

That holds where each token visits every expert. Where it visits a few, rounding makes two of nearly equal
score change places, and the reference itself strays from its own float32; that distance is the yardstick.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from tests.contract.reference import SHAPES, Twin, diffusion_twin
from tests.contract.trace import Trace, draw_inputs, our_trace, reference_trace

LOGITS = ("plain", "conditioned", "second_plain", "second_conditioned")
SURE = 0.25  # top-2 logit gap
ROUTED = [name for name, shape in SHAPES.items() if shape.top_k < shape.experts and shape.style == "newer"]


class Pair(NamedTuple):
    """The same forwards by both sides."""

    ours: Trace
    theirs: Trace


def rounded(twin: Twin) -> Pair:
    """What both sides say of a float32 checkpoint that they round to bfloat16 as they load it."""
    coarse = diffusion_twin(twin.shape, twin.directory, torch.bfloat16)
    inputs = draw_inputs(5 * twin.shape.window // 2)
    return Pair(our_trace(coarse.model, inputs), reference_trace(coarse.oracle, inputs))


def cosine(a: Tensor, b: Tensor) -> float:
    return float(torch.cosine_similarity(a.flatten().double(), b.flatten().double(), dim=0))


@pytest.fixture(scope="module", params=["published pattern", "every expert, wide heads", "full layers no wider"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    shape = SHAPES[request.param]
    return rounded(diffusion_twin(replace(shape, top_k=shape.experts), tmp_path_factory.mktemp("rounded")))


def test_states_are_bfloat16_and_logits_float32(pair: Pair) -> None:
    assert pair.ours.prompt.dtype == pair.theirs.prompt.dtype == torch.bfloat16
    assert pair.ours.plain.dtype == pair.theirs.plain.dtype == torch.float32


@pytest.mark.parametrize("field", LOGITS)
def test_logits_point_where_the_references_do(pair: Pair, field: str) -> None:
    assert cosine(getattr(pair.ours, field), getattr(pair.theirs, field)) >= 0.999


@pytest.mark.parametrize("field", LOGITS)
def test_the_tokens_that_the_reference_is_sure_of_are_ours(pair: Pair, field: str) -> None:
    ours, theirs = getattr(pair.ours, field), getattr(pair.theirs, field)
    best = theirs.topk(2, -1).values
    sure = best[..., 0] - best[..., 1] > SURE
    assert sure.float().mean() >= 0.5
    assert torch.equal(ours.argmax(-1)[sure], theirs.argmax(-1)[sure])


def test_rounding_carries_us_no_further_from_float32_than_twice_the_reference(
    twin_of: Callable[[str], Twin],
) -> None:
    ours, theirs = 0.0, 0.0
    for name in ROUTED:
        twin = twin_of(name)
        pair = rounded(twin)
        exact = reference_trace(twin.oracle, draw_inputs(5 * twin.shape.window // 2))
        for field in LOGITS:
            ours += 1 - cosine(getattr(pair.ours, field), getattr(exact, field))
            theirs += 1 - cosine(getattr(pair.theirs, field), getattr(exact, field))
    assert theirs > 0
    assert ours <= 2 * theirs
