"""Blanks of unknown length in one canvas: the program that fills them; what precedes the canvas is its prompt.

surplus: one row; the model writes pads behind a middle that is shorter than its room.
candidates: rows of several lengths, see there.
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from mezzotint.decoding.abreast import Abreast
from mezzotint.decoding.candidates import Chosen, choose_lengths
from mezzotint.decoding.filling import Filling, Row, denoise_row
from mezzotint.decoding.gap import Gap, Slot, lay_slots, settle_gap, write_after, write_before
from mezzotint.decoding.program import Block, Denoise, Draft, Encode, Prefilled
from mezzotint.types import Reading


class Filled(NamedTuple):
    """A blank with what fills it: `tokens` between the ids that its seams have become.

    is_full: whether they took all the room that there was.
    """

    before: tuple[int, ...]
    tokens: tuple[int, ...]
    after: tuple[int, ...]
    is_full: bool


class Canvas(NamedTuple):
    """All blanks of a canvas, filled in `steps`. encodes: causal forwards after that of the prompt."""

    filled: tuple[Filled, ...]
    steps: int
    encodes: int


Fills = Generator[Abreast | Encode | Denoise | Prefilled | Draft | Block | Canvas, Any, Any]


def fill_canvas(prompt: list[int], held: int, gaps: Sequence[Gap], sizes: Sequence[int], how: Filling) -> Fills:
    """The program that fills the first len(sizes) gaps, each with at most as many tokens, behind `prompt`.

    held: tokens of the prompt that the context holds already. Tells a Canvas at last, and before it a Block without
    tokens for all rows of lengths that were tried or decided besides.
    """
    scored = how.lengths == "candidates"
    held = min(held, len(prompt) - 1)
    first = yield Encode(prompt[held:], held, int(scored))
    yield Prefilled(len(prompt))
    slots = yield from _settle_seams(gaps[: len(sizes)], sizes, len(prompt), how)
    if scored:
        chosen: Chosen = yield from choose_lengths(slots, first, len(prompt), how)
    else:
        row = yield from denoise_row(slots, len(prompt), how, how.sampler, 0)
        chosen = Chosen(row, row.steps, 0)
    filled = tuple(_fill(slot, chosen.row, index, how) for index, slot in enumerate(slots))
    yield Canvas(filled, chosen.steps, chosen.encodes)


def _settle_seams(gaps: Sequence[Gap], sizes: Sequence[int], at: int, how: Filling) -> Fills:
    """Read in one forward how the seams are written, a canvas of noise around them. Returns: the slots, [Slot]."""
    whole = [Slot((), gap.seams + size, (), gap.behind) for gap, size in zip(gaps, sizes, strict=True)]
    noise = how.randomness(0)
    laid = lay_slots(whole, how.limits.canvas_length, how.fill_id)
    befores = [range(start, start + len(gap.before.ids)) for gap, start in zip(gaps, laid.starts, strict=True)]
    ends = [start + slot.size for start, slot in zip(laid.starts, whole, strict=True)]
    afters = [range(end - len(gap.after.ids), end) for gap, end in zip(gaps, ends, strict=True)]
    places = [place for pair in zip(befores, afters, strict=True) for part in pair for place in part]
    if not places:
        return [Slot((), size, (), gap.behind) for gap, size in zip(gaps, sizes, strict=True)]
    reading: Reading = yield Denoise(
        canvas=laid.pins.write(noise.first_canvas()),
        at=at,
        soft=None,
        temperature=1.0,
        proposal_temperature=0.0,
        uniforms=noise.uniforms(0),
        with_soft=False,
        pins=laid.pins,
        window=None,
        logits_at=tuple(places),
    )
    assert reading.logits is not None
    yield Block(0, [], 1)
    log_p, slots, read = reading.logits.double().log_softmax(-1), list[Slot](), 0
    for gap, size in zip(gaps, sizes, strict=True):
        middle, end = read + len(gap.before.ids), read + gap.seams
        before, after = write_before(gap.before, log_p[read:middle]), write_after(gap.after, log_p[middle:end])
        slots.append(settle_gap(gap, size, before, after))
        read = end
    return slots


def _fill(room: Slot, row: Row, index: int, how: Filling) -> Filled:
    """What a row has in one blank. room: its slot with all the room that it had."""
    slot, inside = row.slots[index], row.inside(index, how)
    is_full = slot.size == room.size and not (inside and inside[-1] in how.surplus)
    return Filled(slot.before, tuple(row.middle(index, how)), slot.after, is_full)
