from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.model.config import LayerKind, ModelConfig, parse_config
from mezzotint.model.kv import KV, kv_bytes

RAW: dict[str, Any] = {
    "model_type": "gemma4_text",
    "num_hidden_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"],
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "per_layer_config": {"1": {"head_dim": 6, "num_key_value_heads": 1}},
}
HEADS: tuple[tuple[LayerKind, int, int], ...] = (("sliding_attention", 2, 4), ("full_attention", 1, 6))


@pytest.fixture
def config() -> ModelConfig:
    return parse_config(RAW)


def tokens(start: int, count: int, layer: int, rows: int = 2) -> Tensor:
    """Keys or values that carry their position, so that a misplaced one is seen."""
    _, heads, size = HEADS[layer]
    positions = torch.arange(start, start + count, dtype=torch.float32)
    return positions[:, None].expand(rows, heads, count, size)


def test_each_forward_sees_the_context_and_what_it_placed(config: ModelConfig) -> None:
    kv = KV(config, 2, 8, dtype=torch.float32)
    for start, count in ((0, 3), (3, 1), (4, 4)):
        for layer in (0, 1):
            keys, values = kv.place(layer, tokens(start, count, layer), -tokens(start, count, layer))
            assert torch.equal(keys, tokens(0, start + count, layer))
            assert torch.equal(values, -tokens(0, start + count, layer))
        kv.advance(count)
        assert kv.length == start + count


def test_what_was_placed_without_advancing_is_overwritten_and_the_context_is_not(config: ModelConfig) -> None:
    kv = KV(config, 2, 8, dtype=torch.float32)
    kv.place(0, tokens(0, 3, 0), tokens(0, 3, 0))
    kv.advance(3)
    kv.place(0, tokens(50, 5, 0), tokens(50, 5, 0))
    keys, _ = kv.place(0, tokens(3, 2, 0), tokens(3, 2, 0))
    assert kv.length == 3
    assert torch.equal(keys, tokens(0, 5, 0))


def test_a_cut_context_goes_on_from_its_new_end(config: ModelConfig) -> None:
    kv = KV(config, 2, 8, dtype=torch.float32)
    kv.place(1, tokens(0, 6, 1), tokens(0, 6, 1))
    kv.advance(6)
    kv.truncate(2)
    keys, _ = kv.place(1, tokens(2, 1, 1), tokens(2, 1, 1))
    assert torch.equal(keys, tokens(0, 3, 1))
    with pytest.raises(ValueError, match="cannot cut a context of 2 tokens to 3"):
        kv.truncate(3)


def test_a_layers_pair_is_a_view_of_the_context_alone(config: ModelConfig) -> None:
    kv = KV(config, 2, 8, dtype=torch.float32)
    kv.place(1, tokens(0, 6, 1), -tokens(0, 6, 1))
    kv.advance(5)
    keys, values = kv.pair(1, 2, 5)
    assert torch.equal(keys, tokens(2, 3, 1))
    assert torch.equal(values, -tokens(2, 3, 1))
    assert kv.pair(1, 0, 5).k.data_ptr() == kv.pair(1, 0, 4).k.data_ptr()
    with pytest.raises(ValueError, match="tokens 2 to 6 do not lie in a context of 5"):
        kv.pair(1, 2, 6)


def test_tokens_beyond_the_capacity_are_refused(config: ModelConfig) -> None:
    kv = KV(config, 2, 4, dtype=torch.float32)
    kv.place(0, tokens(0, 4, 0), tokens(0, 4, 0))
    kv.advance(4)
    with pytest.raises(ValueError, match="5 tokens do not fit into a KV cache of 4; allocate a larger one"):
        kv.place(0, tokens(4, 1, 0), tokens(4, 1, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kv_bytes_is_what_one_row_takes(config: ModelConfig, dtype: torch.dtype) -> None:
    kv = KV(config, 1, 8, dtype=dtype)
    placed = [kv.place(layer, tokens(0, 8, layer, 1), tokens(0, 8, layer, 1)) for layer in (0, 1)]
    assert kv_bytes(config, 8, dtype) == sum(half.nbytes for pair in placed for half in pair)
