"""Mistakes that the comparison with transformers must notice: what it cannot see, it does not test."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from mezzotint.model.config import LayerShape
from mezzotint.model.diffusion_gemma import DiffusionGemma
from tests.contract.reference import Twin
from tests.contract.trace import Trace, draw_inputs, furthest, our_trace, reference_trace

FAR = 1e-3
LONG = 40  # 2.5 windows


class Mistake(NamedTuple):
    """A network that computes something else, and the window that its canvases see."""

    model: DiffusionGemma
    window: int | None = None


def reconfigured(model: DiffusionGemma, **changes: Any) -> DiffusionGemma:
    other = DiffusionGemma(replace(model.config, **changes))
    other.load_state_dict(model.state_dict())
    return other.eval().requires_grad_(requires_grad=False)


def reshaped(model: DiffusionGemma, change: Callable[[LayerShape], LayerShape]) -> DiffusionGemma:
    return reconfigured(model, layers=tuple(change(layer) for layer in model.config.layers))


def swapped_scalars(model: DiffusionGemma) -> DiffusionGemma:
    other = copy.deepcopy(model)
    for layer in other.layers:
        layer.layer_scalar, layer.encoder_layer_scalar = layer.encoder_layer_scalar, layer.layer_scalar
    return other


def other_theta(layer: LayerShape) -> LayerShape:
    return layer._replace(rope_theta=1e4 if layer.kind == "full_attention" else 1e6)


def whole_rotation(layer: LayerShape) -> LayerShape:
    return layer._replace(rotary_fraction=1.0)


MISTAKES: dict[str, Callable[[DiffusionGemma], Mistake]] = {
    "layer scalars of encode and denoise swapped": lambda model: Mistake(swapped_scalars(model)),
    "a canvas that sees W context tokens": lambda model: Mistake(model, window=16),
    "a canvas that sees W-2 context tokens": lambda model: Mistake(model, window=14),
    "an encode window of W+1": lambda model: Mistake(reconfigured(model, sliding_window=17), window=15),
    "an encode window of W-1": lambda model: Mistake(reconfigured(model, sliding_window=15), window=15),
    "the other layer kind's theta": lambda model: Mistake(reshaped(model, other_theta)),
    "full layers that rotate every pair": lambda model: Mistake(reshaped(model, whole_rotation)),
    "one expert too few": lambda model: Mistake(reconfigured(model, top_k_experts=1)),
    "no softcap": lambda model: Mistake(reconfigured(model, softcap=0.0)),
}


@pytest.fixture(scope="module")
def theirs(published: Twin) -> Trace:
    return reference_trace(published.oracle, draw_inputs(LONG))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_shows(published: Twin, theirs: Trace, mistake: str) -> None:
    made = MISTAKES[mistake](published.model)
    assert furthest(our_trace(made.model, draw_inputs(LONG), made.window), theirs) > FAR


def test_every_stored_tensor_shows(twin_of: Callable[[str], Twin]) -> None:
    model = copy.deepcopy(twin_of("sixteen experts, top 4").model)
    inputs = draw_inputs(LONG, rows=1)
    right = our_trace(model, inputs)
    last = len(model.layers) - 1
    silent = set()
    for name, tensor in model.state_dict().items():
        kept = tensor.clone()
        tensor.copy_(1.3 * kept.roll(1, -1))
        if furthest(our_trace(model, inputs), right) <= FAR:
            silent.add(name)
        tensor.copy_(kept)
    # The final norm cancels a scale of its whole input.
    assert silent == {f"layers.{last}.layer_scalar", f"layers.{last}.encoder_layer_scalar"}
