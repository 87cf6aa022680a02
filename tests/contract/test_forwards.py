"""Encode and denoise say what transformers says, over shapes, prompt lengths and padding."""

import json
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.contract.reference import SHAPES, Shape, Twin, diffusion_twin
from tests.contract.trace import (
    Trace,
    draw_inputs,
    encoded,
    furthest,
    our_trace,
    prompt_lengths,
    reference_trace,
    soft_embedding,
)

NEAR = 2e-4
FAR = 1e-3


class Pair(NamedTuple):
    """The same forwards by both sides."""

    ours: Trace
    theirs: Trace


@pytest.fixture(scope="module", params=SHAPES)
def twin(request: pytest.FixtureRequest, twin_of: Callable[[str], Twin]) -> Twin:
    return twin_of(request.param)


@pytest.fixture(scope="module", params=prompt_lengths(Shape()))
def pair(request: pytest.FixtureRequest, twin: Twin) -> Pair:
    inputs = draw_inputs(prompt_lengths(twin.shape)[request.param])
    return Pair(our_trace(twin.model, inputs), reference_trace(twin.oracle, inputs))


def test_encoder_states_are_the_references(pair: Pair) -> None:
    assert furthest(pair.ours.prompt, pair.theirs.prompt) <= NEAR


def test_logits_without_self_conditioning_are_the_references(pair: Pair) -> None:
    assert furthest(pair.ours.plain, pair.theirs.plain) <= NEAR


def test_logits_with_self_conditioning_are_the_references(pair: Pair) -> None:
    assert furthest(pair.ours.conditioned, pair.theirs.conditioned) <= NEAR
    assert furthest(pair.theirs.conditioned, pair.theirs.plain) > FAR


def test_a_committed_canvas_has_the_references_states(pair: Pair) -> None:
    assert furthest(pair.ours.commit, pair.theirs.commit) <= NEAR


def test_logits_after_a_committed_canvas_are_the_references(pair: Pair) -> None:
    assert furthest(pair.ours.second_plain, pair.theirs.second_plain) <= NEAR
    assert furthest(pair.ours.second_conditioned, pair.theirs.second_conditioned) <= NEAR


def test_the_checkpoints_come_in_both_styles_of_config(twin: Twin) -> None:
    text = json.loads((twin.directory / "config.json").read_text())["text_config"]
    assert ("per_layer_config" in text) is (twin.shape.style == "newer")
    assert ("global_head_dim" in text) is (twin.shape.style == "older")


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kv_heads = draw(st.sampled_from((1, 2, 3)))
    global_kv_heads = draw(st.sampled_from((None, 1, 2, 3)))
    experts = draw(st.integers(1, 9))
    return Shape(
        heads=6 * draw(st.integers(1, 2)),
        kv_heads=kv_heads,
        global_kv_heads=global_kv_heads,
        head_dim=draw(st.sampled_from((4, 10, 16))),
        global_head_dim=draw(st.sampled_from((8, 24, 32))),
        width=draw(st.sampled_from((32, 40))),
        layers=draw(st.sampled_from(("sf", "ssf", "fsf", "sff"))),
        experts=experts,
        top_k=draw(st.integers(1, experts)),
        window=draw(st.integers(2, 20)),
        sliding_theta=draw(st.sampled_from((1e2, 1e4))),
        full_theta=draw(st.sampled_from((1e4, 1e6))),
        rotary_fraction=draw(st.sampled_from((0.25, 0.5, 1.0))),
        style=draw(st.sampled_from(("newer", "older"))),
    )


@settings(max_examples=12)
@given(shape=shapes(), length=st.integers(1, 45))
def test_any_shape_says_what_the_reference_says(
    tmp_path_factory: pytest.TempPathFactory, shape: Shape, length: int
) -> None:
    drawn = diffusion_twin(shape, tmp_path_factory.mktemp("drawn"))
    inputs = draw_inputs(length)
    assert furthest(our_trace(drawn.model, inputs), reference_trace(drawn.oracle, inputs)) <= NEAR


def padded_lengths(shape: Shape) -> Tensor:
    lengths = prompt_lengths(shape)
    return torch.tensor([lengths["5"], lengths["W-1"], lengths["W+1"], lengths["2.5W"]])


def test_a_row_alone_says_what_a_left_padded_batch_of_the_reference_says(twin: Twin) -> None:
    lengths = padded_lengths(twin.shape)
    inputs = draw_inputs(int(lengths.max()), rows=len(lengths))
    theirs = reference_trace(twin.oracle, inputs, lengths)
    for row, length in enumerate(lengths.tolist()):
        ours = our_trace(twin.model, inputs.row(row, length))
        assert furthest(ours, theirs.row(row, length)) <= NEAR, length


def test_a_right_padded_batch_says_what_a_left_padded_one_of_the_reference_says(twin: Twin) -> None:
    lengths = padded_lengths(twin.shape)
    inputs = draw_inputs(int(lengths.max()), rows=len(lengths))
    theirs = reference_trace(twin.oracle, inputs, lengths)
    turned = [ids.roll(length) for ids, length in zip(inputs.prompt, lengths.tolist(), strict=True)]
    kv, states = encoded(twin.model, torch.stack(turned))
    soft = soft_embedding(twin.model, inputs.beliefs)
    plain = twin.model.denoise(inputs.first, kv, lengths=lengths)
    conditioned = twin.model.denoise(inputs.first, kv, soft, lengths=lengths)
    for row, length in enumerate(lengths.tolist()):
        assert furthest(states[row, :length], theirs.prompt[row, -length:]) <= NEAR, length
    assert furthest(twin.model.logits(plain), theirs.plain) <= NEAR
    assert furthest(twin.model.logits(conditioned), theirs.conditioned) <= NEAR
