"""The same answers on a GPU; these tests run only where there is one."""

from collections.abc import Iterator

import pytest
import torch

from mezzotint.decoding.generate import Block, Limits, generate_blocks, generate_tokens
from mezzotint.decoding.params import SamplingParams
from mezzotint.model.diffusion_gemma import DiffusionGemma
from tests.model.test_fused import CONFIGS, random_model, trace

pytestmark = pytest.mark.gpu

LIMITS = Limits(vocab_size=96, canvas_length=8, max_positions=512, end_ids=())
PROMPT = list(range(5, 25))


@pytest.fixture
def pair() -> Iterator[tuple[DiffusionGemma, DiffusionGemma]]:
    raw = CONFIGS["half of the experts"]
    yield random_model(raw, torch.float64), random_model(raw, torch.float64).to("cuda")


@torch.inference_mode()
def test_logits_on_a_gpu_equal_those_on_the_cpu(pair: tuple[DiffusionGemma, DiffusionGemma]) -> None:
    host, device = (trace(model) for model in pair)
    for own, expected in zip(device, host, strict=True):
        assert (own.cpu() - expected).abs().max() <= 1e-9 * expected.abs().max()


@torch.inference_mode()
def test_a_canvas_settles_to_the_same_tokens_on_a_gpu(pair: tuple[DiffusionGemma, DiffusionGemma]) -> None:
    params = SamplingParams(max_tokens=20, steps=4, ignore_eos=True)
    host, device = (
        [event.tokens for event in generate_blocks(model, PROMPT, params, 3, LIMITS) if isinstance(event, Block)]
        for model in pair
    )
    assert device == host


@torch.inference_mode()
def test_tokens_drawn_on_a_gpu_are_those_of_the_cpu(pair: tuple[DiffusionGemma, DiffusionGemma]) -> None:
    params = SamplingParams(decoder="ar", max_tokens=12, top_k=20, ignore_eos=True)
    host, device = (
        [event.tokens for event in generate_tokens(model, PROMPT, params, 3, LIMITS) if isinstance(event, Block)]
        for model in pair
    )
    assert device == host
