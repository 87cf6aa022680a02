"""Narrower canvases: as asked for from the start, and without what stands behind a settled end of turn."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from mezzotint.decoding.canvas import pin_positions
from mezzotint.decoding.generate import Block, generate_blocks
from mezzotint.decoding.params import SamplingParams
from tests.decoding.network import END, C, Scripted, V, limits, sure_of

PROMPT = [3, 1, 4, 1, 5]


def write(network: Any = None, seed: int = 1, pins: Any = None, **options: Any) -> list[Any]:
    params = SamplingParams(**{"max_tokens": 20, **options})
    return list(generate_blocks(network or Scripted(), PROMPT, params, seed, limits(), pins=pins))


def tokens(events: Sequence[Any]) -> list[int]:
    return [token for event in events if isinstance(event, Block) for token in event.tokens]


def widths(network: Scripted) -> list[int]:
    return [len(forward.ids) for forward in network.forwards if forward.kind == "d"]


def late(*told: int) -> Scripted:
    """A network that is sure of what is told and unsure of all behind it, so that its canvas does not converge."""

    def beliefs(canvas: list[int], context: list[int], step: int) -> torch.Tensor:
        unsure = torch.randn(C - len(told), V, generator=torch.Generator().manual_seed(step))
        return torch.cat([sure_of([*told]), unsure])[: len(canvas)]

    return Scripted(beliefs=beliefs)


def test_a_canvas_has_the_width_that_was_asked_for() -> None:
    network = Scripted()
    events = write(network, canvas_length=3, ignore_eos=True)
    assert set(widths(network)) == {3}
    assert [len(event.tokens) for event in events if isinstance(event, Block)] == [3] * 6 + [2]


def test_a_canvas_wider_than_the_checkpoints_is_refused() -> None:
    with pytest.raises(ValueError, match=f"canvas_length is 9, and this checkpoint's canvas has {C} tokens"):
        write(canvas_length=9)


def test_behind_a_settled_end_nothing_is_denoised_any_longer() -> None:
    network, plain = late(9, 2, END), late(9, 2, END)
    events = write(network, drop_after_end=True)
    assert tokens(events) == tokens(write(plain)) == [9, 2, END]
    assert widths(network) == [C, C], "stable and sure once it is narrow"
    assert len(widths(plain)) > 2
    assert events[-1].reason == "stop"


def test_a_narrowed_canvas_goes_on_without_its_end_and_the_next_one_starts_behind_it() -> None:
    """Two steps long it ends at the third place; then it no longer wants to."""

    def beliefs(canvas: list[int], context: list[int], step: int) -> torch.Tensor:
        if len(context) > len(PROMPT):
            return sure_of([2, END, *[0] * C])[: len(canvas)]
        sure = sure_of([9, 9, END if step < 2 else 5])
        return torch.cat([sure, torch.randn(C - 3, V, generator=torch.Generator().manual_seed(step))])[: len(canvas)]

    network = Scripted(beliefs=lambda canvas, context, step: beliefs(canvas, context, step))
    # The first place keeps changing for a while, so that the narrow canvas does not converge on its end.
    moody = network.beliefs

    def wavering(canvas: list[int], context: list[int], step: int) -> torch.Tensor:
        logits = moody(canvas, context, step)
        if len(context) == len(PROMPT) and step < 4:
            logits[0] = sure_of([step])[0]
        return logits

    network.beliefs = wavering
    events = write(network, drop_after_end=True)
    blocks = [event.tokens for event in events if isinstance(event, Block)]
    assert blocks == [[9, 9, 5], [2, END]]
    assert [forward.ids for forward in network.forwards if forward.kind == "e"] == [PROMPT, [9, 9, 5]]


def test_pins_are_never_dropped() -> None:
    network = late(9, 2, END)
    events = write(network, pins={0: pin_positions({C - 1: 4}, C)}, drop_after_end=True)
    assert set(widths(network)) == {C}
    assert tokens(events) == [9, 2, END]


def test_without_an_end_nothing_is_dropped() -> None:
    for seed in range(4):
        assert tokens(write(seed=seed, drop_after_end=True))[:1] == tokens(write(seed=seed))[:1]
