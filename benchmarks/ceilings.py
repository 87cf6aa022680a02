"""What this machine can do at best, in this process and with its threads: products, streaming, functions."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.model.config import ModelConfig

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "exp2": torch.exp2,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
}
_CHUNK = 1024  # ids of a vocabulary product whose float32 block of 256 rows stays in a core's cache
_CACHED = 1 << 16  # elements that stay there while a function passes over them


class Shape(NamedTuple):
    """A product [rows, inner] × [inner, columns]."""

    rows: int
    inner: int
    columns: int


class Ceilings(NamedTuple):
    """Best rates a second: FLOP by product shape, bytes read or moved, float32 elements by function."""

    products: Mapping[Shape, float]
    bytes_per_s: float
    elements_per_s: Mapping[str, float]

    @property
    def flop_per_s(self) -> float:
        """Rate of the fastest of the shapes."""
        return max(self.products.values())


def measure_ceilings(config: ModelConfig, dtype: torch.dtype, working_set_bytes: int, *, seconds: float) -> Ceilings:
    """Measure each ceiling for about `seconds` and keep its best repetition.

    Products have the shapes of this model's denoising step. The stream is as long as `working_set_bytes`,
    what a step reads: a small model's weights may stay in a cache that is faster than memory.
    """
    return Ceilings(
        products={shape: _product_rate(shape, dtype, seconds) for shape in product_shapes(config)},
        bytes_per_s=_stream_rate(working_set_bytes, seconds),
        elements_per_s={name: _function_rate(function, seconds) for name, function in FUNCTIONS.items()},
    )


def product_shapes(config: ModelConfig) -> list[Shape]:
    """Products of a denoising step: MLP up and down, queries, one chunk of the vocabulary there and back."""
    rows, width, inner = config.canvas_length, config.hidden_size, config.intermediate_size
    queries, chunk = config.num_heads * config.layers[0].head_dim, min(_CHUNK, config.vocab_size)
    pairs = [(width, inner), (inner, width), (width, queries), (width, chunk), (chunk, width)]
    return list(dict.fromkeys(Shape(rows, *pair) for pair in pairs))


def _product_rate(shape: Shape, dtype: torch.dtype, seconds: float) -> float:
    a = torch.randn(shape.rows, shape.inner).to(dtype)
    w = torch.randn(shape.columns, shape.inner).to(dtype)
    out = torch.empty(shape.rows, shape.columns, dtype=dtype)
    flop = 2 * shape.rows * shape.inner * shape.columns
    return flop / _best(lambda: torch.mm(a, w.T, out=out), seconds)


def _stream_rate(size_bytes: int, seconds: float) -> float:
    """Bytes a second of a copy (read and written) or of a sum (read), whichever is faster."""
    source = torch.ones(max(1, size_bytes // 4))
    target = torch.empty_like(source)
    moved = source.nbytes
    copied = 2 * moved / _best(lambda: target.copy_(source), seconds)
    return max(copied, moved / _best(source.sum, seconds))


def _function_rate(function: Callable[[Tensor], Tensor], seconds: float) -> float:
    x = torch.linspace(-4, 4, _CACHED)
    return _CACHED / _best(lambda: function(x), seconds)


@torch.inference_mode()
def _best(call: Callable[[], object], seconds: float) -> float:
    """Least seconds of one call; at least three are made after one of warm-up."""
    call()
    least, ended, calls = float("inf"), time.perf_counter() + seconds, 0
    while calls < 3 or time.perf_counter() < ended:
        started = time.perf_counter()
        call()
        least, calls = min(least, time.perf_counter() - started), calls + 1
    return least
