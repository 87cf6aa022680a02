"""How a uniform becomes a token: fixed bins of ids and the inverse CDF; sweep fills the bins."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor


class Bins(NamedTuple):
    """The ids of a vocabulary in ranges of `width` ids each; the last one may be shorter."""

    vocab_size: int
    width: int

    @property
    def number(self) -> int:
        """How many bins there are."""
        return -(-self.vocab_size // self.width)

    def ids(self, bin_: int) -> slice:
        """The ids of one bin."""
        return slice(bin_ * self.width, min((bin_ + 1) * self.width, self.vocab_size))

    def chunks(self, limit: int) -> Iterator[slice]:
        """Cut the vocabulary, in order, into chunks of whole bins or parts of one bin.

        limit: ids a chunk, 1 or more. All bins of one chunk are equally wide, so a shorter last one stands
        alone. 18 ids in bins of 4:
            limit 9   |0000 1111|2222 3333|44|
            limit 3   |000|0|111|1|222|2|333|3|44|
        """
        step = max(1, limit // self.width) * self.width
        whole = self.vocab_size // self.width * self.width
        for start, stop in pairwise(sorted({*range(0, whole, step), whole, self.vocab_size})):
            piece = min(limit, stop - start)
            yield from (slice(first, min(first + piece, stop)) for first in range(start, stop, piece))


def bins_of(vocab_size: int) -> Bins:
    """The bins of a vocabulary, ⌈V / 64⌉ ids each, whatever is computed at once. Source: contract 5."""
    return Bins(vocab_size, -(-vocab_size // 64))


class Place(NamedTuple):
    """Where uniforms fell, both [N]: which interval, and how far into it in [0, 1], again a uniform."""

    interval: Tensor
    rest: Tensor


def place(masses: Tensor, uniforms: Tensor) -> Place:
    """Inverse CDF: find the interval of masses [N, K] that holds uniforms [N] in [0, 1) of their sum.

    masses: float64, at least 0, not normalised. An interval without mass is never found: where rounding
    carries a uniform up to the sum, it is the last one with mass. Source: contract 5.
    """
    sums = masses.cumsum(-1)
    total = sums[:, -1:].contiguous()
    target = uniforms[:, None] * total
    last = torch.searchsorted(sums, total)
    interval = torch.searchsorted(sums, target, right=True).minimum(last)
    own = masses.gather(-1, interval)
    rest = (target - (sums.gather(-1, interval) - own)) / own
    return Place(interval[:, 0], rest[:, 0].clamp(0, 1))
