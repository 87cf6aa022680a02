"""Where an answer ends: at its first end token or at its token limit, whichever comes first."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mezzotint.types import FinishReason


class Cut(NamedTuple):
    """The tokens that stay, and why generation ends here (None = it goes on)."""

    tokens: list[int]
    reason: FinishReason | None


def cut_answer(tokens: Sequence[int], room: int, end_ids: Collection[int]) -> Cut:
    """Cut newly final tokens after their first end token (which stays) and to `room` tokens.

    An end token that just fits is a stop, not a length.
    """
    for index, token in enumerate(tokens[:room]):
        if token in end_ids:
            return Cut(list(tokens[: index + 1]), "stop")
    return Cut(list(tokens[:room]), "length" if len(tokens) >= room else None)
