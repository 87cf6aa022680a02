"""Which drafts stay: those that ar would have drawn itself; who drafts is no matter here."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from mezzotint.decoding.guide import Guide


class Agreement(NamedTuple):
    """How many drafts were accepted; they with the draw that follows them, and what that left without a choice."""

    accepted: int
    tokens: list[int]


def agree(logits: Tensor, drafts: Sequence[int], guide: Guide, position: int) -> Agreement:
    """Settle the drafts that ar would have drawn, up to the first that it would not, and what it writes there.

    logits: [k + 1, V], row j behind draft j, row 0 behind what stands before them. position: of the first draft.
    Source: contract 4, 24; drafter-invariant speculation, arXiv:2408.07978.
    """
    tokens: list[int] = []
    for row, draft in zip(logits, [*drafts, None], strict=True):
        tokens.append(guide.draw(row, position + len(tokens)))
        if tokens[-1] != draft or guide.reason:
            break
    accepted = len(tokens) - (tokens[-1] != draft)
    return Agreement(accepted, [*tokens, *guide.settle_free()])
