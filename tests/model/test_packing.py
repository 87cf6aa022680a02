"""Packed matrices hold every weight once, where C++ looks for it, and zeros beside."""

import pytest
import torch
from torch import Tensor

from mezzotint.model.packing import LANES, Shelf, pack


def unpack(packed: Tensor) -> Tensor:
    """[panels, in ÷ pair, LANES, pair] → [panels · LANES, in]."""
    return packed.transpose(1, 2).flatten(2).flatten(0, 1)


@pytest.mark.parametrize(("dtype", "pair"), [(torch.bfloat16, 2), (torch.float32, 1), (torch.float64, 1)])
@pytest.mark.parametrize("size", [1, 32, 50])
def test_a_panel_holds_lanes_outputs_side_by_side(size: int, dtype: torch.dtype, pair: int) -> None:
    weight = torch.randn(size, 6).to(dtype)
    packed = pack(weight)
    assert packed.shape == (-(-size // LANES), 6 // pair, LANES, pair)
    assert packed.is_contiguous()
    assert torch.equal(unpack(packed)[:size], weight)
    assert not unpack(packed)[size:].any()


def test_matrices_of_one_shape_stand_one_behind_another() -> None:
    weights = torch.randn(3, 50, 6)
    assert torch.equal(pack(weights), torch.stack([pack(weight) for weight in weights]))


def test_gate_and_up_stand_in_turn_and_down_takes_all_that_they_yield() -> None:
    gate, up, down = torch.randn(50, 6), torch.randn(50, 6), torch.randn(6, 50)
    shelf = Shelf()
    gated, narrowed = shelf.gated(gate, up), shelf.down(down)
    both, back = shelf._kept
    assert torch.equal(both[:, 0], pack(gate))
    assert torch.equal(both[:, 1], pack(up))
    assert (gated.out, gated.in_, narrowed.out, narrowed.in_) == (2 * 2 * LANES, 6, 6, 2 * LANES)
    assert torch.equal(unpack(back)[:6, :50], down)
    assert not unpack(back)[:, 50:].any()


def test_what_is_on_a_shelf_stays_where_it_is() -> None:
    shelf, weight = Shelf(), torch.randn(4, 6)
    assert shelf.address(weight) == weight.data_ptr()
    turned = shelf.address(weight.T)
    assert turned != weight.data_ptr()
    assert torch.equal(shelf._kept[1], weight.T)


def test_inputs_without_a_partner_are_refused_in_bfloat16() -> None:
    assert pack(torch.randn(4, 5)).shape == (1, 5, LANES, 1)
    with pytest.raises(ValueError, match=r"bfloat16 take inputs in pairs, and a matrix has 5; .* dtype float32"):
        pack(torch.randn(4, 5).bfloat16())
