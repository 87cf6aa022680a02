"""The causal half alone: DiffusionGemma's weights run as Gemma 4, and Gemma 4 checkpoints run by us."""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from mezzotint.model.diffusion_gemma import DiffusionGemma
from tests.contract.reference import CAUSAL_SHAPES, Twin, causal_config, causal_twin
from tests.contract.trace import draw_inputs, encoded, furthest

NEAR = 2e-4
TOKENS = 24
LENGTHS = (1, 5, 15, 16, 17, 40)


class Sides(NamedTuple):
    """One set of weights in a causal model of transformers and in ours."""

    oracle: Any
    model: DiffusionGemma


def renamed(published: Twin) -> Sides:
    """DiffusionGemma as Gemma 4: without self-conditioning, with the layer scalars of encode."""
    from transformers import Gemma4ForCausalLM

    oracle: Any = Gemma4ForCausalLM(causal_config(published.shape))
    oracle.eval().requires_grad_(requires_grad=False)
    oracle.model.load_state_dict(published.oracle.model.encoder.language_model.state_dict())
    return Sides(oracle, published.model)


@pytest.fixture(scope="module", params=["DiffusionGemma", "multimodal file", *CAUSAL_SHAPES])
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, published: Twin) -> Sides:
    if request.param == "DiffusionGemma":
        return renamed(published)
    multimodal = request.param == "multimodal file"
    shape = CAUSAL_SHAPES["experts, V is K" if multimodal else request.param]
    twin = causal_twin(shape, tmp_path_factory.mktemp("causal"), multimodal=multimodal)
    return Sides(twin.oracle, twin.model)


def greedy(model: DiffusionGemma, prompt: Tensor) -> list[int]:
    """TOKENS argmax tokens behind prompt [1, T], one encode each."""
    kv = model.new_kv(1, prompt.shape[1] + TOKENS)
    tokens: list[int] = []
    ids = prompt
    while len(tokens) < TOKENS:
        ids = model.logits(model.encode(ids, kv)[:, -1:]).argmax(-1)
        tokens.append(int(ids))
    return tokens


@pytest.mark.parametrize("length", LENGTHS)
def test_logits_of_every_position_are_the_references(sides: Sides, length: int) -> None:
    prompt = draw_inputs(length).prompt
    _, states = encoded(sides.model, prompt)
    assert furthest(sides.model.logits(states), sides.oracle(prompt).logits) <= NEAR


@pytest.mark.parametrize("length", [5, 40])
def test_greedy_tokens_are_the_references(sides: Sides, length: int) -> None:
    prompt = draw_inputs(length, rows=1).prompt
    sides.oracle.generation_config.eos_token_id = None
    theirs = sides.oracle.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=TOKENS, do_sample=False
    )
    assert greedy(sides.model, prompt) == theirs[0, length:].tolist()
    assert len(set(theirs[0, length:].tolist())) >= 5, "a model that repeats itself proves little"


def test_the_denoising_layer_scalars_are_not_the_causal_ones(published: Twin) -> None:
    prompt = draw_inputs(40).prompt
    oracle, model = renamed(published)
    for layer, other in zip(oracle.model.layers, published.model.layers, strict=True):
        layer.layer_scalar.copy_(other.layer_scalar)
    _, states = encoded(model, prompt)
    assert furthest(model.logits(states), oracle(prompt).logits) > 10 * NEAR
