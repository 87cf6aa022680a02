"""Runs what a step has planned as at most two forwards; the only owner of what lives on the device.

A forward whose output is not finite fails as a whole; whoever asked for it finds the row by running each alone.
"""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.decoding.program import Denoise, Drafter, Encoded, Guess, pin_soft, read_canvas
from mezzotint.engine.table import PageTable
from mezzotint.model.config import LayerKind
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.ragged import Pages, RowContext, Span, Store, denoise_spans, encode_spans
from mezzotint.types import Reading


class Piece(NamedTuple):
    """Tokens to encode behind the first `start` of a row's context; of the last `read` of them all is told."""

    table: PageTable
    tokens: list[int]
    start: int
    read: int


class Step(NamedTuple):
    """One denoising step of a row."""

    table: PageTable
    need: Denoise


class Wonder(NamedTuple):
    """A round of guesses of a row."""

    table: PageTable
    need: Guess


class Runner:
    """A model and the store of its keys and values."""

    def __init__(self, model: DiffusionGemma, store: Store, drafter: Drafter | None = None) -> None:
        self._model, self._store, self._drafter = model, store, drafter
        # Compiled code looks at what it makes; where it leaves the vocabulary to torch nobody has looked at that.
        self._is_watched = model.compiled is not None and model.compiled.reads
        self._kinds = [shape.kind for shape in model.config.layers]

    def encode(self, pieces: Sequence[Piece]) -> list[Encoded | None]:
        """Encode all pieces in one forward. Returns: what is told of each, None where nothing is read."""
        ids = torch.tensor(pieces[0].tokens if len(pieces) == 1 else [id for piece in pieces for id in piece.tokens])
        sizes = [len(piece.tokens) for piece in pieces]
        spans = [_span(piece.table, piece.start, len(piece.tokens)) for piece in pieces]
        hidden = encode_spans(self._model, ids, spans, self._store)
        if not self._is_watched:
            _check_finite(hidden)  # before anybody else may share what was written
        counts = [piece.read for piece in pieces]
        if not any(counts):
            return [None] * len(pieces)
        read = _last(hidden, sizes, counts)
        logits = self._model.logits(read)
        if not self._is_watched:
            _check_finite(logits)
        parts = zip(_cut(logits, counts), _cut(read, counts), counts, strict=True)
        return [Encoded(said, states) if count else None for said, states, count in parts]

    def denoise(self, steps: Sequence[Step]) -> list[Reading]:
        """Take all denoising steps in one forward, and one pass over the vocabulary where nobody shapes logits.

        Returns: their readings.
        """
        needs = [step.need for step in steps]
        assert all(need.window is None for need in needs)  # pages outside the model's own window are given back
        sizes = [len(need.canvas) for need in needs]
        spans = [_span(step.table, step.need.at, size) for step, size in zip(steps, sizes, strict=True)]
        ids = _join([need.canvas for need in needs])
        hidden = denoise_spans(self._model, ids, self._join_soft(steps), spans, self._store)
        parts = _cut(hidden, sizes)
        plain = [index for index, need in enumerate(needs) if need.shape is None]
        states = hidden if len(plain) == len(needs) else torch.cat([hidden[:0], *(parts[index] for index in plain)])
        together = iter(self._read([needs[index] for index in plain], states))
        readings = [
            next(together) if need.shape is None else self._read_shaped(need, part)
            for need, part in zip(needs, parts, strict=True)
        ]
        return self._add_logits(readings, steps, parts)

    def _read_shaped(self, need: Denoise, hidden: Tensor) -> Reading:
        reading = read_canvas(need, hidden, self._model)
        _check_finite(reading.entropy)
        return reading

    def _read(self, needs: Sequence[Denoise], hidden: Tensor) -> list[Reading]:
        """Read canvases [N, D], one behind another, in one pass."""
        if not needs:
            return []
        sizes = [len(need.canvas) for need in needs]
        reading = self._model.read(
            hidden,
            temperature=_each([need.temperature for need in needs], sizes),
            proposal_temperature=_each([need.proposal_temperature for need in needs], sizes),
            uniforms=_join([need.uniforms for need in needs]),
            with_soft=any(need.with_soft for need in needs),
        )
        _check_finite(reading.entropy)
        return [
            own if need.with_soft else own._replace(soft=None)
            for own, need in zip(_split(reading, sizes), needs, strict=True)
        ]

    def guess(self, rounds: Sequence[Wonder]) -> list[list[int]]:
        """Let the drafter guess behind all rows' contexts, a guess of each in one forward. Returns: ids by row."""
        assert self._drafter is not None  # a request that needs one is refused without
        contexts = [RowContext(self._store, _pages(table), self._kinds) for table, _ in rounds]
        return self._drafter.guess_all([need for _, need in rounds], contexts)

    def _add_logits(self, readings: list[Reading], steps: Sequence[Step], parts: Sequence[Tensor]) -> list[Reading]:
        """Readings with the logits that their steps ask for, formed in one product; shaped ones have theirs."""
        asked = [step.need.logits_at if step.need.shape is None else () for step in steps]
        if not any(asked):
            return readings
        logits = self._model.logits(torch.cat([part[list(at)] for part, at in zip(parts, asked, strict=True)]))
        own = logits.split([len(at) for at in asked])
        return [
            reading._replace(logits=said) if at else reading
            for reading, said, at in zip(readings, own, asked, strict=True)
        ]

    def _join_soft(self, steps: Sequence[Step]) -> Tensor | None:
        """Soft embeddings one after another, zero for a canvas without one; None if none has one."""
        own = [pin_soft(step.need, self._model) for step in steps]
        if all(soft is None for soft in own):
            return None
        width, empty = self._model.config.hidden_size, self._model.embed_tokens.weight
        return torch.cat(
            [
                empty.new_zeros(len(step.need.canvas), width) if soft is None else soft
                for step, soft in zip(steps, own, strict=True)
            ]
        )


def _span(table: PageTable, start: int, size: int) -> Span:
    return Span(start, size, _pages(table))


def _pages(table: PageTable) -> dict[LayerKind, Pages]:
    return {"full_attention": table.full, "sliding_attention": table.sliding}


def _last(hidden: Tensor, sizes: list[int], counts: list[int]) -> Tensor:
    """The last states of each piece, as many as `counts` says; hidden [T, D] are those of pieces of these sizes."""
    if counts == sizes:
        return hidden
    return _join([part[size - count :] for part, size, count in zip(_cut(hidden, sizes), sizes, counts, strict=True)])


def _join(parts: list[Tensor]) -> Tensor:
    """Parts one behind another, without a copy where there is only one."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _cut(joined: Tensor, sizes: list[int]) -> Sequence[Tensor]:
    """The parts of these sizes."""
    return [joined] if len(sizes) == 1 else joined.split(sizes)


def _each(temperatures: list[float], sizes: list[int]) -> float | Tensor:
    """One temperature for all positions, or where canvases of these sizes differ one a position."""
    if all(temperature == temperatures[0] for temperature in temperatures):
        return temperatures[0]
    return torch.tensor(temperatures, dtype=torch.float64).repeat_interleave(torch.tensor(sizes))


def _split(reading: Reading, sizes: list[int]) -> list[Reading]:
    """The readings of canvases of these sizes."""
    fields = [[None] * len(sizes) if field is None else _cut(field, sizes) for field in reading]
    return [Reading(*own) for own in zip(*fields, strict=True)]


def _check_finite(numbers: Tensor) -> None:
    """Raise FloatingPointError for an output that is no number."""
    if not isfinite(float(numbers.sum())):  # it is finite only if all are, and is found in one pass
        raise FloatingPointError("the model's output is not finite; the weights or their dtype do not suit this input")
