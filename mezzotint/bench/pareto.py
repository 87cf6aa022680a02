"""Quality against time: which arms no other is at least as good and as fast as; measures nothing."""

from collections.abc import Sequence
from typing import NamedTuple


class Spot(NamedTuple):
    """One arm. quality: a rate, more is better; seconds: less is better. is_reference: drawn to compare with."""

    arm: str
    quality: float
    seconds: float
    is_reference: bool = False


def find_dominated(spots: Sequence[Spot]) -> dict[str, str]:
    """Arms that another beats in one and equals or beats in the other, each with the first such arm.

    Arms that are equal in both do not dominate each other.
    """
    found: dict[str, str] = {}
    for one in spots:
        for other in spots:
            if other.quality >= one.quality and other.seconds <= one.seconds and other[1:3] != one[1:3]:
                found.setdefault(one.arm, other.arm)
    return found
