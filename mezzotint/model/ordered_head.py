"""A head that scores only likely tokens: centroids of groups of ids first, then the ids of the best groups."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Scored(NamedTuple):
    """The ids that were scored, [..., N] int64, and their logits [..., N]."""

    ids: Tensor
    logits: Tensor


class OrderedHead(nn.Module):
    """Groups of V ÷ centroids ids each, listed one group after another in `token_ordering`.

    Source: the reference's Gemma4AssistantMaskedEmbedder.
    """

    token_ordering: Tensor

    def __init__(self, width: int, vocab_size: int, centroids: int, top: int) -> None:
        super().__init__()
        self.top = top
        self.centroids = nn.Linear(width, centroids, bias=False)
        self.register_buffer("token_ordering", torch.arange(vocab_size))

    def score(self, hidden: Tensor, table: Tensor) -> Scored:
        """Exact logits of the ids in the best `top` groups, from hidden [..., D] and the embedding table [V, D]."""
        groups = F.linear(hidden, self.centroids.weight).topk(self.top, -1).indices
        ids = self.token_ordering.view(self.centroids.out_features, -1)[groups].flatten(-2)
        return Scored(ids, (table[ids] @ hidden[..., None])[..., 0])

    def best(self, hidden: Tensor, table: Tensor) -> Tensor:
        """The likeliest id [...] of hidden [..., D]; of equally likely ones the lowest."""
        ids, logits = self.score(hidden, table)
        highest = logits.amax(-1, keepdim=True)
        return ids.masked_fill(logits < highest, table.shape[0]).amin(-1)

    def logits(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Logits [..., V] of hidden [..., D]: what was not scored lies 1 below the least of what was."""
        ids, logits = self.score(hidden, table)
        floor = (logits.amin(-1, keepdim=True) - 1).expand(*hidden.shape[:-1], table.shape[0])
        return floor.scatter(-1, ids, logits)
