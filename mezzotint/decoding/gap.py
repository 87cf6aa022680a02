"""Blanks in one canvas with given text between them: how much room each has, and which places are pinned to what.

prompt │ before · open … open · after │ behind │ before · open … open · after │ behind … fill
       └────────────── gap ───────────┘        └────────────── gap ───────────┘
"""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from mezzotint.decoding.canvas import Pins, pin_positions

_MOST_HEAD = 64  # tokens behind a blank that keep their place in the canvas, however long the blank is


class Seam(NamedTuple):
    """Given ids beside a blank that may be written otherwise, together with part of what fills it.

    ids: as they are with nothing in the blank. covering: for each, the ids of which one may stand in its place and in
    that of all ids between it and the blank.
    """

    ids: tuple[int, ...] = ()
    covering: tuple[tuple[int, ...], ...] = ()


class Gap(NamedTuple):
    """A blank of at most `most` tokens between two seams, and the ids that are given behind it."""

    most: int
    before: Seam
    after: Seam
    behind: tuple[int, ...]

    @property
    def seams(self) -> int:
        """How many tokens both seams have."""
        return len(self.before.ids) + len(self.after.ids)


class Slot(NamedTuple):
    """A gap as it stands in a canvas: `size` open places between given ids."""

    before: tuple[int, ...]
    size: int
    after: tuple[int, ...]
    behind: tuple[int, ...]


class Laid(NamedTuple):
    """Slots in a canvas: its pins, and for each slot the offset of its first open place."""

    pins: Pins
    starts: tuple[int, ...]


def keep_head(behind: int, width: int) -> int:
    """How many of the ids behind a blank must stand in its canvas: all, or a quarter of it, or 64."""
    return min(behind, width // 4, _MOST_HEAD)


def plan_canvas(gaps: Sequence[Gap], width: int) -> list[int]:
    """How many tokens each of the first gaps gets in one canvas of `width`; the gaps that find no place are left out.

    Returns: the `most` of each, as many as fit with the text between them and the head of what is behind; where not
    even the first fits, what is left beside its seams and that head, which is 1 at least if no seam has more than
    width // 8 ids.
    """
    sizes, used = list[int](), 0
    for gap in gaps:
        need = gap.seams + gap.most + keep_head(len(gap.behind), width)
        if used + need > width:
            break
        sizes.append(gap.most)
        used += gap.seams + gap.most + len(gap.behind)
    return sizes or [width - gaps[0].seams - keep_head(len(gaps[0].behind), width)]


def lay_slots(slots: Sequence[Slot], width: int, fill_id: int | None) -> Laid:
    """Lay slots into a canvas of `width` from the left; what does not fit is cut off, and the rest filled.

    fill_id: None leaves the rest open, where nobody knows what follows.
    """
    given, starts, at = dict[int, int](), list[int](), 0
    for slot in slots:
        given |= dict(enumerate(slot.before, at))
        starts.append(at + len(slot.before))
        at = starts[-1] + slot.size
        given |= dict(enumerate((*slot.after, *slot.behind), at))
        at += len(slot.after) + len(slot.behind)
    if fill_id is not None:
        given |= dict.fromkeys(range(at, width), fill_id)
    pins = pin_positions({place: id for place, id in given.items() if place < width}, width)
    return Laid(pins, tuple(starts))


def count_places(slots: Sequence[Slot]) -> int:
    """Places of a canvas up to the last slot's end, without what is given behind it."""
    places = sum(len(slot.before) + slot.size + len(slot.after) + len(slot.behind) for slot in slots)
    return places - len(slots[-1].behind)


def write_before(seam: Seam, log_p: Tensor) -> tuple[int, ...]:
    """The likeliest way to write a seam that a blank follows.

    log_p: [K, V] of its K places, independent of each other.
    """
    ways: list[tuple[float, tuple[int, ...]]] = []
    ahead = 0.0  # of the ids that stay
    for place, (id, covering) in enumerate(zip(seam.ids, seam.covering, strict=True)):
        if covering:
            best = int(log_p[place, list(covering)].argmax())
            ways.append((ahead + float(log_p[place, covering[best]]), (*seam.ids[:place], covering[best])))
        ahead += float(log_p[place, id])
    return max([(ahead, seam.ids), *ways], key=lambda way: way[0])[1]  # as it is, if nothing is likelier


def write_after(seam: Seam, log_p: Tensor) -> tuple[int, ...]:
    """The likeliest way to write a seam that follows a blank; as write_before, from right to left."""
    return write_before(Seam(seam.ids[::-1], seam.covering[::-1]), log_p.flip(0))[::-1]


def settle_gap(gap: Gap, size: int, before: tuple[int, ...], after: tuple[int, ...]) -> Slot:
    """A gap whose seams are written; one written otherwise holds some of what fills the blank, so it takes a place."""
    taken = (before != gap.before.ids) + (after != gap.after.ids)
    if taken > size:
        after, taken = gap.after.ids, int(before != gap.before.ids)
    return Slot(before, size - taken, after, gap.behind)
