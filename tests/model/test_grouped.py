"""Rows meet the matrix that each chose, and nothing of how that is done depends on the choices."""

import pytest
import torch
from torch import Tensor

from mezzotint.model.grouped import group, multiply, multiply_all, multiply_few

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 2e-2}


def case(dtype: torch.dtype, width: int, out: int) -> tuple[Tensor, Tensor, Tensor]:
    """Eleven rows, five matrices of which the fourth is chosen by no row, and the choices in no order."""
    generator = torch.Generator().manual_seed(4)
    rows = torch.randn(11, width, generator=generator).to(dtype)
    matrices = torch.randn(5, out, width, generator=generator).to(dtype)
    return rows, matrices, torch.tensor([4, 0, 2, 2, 1, 4, 0, 4, 2, 0, 2])


@pytest.mark.parametrize(("width", "out"), [(16, 24), (7, 5)], ids=["aligned", "not aligned"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_each_row_is_multiplied_with_its_own_matrix(dtype: torch.dtype, width: int, out: int) -> None:
    rows, matrices, chosen = case(dtype, width, out)
    groups = group(chosen, len(matrices))
    expected = torch.stack([matrices[at].double() @ row.double() for row, at in zip(rows, chosen, strict=True)])
    for form in (multiply, multiply_all, multiply_few):
        found = form(rows[groups.order], matrices, groups)
        assert found.dtype == dtype
        furthest = (found.double() - expected[groups.order]).abs().max()
        assert furthest <= TOLERANCE[dtype] * expected.abs().max()


def test_equal_choices_keep_the_order_of_their_rows_and_empty_ones_end_where_they_begin() -> None:
    _, matrices, chosen = case(torch.float32, 4, 4)
    groups = group(chosen, len(matrices))
    assert groups.order.tolist() == [1, 6, 9, 4, 2, 3, 8, 10, 0, 5, 7]
    assert groups.ends.tolist() == [3, 4, 8, 8, 11]
    assert groups.chosen.tolist() == sorted(chosen.tolist())
