"""Pins: canvas positions whose token is given; where they stand in a canvas and in its soft embedding."""

from typing import NamedTuple

import torch
from torch import Tensor


class Pins(NamedTuple):
    """mask [C] bool, True where the token is given; tokens [C] int64, read only there. Both may be
    [B, C], each row with pins of its own, under the entropy-bound rule.

    Source: contract 13.
    """

    mask: Tensor
    tokens: Tensor

    def write(self, canvas: Tensor) -> Tensor:
        """canvas [B, C] with the given tokens in place."""
        return torch.where(self.mask, self.tokens, canvas)

    def write_soft(self, soft: Tensor, given: Tensor) -> Tensor:
        """soft [B, C, D] with the embedding of the given tokens, given [C, D] or [B, C, D], in place."""
        return torch.where(self.mask.to(soft.device, non_blocking=True)[..., None], given, soft)


def no_pins(width: int) -> Pins:
    """A canvas of `width` tokens that is open everywhere."""
    return Pins(torch.zeros(width, dtype=torch.bool), torch.zeros(width, dtype=torch.long))


def pin_positions(given: dict[int, int], width: int) -> Pins:
    """Pins of a canvas of `width` tokens from offset → token id.

    Raises: ValueError naming an offset outside the canvas.
    """
    for offset in given:
        if not 0 <= offset < width:
            raise ValueError(f"pin at offset {offset} lies outside the canvas of {width} tokens; pin 0 to {width - 1}")
    mask = [offset in given for offset in range(width)]
    tokens = [given.get(offset, 0) for offset in range(width)]
    return Pins(torch.tensor(mask), torch.tensor(tokens))
