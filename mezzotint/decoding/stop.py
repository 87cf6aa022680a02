"""Where an answer ends: at its first end token, where a stopper says, or at its token limit, whichever comes first."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mezzotint.decoding.thoughts import Thoughts
from mezzotint.types import FinishReason, Stopper


class Cut(NamedTuple):
    """The tokens that stay, and why generation ends here (None = it goes on)."""

    tokens: list[int]
    reason: FinishReason | None


def cut_answer(
    tokens: Sequence[int],
    room: int,
    end_ids: Collection[int],
    stopper: Stopper | None = None,
    thoughts: Thoughts | None = None,
) -> Cut:
    """Cut newly final tokens behind their first end token, where `stopper` ends them, and to `room` tokens.

    Where thoughts have to close, their closing token stands, and of what was meant to follow another one nothing.
    An end that just fits is a stop, not a length.
    """
    kept: list[int] = []
    for token in tokens[:room]:
        kept.append(token if thoughts is None else thoughts.settle(token, room - len(kept)))
        if kept[-1] in end_ids or (stopper is not None and stopper.count_kept(kept[-1:]) is not None):
            return Cut(kept, "stop")
        if kept[-1] != token:
            break
    return Cut(kept, "length" if len(kept) >= room else None)
