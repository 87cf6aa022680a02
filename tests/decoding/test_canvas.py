"""Pins stand in the canvas and in its soft embedding, and nowhere else."""

import pytest
import torch

from mezzotint.decoding.canvas import no_pins, pin_positions


def test_pins_are_written_where_they_belong_and_nowhere_else() -> None:
    canvas = torch.arange(10, 18).view(2, 4)
    pinned = pin_positions({1: 5, 3: 0}, 4).write(canvas)
    assert pinned.tolist() == [[10, 5, 12, 0], [14, 5, 16, 0]]
    assert canvas.tolist() == [[10, 11, 12, 13], [14, 15, 16, 17]]


def test_pinned_positions_carry_the_embedding_of_their_token() -> None:
    table = torch.randn(9, 3, generator=torch.Generator().manual_seed(0))
    pins = pin_positions({0: 4}, 2)
    soft = torch.randn(1, 2, 3, generator=torch.Generator().manual_seed(1))
    written = pins.write_soft(soft, table[pins.tokens])
    assert written[0, 0].equal(table[4])
    assert written[0, 1].equal(soft[0, 1])


def test_a_canvas_without_pins_is_left_as_it_is() -> None:
    canvas = torch.arange(6).view(1, 6)
    for pins in (no_pins(6), pin_positions({}, 6)):
        assert not pins.mask.any()
        assert pins.write(canvas).equal(canvas)


@pytest.mark.parametrize("offset", [-1, 4, 100])
def test_a_pin_outside_the_canvas_is_refused_with_its_offset(offset: int) -> None:
    with pytest.raises(ValueError, match=f"offset {offset} .* canvas of 4 tokens; pin 0 to 3"):
        pin_positions({0: 1, offset: 1}, 4)
