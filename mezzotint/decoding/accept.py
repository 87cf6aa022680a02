"""Which proposals a step keeps."""

import torch
from torch import Tensor


def accept_entropy_bound(uncertainty: Tensor, open_: Tensor, bound: float) -> Tensor:
    """Keep the surest open positions while the uncertainty of those before them sums to at most `bound` nats.

    uncertainty: [B, C] nats. open_: [C] bool, False where pinned; pins are neither ranked nor counted.
    Returns: [B, C] bool. The surest open position is always kept; ties go to the lower index.
    Source: the report's Algorithm 1 (exclusive cumulative sum), contract 13.
    """
    ranked = torch.where(open_, uncertainty, torch.inf).sort(stable=True, dim=-1)
    before = ranked.values.cumsum(-1) - ranked.values  # a pin's is ∞ − ∞, which is no number at most `bound`
    return torch.zeros_like(before, dtype=torch.bool).scatter(-1, ranked.indices, before <= bound)


def accept_most_confident(log_prob: Tensor, committed: Tensor, open_: Tensor, target: int, threshold: float) -> Tensor:
    """Commit open positions whose proposal is surer than `threshold`, and the surest up to `target` in all.

    log_prob: [B, C] of the proposals. committed: [B, C] bool. open_: [C] bool. threshold: probability.
    target: open positions that must stand committed afterwards.
    Returns: [B, C] bool, a superset of `committed`; ties go to the lower index.
    Source: diffusers' BlockRefinement schedule, uniform mode; contract 13.
    """
    waiting = open_ & ~committed
    order = torch.where(waiting, log_prob, -torch.inf).sort(stable=True, dim=-1, descending=True).indices
    missing = target - (committed & open_).sum(-1, keepdim=True)
    ranks = torch.arange(order.shape[-1], device=order.device)
    surest = torch.zeros_like(committed).scatter(-1, order, ranks < missing)
    return committed | waiting & (surest | (log_prob.exp() > threshold))
