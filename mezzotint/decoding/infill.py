"""Blanks of unknown length in one canvas: the program that fills them; what precedes the canvas is its prompt.

surplus: one row; the model writes pads behind a middle that is shorter than its room.
candidates: rows of several lengths; two steps each tell which are worth the rest, the causal pass which is best.
"""

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import torch

from mezzotint.decoding.canvas import Pins
from mezzotint.decoding.gap import (
    Gap,
    Slot,
    count_places,
    lay_slots,
    settle_gap,
    write_after,
    write_before,
)
from mezzotint.decoding.generate import denoise_canvas
from mezzotint.decoding.limits import Limits
from mezzotint.decoding.program import Block, Denoise, Draft, Encode, Encoded, Prefilled
from mezzotint.decoding.random import CanvasRandomness
from mezzotint.decoding.sampler import CanvasState, Sampler
from mezzotint.decoding.score import score
from mezzotint.decoding.shape import Shape
from mezzotint.types import Reading

Lengths = Literal["surplus", "candidates"]
LADDER = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)  # lengths that are tried, and the most that a blank may have
_TRIED = 2  # denoising steps of each
_KEPT = 3  # lengths that are denoised to the end, besides 0, which takes no step
_PRIOR = 8  # tokens of a blank whose length is not decided yet
_TIE = 0.5  # nats that a longer middle must be likelier by


@dataclass(frozen=True, kw_only=True)
class Filling:
    """How a canvas with blanks is denoised.

    randomness: of each attempt at it. surplus: ids that are never part of a middle. fill_id: of places behind all text,
    None where a blank follows there that has to wait.
    """

    lengths: Lengths
    sampler: Sampler
    temperature: float
    randomness: Callable[[int], CanvasRandomness]
    limits: Limits
    shape: Shape | None
    surplus: Collection[int]
    fill_id: int | None


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


class _Row(NamedTuple):
    """Slots with the tokens of their canvas, and the steps that these took."""

    slots: list[Slot]
    tokens: list[int]
    steps: int


Fills = Generator[Encode | Denoise | Prefilled | Draft | Block | Canvas, Any, Any]


def fill_canvas(prompt: list[int], held: int, gaps: Sequence[Gap], sizes: Sequence[int], how: Filling) -> Fills:
    """The program that fills the first len(sizes) gaps, each with at most as many tokens, behind `prompt`.

    held: tokens of the prompt that the context holds already. Tells a Canvas at last, and before it a Block without
    tokens for every row that was denoised besides.
    """
    scored = how.lengths == "candidates"
    held = min(held, len(prompt) - 1)
    first = yield Encode(prompt[held:], held, int(scored))
    yield Prefilled(len(prompt))
    chosen = list(gaps[: len(sizes)])
    slots = yield from _settle_seams(chosen, sizes, len(prompt), how)
    if scored:
        row, encodes = yield from _choose_lengths(slots, first, len(prompt), how)
    else:
        row, encodes = (yield from _denoise(slots, len(prompt), how, how.sampler, 0)), 0
    filled = tuple(_fill(slot, row, index, how) for index, slot in enumerate(slots))
    yield Canvas(filled, row.steps, encodes)


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


def _denoise(slots: list[Slot], at: int, how: Filling, sampler: Sampler, attempt: int) -> Fills:
    """Denoise a canvas of slots. Returns: its _Row."""
    state = yield from _settle(slots, at, how, sampler, attempt)
    if state is None:
        pins = lay_slots(slots, how.limits.canvas_length, how.fill_id).pins
        return _Row(slots, pins.tokens.tolist(), 0)
    return _Row(slots, state.output[0].tolist(), state.step)


def _settle(slots: list[Slot], at: int, how: Filling, sampler: Sampler, attempt: int) -> Fills:
    """Denoise a canvas of slots. Returns: its last state, None where nothing is open."""
    pins: Pins = lay_slots(slots, how.limits.canvas_length, how.fill_id).pins
    if bool(pins.mask.all()):
        return None
    return (
        yield from denoise_canvas(
            at,
            sampler,
            how.randomness(attempt),
            pins,
            how.limits,
            temperature=how.temperature,
            window=None,
            shape=how.shape,
            tell=partial(_draft, attempt),
        )
    )


def _choose_lengths(slots: list[Slot], first: Encoded, at: int, how: Filling) -> Fills:
    """Decide one length after another, from the left, the others at a prior one.

    Returns: the row with the lengths decided, and how many encodes that took.
    """
    most = [slot.size for slot in slots]
    head = how.limits.canvas_length - count_places(slots)  # what every row has in view behind its last blank
    now = [slot._replace(size=min(slot.size, _PRIOR)) for slot in slots]
    best, encodes, attempt = None, 0, 0
    for index, room in enumerate(most):
        doubts = list[tuple[float, int]]()
        for size in _list_lengths(room):
            now[index] = now[index]._replace(size=size)
            if size:
                attempt += 1
                sampler = replace(how.sampler, budget=min(_TRIED, how.sampler.budget))
                state: CanvasState = yield from _settle(list(now), at, how, sampler, attempt)
                yield Block(0, [], state.step)
                doubts.append((_doubt(state, now, index, how), size))
        rows = list[tuple[float, _Row]]()
        for size in sorted({0, *(size for _, size in sorted(doubts)[:_KEPT])}):
            now[index], attempt = now[index]._replace(size=size), attempt + 1
            row: _Row = yield from _denoise(list(now), at, how, how.sampler, attempt)
            ids = _write_row(row, head, how)
            rows.append(((yield from _score(ids, first, at)), row))
            encodes += 1
        limit = max(value for value, _ in rows) - _TIE
        best = next(row for value, row in rows if value >= limit)  # the shortest of those that are as good
        for _, row in rows:
            if row.steps and (row is not best or index + 1 < len(most)):
                yield Block(0, [], row.steps)
        now = list(best.slots)
    return best, encodes


def _list_lengths(most: int) -> list[int]:
    return [*(size for size in LADDER if size < most), most]


def _doubt(state: CanvasState, slots: Sequence[Slot], index: int, how: Filling) -> float:
    """Mean entropy over one slot's open places, in nats."""
    assert state.entropy is not None
    start = lay_slots(slots, how.limits.canvas_length, how.fill_id).starts[index]
    return float(state.entropy[0, start : start + slots[index].size].mean())


def _write_row(row: _Row, head: int, how: Filling) -> list[int]:
    """The text of a row behind the prompt, surplus left out, with the first `head` ids behind its last blank."""
    starts = lay_slots(row.slots, how.limits.canvas_length, how.fill_id).starts
    ids = list[int]()
    for index, (slot, start) in enumerate(zip(row.slots, starts, strict=True)):
        inside = [token for token in row.tokens[start : start + slot.size] if token not in how.surplus]
        behind = slot.behind if index + 1 < len(row.slots) else slot.behind[:head]
        ids += [*slot.before, *inside, *slot.after, *behind]
    return ids


def _score(ids: list[int], first: Encoded, at: int) -> Fills:
    """Log-probability of `ids` behind the prompt under the causal pass. Returns: nats."""
    if not ids:
        return 0.0
    encoded: Encoded = yield Encode(ids, at, len(ids))
    logits = torch.cat([first.logits[-1:], encoded.logits[:-1]])
    return sum(one.logprob for one in score(logits, ids, 0))


def _fill(room: Slot, row: _Row, index: int, how: Filling) -> Filled:
    """What a row has in one blank. room: its slot with all the room that it had."""
    slot = row.slots[index]
    start = lay_slots(row.slots, how.limits.canvas_length, how.fill_id).starts[index]
    inside = row.tokens[start : start + slot.size]
    kept = tuple(token for token in inside if token not in how.surplus)
    is_full = slot.size == room.size and not (inside and inside[-1] in how.surplus)
    return Filled(slot.before, kept, slot.after, is_full)


def _draft(block: int, state: CanvasState) -> Draft:
    return Draft(block, state.step, state.output[0].tolist(), state.accepted[0].tolist())
