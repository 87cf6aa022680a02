"""Which rows do what in the next engine step, decided on integers alone; nothing is run or allocated here.

Everything short goes at once: every denoising step that is due, every token, commit and verification. Of long prompts
at most a chunk goes, and that much is all by which prefill can delay a denoising step. Of the chunk the prompt that
waits longest has at least half; the rest goes to the shortest remainders, so that a short prompt overtakes a long one
and a long one still moves at every step.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Wish(NamedTuple):
    """What one row could do now.

    row: its key. order: of arrival. encodes: tokens still to encode before or for its need. indivisible: how many of
    the last of them must go together. denoises: whether a canvas waits for them, or for nothing.
    """

    row: int
    order: int
    encodes: int
    indivisible: int
    denoises: bool


class Plan(NamedTuple):
    """What the next step does: tokens to encode by row, and the rows whose canvases take a step."""

    encodes: dict[int, int]
    denoises: list[int]


def plan_step(wishes: Sequence[Wish], chunk: int, short: int) -> Plan:
    """Plan one step. chunk: tokens of long pieces in all. short: up to how many tokens a piece is a short one.

    What must go together is short too, or a chunk that is smaller would never hold it.
    Returns: the plan; a row is in at most one of its parts, and every row that wishes is in it if chunk allows.
    """
    denoises = [wish.row for wish in wishes if not wish.encodes and wish.denoises]
    encoding = sorted((wish for wish in wishes if wish.encodes), key=lambda wish: wish.order)
    long = [wish for wish in encoding if _is_long(wish, short)]
    encodes = {wish.row: wish.encodes for wish in encoding if not _is_long(wish, short)}
    if not long:
        return Plan(encodes, denoises)
    oldest, *others = long
    room = chunk - _take(encodes, oldest, -(-chunk // 2) if others else chunk)
    for wish in sorted(others, key=lambda wish: (wish.encodes, wish.order)):
        room -= _take(encodes, wish, room)
    _take(encodes, oldest, room + encodes.get(oldest.row, 0))
    return Plan(encodes, denoises)


def _is_long(wish: Wish, short: int) -> bool:
    return wish.encodes > max(short, wish.indivisible)


def _take(encodes: dict[int, int], wish: Wish, room: int) -> int:
    """Give a row up to `room` tokens of its piece. Returns: how many it got."""
    taken = min(wish.encodes, room)
    if taken < wish.encodes:  # what must go together is not begun
        taken = min(taken, wish.encodes - wish.indivisible)
    if taken <= 0:
        return 0
    encodes[wish.row] = taken
    return taken
