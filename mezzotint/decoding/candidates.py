"""Which length a blank has, for a checkpoint that never learnt to fill what is left of it: rows of several, compared.

every length, two steps ─► the surest three, to the end ─┐
nothing                                                  ├─► the one that the causal pass finds likeliest
what ar writes, cut everywhere (last blank of a canvas) ─┘
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

import torch

from mezzotint.decoding.abreast import Abreast, run_abreast
from mezzotint.decoding.filling import Filling, Row, denoise_open, denoise_row
from mezzotint.decoding.gap import Slot, count_places, lay_slots
from mezzotint.decoding.program import Block, Encode, Encoded
from mezzotint.decoding.score import score

LADDER = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)  # lengths that are tried, and the most that a blank may have
MOST_ROWS = 16  # in one forward, which bounds what their keys and values take
_TRIED = 2  # denoising steps of each
_KEPT = 3  # lengths that are denoised to the end, besides 0, which takes no step
_PRIOR = 8  # tokens of a blank whose length is not decided yet
_TIE = 0.5  # nats that a longer middle must be likelier by
_COPY = 4  # tokens of what follows a blank from which a repetition of them is no accident
_COPY_COSTS = 2.0  # nats for each of them: whatever stands there already is likely to the causal pass

Choosing = Generator[Abreast | Encode | Block, Any, Any]


class Chosen(NamedTuple):
    """The row with all lengths decided; denoise forwards of it and its like, and causal ones of all rows."""

    row: Row
    steps: int
    encodes: int


class _Place(NamedTuple):
    """Where rows are compared: behind `at` tokens, the last of which says `first`, each with the same ids at its end.

    head: how many of the ids behind the last blank those are.
    """

    at: int
    first: Encoded
    head: int
    how: Filling


class _Written(NamedTuple):
    """What the causal pass wrote, in how many forwards."""

    tokens: list[int]
    encodes: int


def choose_lengths(slots: Sequence[Slot], first: Encoded, at: int, how: Filling) -> Choosing:
    """Decide one length after another, from the left, the others at a prior one.

    slots: each with all its room. first: what the last token before the canvas says. Returns: what is Chosen.
    """
    place = _Place(at, first, how.limits.canvas_length - count_places(slots), how)
    now = [slot._replace(size=min(slot.size, _PRIOR)) for slot in slots]
    attempts, encodes = count(1), 0
    for index, slot in enumerate(slots):
        is_last = index + 1 == len(slots)
        rows: list[Row] = yield from _denoise_lengths(now, index, slot.size, place, attempts)
        steps = max(row.steps for row in rows)
        if is_last:
            written: _Written = yield from _write_on(rows[0], slot.size, place)
            rows += _cut_everywhere(rows[0], written.tokens, how)
            encodes += written.encodes
        elif steps:
            yield Block(0, [], steps)
        values: list[float] = yield from _score_rows(rows, index, place)
        encodes += -(-len(rows) // MOST_ROWS)
        limit = max(values) - _TIE
        good = [(row.slots[index].size, -value, row) for row, value in zip(rows, values, strict=True) if value >= limit]
        best = min(good, key=lambda each: each[:2])[-1]  # the shortest of those that are as good
        now = list(best.slots)
    return Chosen(best, steps, encodes)


def _denoise_lengths(
    now: list[Slot], index: int, room: int, place: _Place, attempts: Iterator[int]
) -> Generator[Abreast | Block, Any, list[Row]]:
    """Try every length of one slot, denoise the surest to the end. Returns: their rows, the emptiest first."""
    how = place.how
    short = replace(how.sampler, budget=min(_TRIED, how.sampler.budget))
    sizes = [size for size in _list_lengths(room) if size]
    laid = [lay_slots(_resize(now, index, size), how.limits.canvas_length, how.fill_id) for size in sizes]
    states = yield from run_abreast(
        [denoise_open(one.pins, place.at, how, short, next(attempts)) for one in laid],
    )
    if states:
        yield Block(0, [], max(state.step for state in states))
    doubts = list[tuple[float, int]]()
    for state, one, size in zip(states, laid, sizes, strict=True):
        assert state.entropy is not None
        start = one.starts[index]
        doubts.append((float(state.entropy[0, start : start + size].mean()), size))
    kept = sorted({0, *(size for _, size in sorted(doubts)[:_KEPT])})
    return (
        yield from run_abreast(
            [
                denoise_row(_resize(now, index, size), place.at, how, how.sampler, attempt)
                for size, attempt in zip(kept, attempts, strict=False)
            ]
        )
    )


def _list_lengths(most: int) -> list[int]:
    return [*(size for size in LADDER if size < most), most]


def _resize(slots: Sequence[Slot], index: int, size: int) -> list[Slot]:
    return [slot._replace(size=size) if place == index else slot for place, slot in enumerate(slots)]


def _write_on(row: Row, room: int, place: _Place) -> Generator[Encode, Any, _Written]:
    """What the causal pass finds likeliest in the last blank of a row, token by token, blind to what follows.

    Returns: at most `room` tokens, up to the first that is no part of a middle.
    """
    how, last = place.how, len(row.slots) - 1
    ids = [*_write_slots(row, last, how), *row.slots[last].before]
    encoded, at, tokens, encodes = place.first, place.at + len(ids), list[int](), 0
    if ids and room:
        encoded, encodes = (yield Encode(ids, place.at, 1)), 1
    while len(tokens) < room:
        logits = encoded.logits[-1:] if how.shape is None else how.shape.adjust(encoded.logits[-1:])
        token = int(logits.argmax())
        if token in how.surplus:
            break
        tokens.append(token)
        if len(tokens) < room:
            encoded, encodes = (yield Encode([token], at + len(tokens) - 1, 1)), encodes + 1
    return _Written(tokens, encodes)


def _cut_everywhere(row: Row, tokens: Sequence[int], how: Filling) -> list[Row]:
    """Rows like this one with the first of `tokens` in its last blank: one of them, two, and so on to all."""
    last, rows = len(row.slots) - 1, list[Row]()
    for size in range(1, len(tokens) + 1):
        slots = _resize(row.slots, last, size)
        pins, starts = lay_slots(slots, how.limits.canvas_length, how.fill_id)
        canvas = pins.tokens.tolist()
        for index, start in enumerate(starts):
            inside = tokens[:size] if index == last else row.inside(index, how)
            canvas[start : start + len(inside)] = inside
        rows.append(Row(slots, canvas, 0))
    return rows


def _score_rows(rows: Sequence[Row], index: int, place: _Place) -> Generator[Abreast, Any, list[float]]:
    """How good rows are whose slot `index` is to be decided: nats of all their text under the causal pass.

    A middle that ends with a copy of what follows it pays for that.
    """
    values = list[float]()
    for first in range(0, len(rows), MOST_ROWS):
        texts = [_write_row(row, place) for row in rows[first : first + MOST_ROWS]]
        values += yield from run_abreast([_score(ids, place) for ids in texts])
    return [value - _COPY_COSTS * count_copied(row, index, place.how) for value, row in zip(values, rows, strict=True)]


def _score(ids: list[int], place: _Place) -> Generator[Encode, Encoded, float]:
    """Log-probability of `ids` behind the context. Returns: nats."""
    if not ids:
        return 0.0
    encoded = yield Encode(ids, place.at, len(ids))
    logits = torch.cat([place.first.logits[-1:], encoded.logits[:-1]])
    return sum(one.logprob for one in score(logits, ids, 0))


def count_copied(row: Row, index: int, how: Filling) -> int:
    """How many tokens at the end of a middle are those that follow the blank; 0 for fewer than no accident makes."""
    slot, middle = row.slots[index], row.middle(index, how)
    behind = [*slot.after, *slot.behind]
    sizes = range(min(len(middle), len(behind)), _COPY - 1, -1)
    return next((size for size in sizes if middle[-size:] == behind[:size]), 0)


def _write_row(row: Row, place: _Place) -> list[int]:
    """The text of a row behind the context, surplus left out, with what every row has behind its last blank."""
    ids = _write_slots(row, len(row.slots), place.how)
    return ids[: len(ids) - max(0, len(row.slots[-1].behind) - place.head)]


def _write_slots(row: Row, count: int, how: Filling) -> list[int]:
    """The text of the first `count` slots of a row and of what is given behind each."""
    ids = list[int]()
    for index, slot in enumerate(row.slots[:count]):
        ids += [*slot.before, *row.middle(index, how), *slot.after, *slot.behind]
    return ids
