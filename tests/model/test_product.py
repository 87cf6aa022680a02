"""A packed product equals the plain one."""

import pytest
import torch
from torch.nn import functional as F

from mezzotint.model.product import Product


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 2, 64])
def test_a_packed_product_equals_the_plain_one(rows: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(rows)
    weight = torch.randn(96, 40, generator=generator).to(dtype)
    x = torch.randn(2, rows, 40, generator=generator).to(dtype)
    product = Product(weight)
    expected = F.linear(x, weight)
    assert product.size == 96
    tolerance = {torch.float64: 0, torch.float32: 1e-6, torch.bfloat16: 1e-2}[dtype]
    assert (product(x) - expected).abs().max() <= tolerance * expected.abs().max()


def test_a_weight_that_is_a_view_is_packed_as_what_it_shows() -> None:
    weight = torch.arange(24.0).view(4, 6).T
    x = torch.eye(4)[None]
    assert torch.equal(Product(weight)(x)[0], weight.T)
