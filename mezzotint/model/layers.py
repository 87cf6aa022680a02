"""The small parts a layer is made of: norm, rotary embedding, gated MLP; not attention or experts."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mezzotint.model.config import LayerShape


class RMSNorm(nn.Module):
    """x · rms(x)⁻¹ · weight over the last axis, formed in float32 or wider, cast back last; `scaled` has a weight."""

    weight: nn.Parameter | None

    def __init__(self, size: int, eps: float, *, scaled: bool = True) -> None:
        super().__init__()
        self.size, self.eps = (size,), eps
        self.register_parameter("weight", nn.Parameter(torch.ones(size)) if scaled else None)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., size] → same shape and dtype."""
        return F.rms_norm(x, self.size, self.weight, self.eps)


class Angles(NamedTuple):
    """Rotary tables for one layer kind, each [T, head_dim]; `sin` carries the sign of the half it multiplies."""

    cos: Tensor
    sin: Tensor


def rotary_angles(shape: LayerShape, positions: Tensor, dtype: torch.dtype) -> Angles:
    """Tables for `positions` [T] (or [B, T]); angles in float32 (float64 for float64), cast to `dtype` last.

    Full layers rotate only the first `rotary_fraction` of the pairs, but their frequencies are spread over the whole
    head_dim; the other pairs stand still.
    Source: the released config's `default` and `proportional` rope types.
    """
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    half = shape.head_dim // 2
    turning = int(shape.rotary_fraction * shape.head_dim // 2)
    exponents = torch.arange(turning, dtype=torch.float32, device=positions.device) * (2 / shape.head_dim)
    frequencies = F.pad(shape.rope_theta**-exponents, (0, half - turning)).to(wide)
    angles = positions.to(wide)[..., None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    return Angles(torch.cat((cos, cos), -1).to(dtype), torch.cat((-sin, sin), -1).to(dtype))


class RotaryTable:
    """Angles of one layer kind for positions from 0, computed once and grown by doubling."""

    def __init__(self, shape: LayerShape) -> None:
        self._shape = shape
        self._angles: Angles | None = None

    def at(self, start: int, count: int, like: Tensor) -> Angles:
        """Angles of `count` positions from `start`, each [count, head_dim], in dtype and device of `like`."""
        end, known = start + count, self._angles
        if known is None or len(known.cos) < end or known.cos.dtype != like.dtype or known.cos.device != like.device:
            size = max(end, 256 if known is None else 2 * len(known.cos))
            # A table outlives the call that makes it, and a training run may follow.
            with torch.inference_mode(mode=False):
                known = rotary_angles(self._shape, torch.arange(size, device=like.device), like.dtype)
            self._angles = known
        return Angles(known.cos[start:end], known.sin[start:end])


def rotate(x: Tensor, angles: Angles) -> Tensor:
    """Rotate x [B, T, heads, head_dim] by its positions; dimension j pairs with j + head_dim / 2."""
    cos, sin = angles.cos.unsqueeze(-2), angles.sin.unsqueeze(-2)
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin)


class MLP(nn.Module):
    """down(gelu(gate x) · (up x)), tanh-approximated GELU, no bias."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., width] → same shape."""
        return F.linear(
            gelu(F.linear(x, self.gate_proj.weight)) * F.linear(x, self.up_proj.weight), self.down_proj.weight
        )


def gelu(x: Tensor) -> Tensor:
    """The tanh approximation of GELU that every checkpoint of this family uses."""
    return F.gelu(x, approximate="tanh")
