"""What stands where nothing was accepted: fresh uniform tokens, or the routes of the discrete DDIM path."""

import torch
from torch import Tensor


def renoise(proposal: Tensor, accepted: Tensor, noise: Tensor) -> Tensor:
    """Accepted positions take their proposal, all others fresh noise; everything [B, C]."""
    return torch.where(accepted, proposal, noise)


def route_ddim(
    canvas: Tensor,
    proposal: Tensor,
    noise: Tensor,
    uniforms: Tensor,
    *,
    before: float,
    after: float,
    vocab_size: int,
) -> Tensor:
    """One step of the discrete DDIM path from a share `before` of clean tokens to a larger share `after`.

    Each position goes clean (takes its proposal), stays, or takes fresh noise; with a = after, r = before ÷ a
    the masses are as a(1 − r)/V + r·a·[canvas = proposal] to r(1 − a)/V to (1 − r)(1 − a)/V.
    Where `after` is 1 every position goes clean.
    canvas, proposal, noise: [B, C] ids. uniforms: [B, C] float64 in [0, 1).
    Source: diffusers' DiscreteDDIM schedule, the law of the next canvas given this one and the clean tokens.
    """
    kept = before / after
    clean = after * (1 - kept) / vocab_size + kept * after * (canvas == proposal).double()
    stay = kept * (1 - after) / vocab_size
    fresh = (1 - kept) * (1 - after) / vocab_size
    mass = uniforms * (clean + stay + fresh)
    return torch.where(mass < clean, proposal, torch.where(mass < clean + stay, canvas, noise))
