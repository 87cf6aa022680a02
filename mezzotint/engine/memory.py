"""How many pages each group gets out of so many bytes; the pages themselves live in pages and table."""

from typing import NamedTuple

import torch

from mezzotint.engine.config import EngineConfig
from mezzotint.model.config import LayerKind, ModelConfig


class Memory(NamedTuple):
    """Pages of each group."""

    full: int
    sliding: int


def divide_memory(config: EngineConfig, model: ModelConfig, dtype: torch.dtype, available: int, window: int) -> Memory:
    """Pages for config.max_rows requests at the longest, or as many of both groups as memory holds.

    available: free bytes, of which half may be taken unless config.memory_bytes says how many.
    window: tokens that rows keep in sliding layers, that of a next one included.
    Raises: ValueError where not even one request of one canvas would fit.
    """
    page, budget = config.page_size, config.memory_bytes or available // 2
    pages = -(-model.max_positions // page)
    shown = -(-(window + max(config.chunk_tokens, model.canvas_length + 1)) // page) + 2
    most = Memory(config.max_rows * pages, config.max_rows * min(pages, shown))
    full, sliding = (page * _token_bytes(model, kind, dtype) for kind in ("full_attention", "sliding_attention"))
    share = min(1.0, budget / (most.full * full + most.sliding * sliding))
    found = Memory(int(most.full * share), int(most.sliding * share))
    need = -(-(model.canvas_length + 1) // page)
    if min(found) < need:
        raise ValueError(
            f"{budget:,} bytes of memory hold {found.full} and {found.sliding} pages of {page} tokens, and a canvas "
            f"alone needs {need}; allow at least {-(-need * (full + sliding) // 1):,} bytes"
        )
    return found


def _token_bytes(model: ModelConfig, kind: LayerKind, dtype: torch.dtype) -> int:
    layers = [shape for shape in model.layers if shape.kind == kind]
    return sum(2 * shape.kv_heads * shape.head_dim for shape in layers) * dtype.itemsize
