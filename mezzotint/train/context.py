"""Keys and values that keep their gradient, so that a denoising loss trains what the encoder wrote."""

from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.model.kv import Pair


class RecordedKV:
    """Keys and values of one encode; a denoise forward reads them and leaves them as they are."""

    def __init__(self) -> None:
        """An empty record, for one encode to fill."""
        self._pairs: dict[int, Pair] = {}
        self._length = 0

    @property
    def length(self) -> int:
        """Tokens encoded so far, padding included."""
        return self._length

    def place(self, layer: int, k: Tensor, v: Tensor) -> Pair:
        """See KeyValues.place; nothing is stored once an encode has advanced."""
        if not self._length:
            self._pairs[layer] = Pair(k, v)
            return Pair(k, v)
        old = self._pairs[layer]
        return Pair(torch.cat((old.k, k), 2), torch.cat((old.v, v), 2))

    def advance(self, count: int) -> None:
        """End the one encode that fills this record. Raises: ValueError for a second one."""
        if self._length:
            raise ValueError(f"a RecordedKV holds one encode, here of {self._length} tokens; make a new one")
        self._length = count

    def pair(self, layer: int, first: int, end: int) -> Pair:
        """See ContextPairs.pair; all of what was encoded may be read."""
        pair = self._pairs[layer]
        return Pair(pair.k[:, :, first:end], pair.v[:, :, first:end])

    def rows(self, index: Tensor) -> "RecordedKV":
        """Rows `index` [N], in that order and as often as asked."""
        chosen = RecordedKV()
        chosen._pairs = {layer: Pair(pair.k[index], pair.v[index]) for layer, pair in self._pairs.items()}
        chosen._length = self._length
        return chosen


class Contexts(NamedTuple):
    """What N canvases stand behind: N rows of keys and values, and how many tokens of each, lengths [N]."""

    kv: RecordedKV
    lengths: Tensor

    def rows(self, index: Tensor) -> "Contexts":
        """The contexts `index` [M], in that order and as often as asked."""
        return Contexts(self.kv.rows(index), self.lengths[index])
