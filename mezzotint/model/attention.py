"""Attention of new tokens over context and themselves, with the masks of encode and denoise; KV storage lives in kv.

encode, sliding window 3            denoise, window 3, context 4, canvas 2
keys →  0 1 2 3 4 5                 keys →  0 1 2 3 | 4 5
q 0     x . . . . .                 q 4     . . x x | x x      full layers see the whole context
q 3     . x x x . .                 q 5     . . x x | x x      the window is the same for every canvas position
q 5     . . . x x x
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mezzotint.model.config import LayerShape, ModelConfig
from mezzotint.model.layers import Angles, RMSNorm, rotate
from mezzotint.types import KeyValues


class View(NamedTuple):
    """What the queries of one forward may see in one layer kind.

    first: oldest context slot seen by a query. mask: [T, keys] or [B, 1, T, keys] from that slot on, True = visible;
    None = everything, or plain causal where `causal`.
    """

    first: int
    mask: Tensor | None
    causal: bool


def encode_view(start: int, count: int, window: int | None, device: torch.device) -> View:
    """Causal view of `count` tokens behind `start` context tokens; `window` counts the query, None = all."""
    first = 0 if window is None else max(0, start - window + 1)
    if count == 1:
        return View(first, None, causal=False)
    if start == 0 and (window is None or count <= window):
        return View(0, None, causal=True)
    queries = torch.arange(start, start + count, device=device)[:, None]
    keys = torch.arange(first, start + count, device=device)[None]
    seen = keys <= queries
    return View(first, seen if window is None else seen & (keys > queries - window), causal=False)


def denoise_view(start: int, count: int, window: int | None, lengths: Tensor | None) -> View:
    """View of a canvas of `count` tokens: all of itself and the last `window` context tokens (None = all of them).

    lengths [B]: each row's own context length where rows differ; slots behind it up to `start` are hidden.
    """
    if lengths is None:
        return View(0 if window is None else max(0, start - window), None, causal=False)
    slots = torch.arange(start + count, device=lengths.device)[None]
    ends = lengths[:, None]
    seen = slots < ends
    if window is not None:
        seen &= slots >= ends - window
    return View(0, (seen | (slots >= start))[:, None, None], causal=False)


class Mixer(Protocol):
    """Attention of one layer's new tokens over whatever context they stand behind."""

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q [B, heads, T, head_dim], k and v [B, KV heads, T, head_dim] → [B, heads, T, head_dim]."""


class ContextMixer(NamedTuple):
    """Attention behind one context that all rows share the length of; it keeps the new keys and values there."""

    kv: KeyValues
    view: View

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """See Mixer."""
        keys, values = self.kv.place(layer, k, v)
        return attend(q, keys, values, self.view)


def attend(q: Tensor, keys: Tensor, values: Tensor, view: View) -> Tensor:
    """Grouped-query attention with scale 1: q [B, heads, T, head_dim] over keys and values [B, KV heads, S, head_dim].

    Returns: [B, heads, T, head_dim].
    """
    mixed: Tensor = F.scaled_dot_product_attention(
        q,
        keys[:, :, view.first :],
        values[:, :, view.first :],
        attn_mask=view.mask,
        is_causal=view.causal,
        scale=1.0,
        enable_gqa=keys.shape[1] != q.shape[1],
    )
    return mixed


class Attention(nn.Module):
    """Grouped-query attention with normed q, k and v, scale 1, and V taken from the K projection where `shares_kv`."""

    def __init__(self, config: ModelConfig, index: int) -> None:
        super().__init__()
        self.index = index
        self.shape: LayerShape = config.layers[index]
        width, head = config.hidden_size, self.shape.head_dim
        self.q_proj = nn.Linear(width, config.num_heads * head, bias=False)
        self.k_proj = nn.Linear(width, self.shape.kv_heads * head, bias=False)
        self.v_proj = None if self.shape.shares_kv else nn.Linear(width, self.shape.kv_heads * head, bias=False)
        self.o_proj = nn.Linear(config.num_heads * head, width, bias=False)
        self.q_norm = RMSNorm(head, config.rms_norm_eps)
        self.k_norm = RMSNorm(head, config.rms_norm_eps)
        self.v_norm = RMSNorm(head, config.rms_norm_eps, scaled=False)

    def forward(self, x: Tensor, angles: Angles, mix: Mixer) -> Tensor:
        """x [B, T, D] → [B, T, D]."""
        heads = (*x.shape[:2], -1, self.shape.head_dim)
        raw = F.linear(x, self.k_proj.weight).view(heads)
        q = rotate(self.q_norm(F.linear(x, self.q_proj.weight).view(heads)), angles)
        k = rotate(self.k_norm(raw), angles)
        v = self.v_norm(raw if self.v_proj is None else F.linear(x, self.v_proj.weight).view(heads))
        mixed = mix(self.index, q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        return F.linear(mixed.transpose(1, 2).flatten(2), self.o_proj.weight)
