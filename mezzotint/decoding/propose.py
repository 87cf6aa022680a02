"""The autoregressive draw: which token follows, given one row of logits and one uniform."""

import torch
from torch import Tensor

from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.random import position_uniform


def draw_at(logits: Tensor, params: SamplingParams, seed: int, position: int) -> int:
    """The token of a request at an absolute position, from logits [V] of what stands before it. Source: contract 5."""
    return draw_next(
        logits,
        position_uniform(seed, position) if params.temperature else 0.0,  # the argmax needs none, and it takes time
        temperature=params.temperature,
        top_k=params.top_k,
        top_p=params.top_p,
        min_p=params.min_p,
    )


def draw_next(
    logits: Tensor, uniform: float, *, temperature: float, top_k: int | None, top_p: float, min_p: float
) -> int:
    """Draw a token id from logits [V] by inverse CDF in id order; temperature 0 takes the argmax, the lowest.

    uniform: in [0, 1). Filters apply to the tempered distribution, see keep_likely.
    Source: contract 5.
    """
    if temperature == 0:
        return int(logits.argmax())
    p = (logits.double() / temperature).softmax(-1)
    if top_k is not None or top_p < 1 or min_p > 0:
        p = torch.where(keep_likely(p, top_k, top_p, min_p), p, 0)
    sums = p.cumsum(-1)
    # A uniform is at most 1 − 2^-53, so its product with the sum rounds to less than it: a token is found.
    return int(torch.searchsorted(sums, uniform * sums[-1], right=True))


def keep_likely(p: Tensor, top_k: int | None, top_p: float, min_p: float) -> Tensor:
    """[..., V] bool: what of probabilities p [..., V] the filters keep, in the order top_k, top_p, min_p.

    Each applies to what the one before left and keeps at least the likeliest id, and among equals lower ones.
    """
    ranked = p.sort(stable=True, dim=-1, descending=True)
    kept = torch.ones_like(p, dtype=torch.bool)
    if top_k is not None:
        kept[..., top_k:] = False
    if top_p < 1:
        mass = torch.where(kept, ranked.values, 0)
        kept &= mass.cumsum(-1) - mass < top_p * mass.sum(-1, keepdim=True)
    kept &= ranked.values >= min_p * ranked.values[..., :1]
    return torch.zeros_like(kept).scatter(-1, ranked.indices, kept)
