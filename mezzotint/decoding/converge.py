"""When a canvas has settled: its argmax stands still and it is sure of it."""

import torch
from torch import Tensor


def count_stable(argmax: Tensor, reference: Tensor | None, stable_for: Tensor, open_: Tensor) -> Tensor:
    """Steps in a row for which the open positions' argmax equalled the reference.

    argmax: [B, C]. reference: [B, C], or None where there is none yet. stable_for: [B], the count so far.
    Returns: [B] int64.
    """
    if reference is None:
        return torch.zeros_like(stable_for)
    same = ((argmax == reference) | ~open_).all(-1)
    return torch.where(same, stable_for + 1, 0)


def is_confident(uncertainty: Tensor, open_: Tensor, threshold: float, *, inclusive: bool) -> Tensor:
    """Whether a row's open positions have a mean uncertainty below `threshold` nats (or at it, if inclusive).

    uncertainty: [B, C] nats. open_: [C] bool; a canvas without an open position is confident.
    Returns: [B] bool. Source: contract 13, 17.
    """
    count = open_.sum(-1)
    mean = torch.where(open_, uncertainty, 0).sum(-1) / count.clamp(min=1)
    sure = mean <= threshold if inclusive else mean < threshold
    return sure | (count == 0)
