"""Keys and values of encoded tokens, one pair a layer; what reads them is attention, what fills them is encode."""

from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.model.config import ModelConfig


class Pair(NamedTuple):
    """Keys and values of one layer, each [B, KV heads, T, head_dim]."""

    k: Tensor
    v: Tensor


class KV:
    """A contiguous cache of fixed capacity.

    Slots behind `length` are scratch: a denoise forward places its canvas there and never advances, so the context is
    not copied and not changed.
    """

    def __init__(
        self,
        config: ModelConfig,
        rows: int,
        capacity: int,
        *,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
    ) -> None:
        """Allocate room for `capacity` tokens in each of `rows` rows."""
        self.capacity = capacity
        self._length = 0
        self._pairs = [
            Pair(*(torch.empty(rows, s.kv_heads, capacity, s.head_dim, dtype=dtype, device=device) for _ in range(2)))
            for s in config.layers
        ]

    @property
    def length(self) -> int:
        """Tokens encoded so far."""
        return self._length

    def slots(self, count: int) -> list[Pair]:
        """All slots of each layer, of which `count` behind the context are about to be written.

        Raises: ValueError if there are fewer.
        """
        if (end := self._length + count) > self.capacity:
            raise ValueError(f"{end} tokens do not fit into a KV cache of {self.capacity}; allocate a larger one")
        return self._pairs

    def place(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        """Write the new tokens behind the context; see KeyValues.place."""
        end, pair = self._length + k.shape[2], self.slots(k.shape[2])[layer]
        pair.k[:, :, self._length : end] = k
        pair.v[:, :, self._length : end] = v
        return Pair(pair.k[:, :, :end], pair.v[:, :, :end])

    def pair(self, layer: int, first: int, end: int) -> Pair:
        """Views of a layer's keys and values of context tokens `first` to `end` − 1; see ContextPairs.pair."""
        if not 0 <= first <= end <= self._length:
            raise ValueError(f"tokens {first} to {end} do not lie in a context of {self._length}")
        pair = self._pairs[layer]
        return Pair(pair.k[:, :, first:end], pair.v[:, :, first:end])

    def advance(self, count: int) -> None:
        """Make the last placed `count` tokens part of the context."""
        self._length += count

    def truncate(self, length: int) -> None:
        """Forget everything behind the first `length` tokens."""
        if not 0 <= length <= self._length:
            raise ValueError(f"cannot cut a context of {self._length} tokens to {length}")
        self._length = length


def kv_bytes(config: ModelConfig, tokens: int, dtype: torch.dtype) -> int:
    """Memory of one row's keys and values for `tokens` tokens in bytes."""
    return sum(2 * layer.kv_heads * layer.head_dim for layer in config.layers) * tokens * dtype.itemsize
