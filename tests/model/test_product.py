"""A packed product equals the plain one."""

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor
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


def test_bfloat16_stays_plain_on_a_cpu_without_instructions_for_it() -> None:
    script = (
        "import torch; from mezzotint.model.product import Product\n"
        "eye = torch.eye(8, dtype=torch.bfloat16)\n"
        "assert torch.equal(Product(eye)(eye), eye)"
    )
    old_cpu = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = subprocess.run([sys.executable, "-c", script], env=old_cpu, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_weight_is_held_once(dtype: torch.dtype) -> None:
    weight = torch.ones(4, 6, dtype=dtype)
    held = [value for value in vars(Product(weight)).values() if isinstance(value, Tensor)]
    assert len(held) == 1
    # What torch packs is its own copy; what it does not is shared.
    assert (held[0] is weight) == (dtype == torch.float64 or not torch.backends.mkldnn.is_available())
