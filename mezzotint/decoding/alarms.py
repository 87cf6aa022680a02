"""Signs in its numbers that a block went wrong; signs in its text are an Inspector's, what follows is the gate's."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from mezzotint.types import Alarm

_WINDOW = 3  # tokens whose surprise counts together: a pair that does not fit, and what it does to the next
_CHUNK = 16  # rows of logits that are weighed at once


@dataclass(frozen=True, kw_only=True)
class GateLimits:
    """What a block may show without alarm, in nats.

    doubt: entropy of a token on the last step of a budget that was spent. surprise: of any three tokens in a row
    together, beyond what the causal pass expects of what it draws itself. spike: of one token; `spikes` may have more.
    Raises: ValueError for a number below 0.
    """

    doubt: float = 0.5
    surprise: float = 9.0
    spike: float = 6.0
    spikes: int = 1

    def __post_init__(self) -> None:
        for name in ("doubt", "surprise", "spike", "spikes"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; give a number from 0 up")


def find_doubt(entropies: Sequence[float], bounds: GateLimits) -> list[Alarm]:
    """The first token of which a canvas was still unsure when its budget was spent."""
    unsure = (offset for offset, entropy in enumerate(entropies) if entropy > bounds.doubt)
    return [Alarm("unconverged", offset) for offset in unsure][:1]


def measure_surprise(logits: Tensor, tokens: Sequence[int]) -> Tensor:
    """How much more each token surprises than one drawn from logits [N, V], row j of which stands before token j.

    Returns: −log p − H in nats, [N] float64. Its mean over what the causal pass draws itself is 0, and text that it
    would find likely lies below.
    Source: H is the expectation of −log p.
    """
    found = []
    for rows, ids in zip(logits.split(_CHUNK), torch.tensor(tokens).split(_CHUNK), strict=True):
        log_p = rows.double().log_softmax(-1)
        entropy = torch.special.entr(log_p.exp()).sum(-1)
        found.append(-log_p.gather(-1, ids.to(log_p.device)[:, None])[:, 0] - entropy)
    return torch.cat(found).cpu()


def find_surprise(surprise: Tensor, bounds: GateLimits) -> list[Alarm]:
    """The first window of three tokens that surprises too much, and the first of too many tokens that do. [N] nats."""
    sums = surprise.unfold(0, min(_WINDOW, len(surprise)), 1).sum(-1)
    spikes = (surprise > bounds.spike).nonzero()[:, 0].tolist()
    return list(
        chain(
            [Alarm("surprise", offset) for offset in (sums > bounds.surprise).nonzero()[:, 0].tolist()][:1],
            [Alarm("spikes", spikes[0])] if len(spikes) > bounds.spikes else [],
        )
    )
