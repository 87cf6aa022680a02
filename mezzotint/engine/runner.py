"""Runs what a step has planned as at most two forwards; the only owner of what lives on the device.

A forward whose output is not finite fails as a whole; whoever asked for it finds the row by running each alone.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.decoding.program import Denoise, Drafter, Encoded, Guess, pin_soft
from mezzotint.engine.table import GroupPages, PageTable
from mezzotint.model.config import LayerKind
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.ragged import Seat, Slots, Span, Store, denoise_spans, encode_spans, first_seen, view_of
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


class TableContext(NamedTuple):
    """One row's context in the store, as a drafter reads it; see types.ContextPairs."""

    store: Store
    table: PageTable
    kinds: Sequence[LayerKind]

    def pair(self, layer: int, first: int, end: int) -> tuple[Tensor, Tensor]:
        """See ContextPairs."""
        pages = self.table.full if self.kinds[layer] == "full_attention" else self.table.sliding
        seen = _slots(pages, first, end)
        keys, values = self.store.pairs[layer]
        return keys[None, :, seen], values[None, :, seen]


class Runner:
    """A model and the store of its keys and values."""

    def __init__(self, model: DiffusionGemma, store: Store, drafter: Drafter | None = None) -> None:
        self._model, self._store, self._drafter = model, store, drafter
        self._window = model.config.sliding_window
        self._kinds = [shape.kind for shape in model.config.layers]

    def encode(self, pieces: Sequence[Piece]) -> list[Encoded | None]:
        """Encode all pieces in one forward. Returns: what is told of each, None where nothing is read."""
        ids = torch.tensor([token for piece in pieces for token in piece.tokens])
        spans = [self._span(piece.table, piece.start, len(piece.tokens), denoising=False) for piece in pieces]
        hidden = encode_spans(self._model, ids, spans, self._store)
        _check_finite(hidden)  # before anybody else may share what was written
        parts = hidden.split([span.size for span in spans])
        read = [part[len(part) - piece.read :] for part, piece in zip(parts, pieces, strict=True)]
        if not any(len(part) for part in read):
            return [None] * len(pieces)
        logits = self._model.logits(torch.cat(read))
        _check_finite(logits)
        own = logits.split([len(part) for part in read])
        return [Encoded(said, part) if len(part) else None for said, part in zip(own, read, strict=True)]

    def denoise(self, steps: Sequence[Step]) -> list[Reading]:
        """Take all denoising steps in one forward. Returns: their readings, in order."""
        assert all(step.need.window is None for step in steps)  # pages outside the model's own window are given back
        ids = torch.cat([step.need.canvas for step in steps])
        spans = [self._span(step.table, step.need.at, len(step.need.canvas), denoising=True) for step in steps]
        hidden = denoise_spans(self._model, ids, self._join_soft(steps), spans, self._store)
        parts = hidden.split([span.size for span in spans])
        readings: list[Reading] = []
        for _, group in groupby(zip(steps, parts, strict=True), key=lambda pair: _how(pair[0].need)):
            readings += self._read(*zip(*group, strict=True))
        return readings

    def guess(self, need: Guess, table: PageTable) -> list[int]:
        """Let the drafter guess behind one row's context."""
        assert self._drafter is not None  # a request that needs one is refused without
        return self._drafter.guess(need, TableContext(self._store, table, self._kinds))

    def _read(self, steps: Sequence[Step], parts: Sequence[Tensor]) -> list[Reading]:
        """Read steps of one temperature in one pass over the vocabulary."""
        need, sizes = steps[0].need, [len(part) for part in parts]
        reading = self._model.read(
            torch.cat(list(parts)),
            temperature=need.temperature,
            proposal_temperature=need.proposal_temperature,
            uniforms=torch.cat([step.need.uniforms for step in steps]),
            with_soft=need.with_soft,
        )
        _check_finite(reading.entropy)
        fields = [(None,) * len(sizes) if part is None else part.split(sizes) for part in reading]
        alone = [Reading(*parts) for parts in zip(*fields, strict=True)]
        return [pin_soft(own, step.need.pins, self._model) for own, step in zip(alone, steps, strict=True)]

    def _join_soft(self, steps: Sequence[Step]) -> Tensor | None:
        """Soft embeddings one after another, zero for a canvas without one; None if none has one."""
        if all(step.need.soft is None for step in steps):
            return None
        width = self._model.config.hidden_size
        empty = self._model.embed_tokens.weight
        return torch.cat(
            [
                empty.new_zeros(len(step.need.canvas), width) if step.need.soft is None else step.need.soft
                for step in steps
            ]
        )

    def _span(self, table: PageTable, start: int, size: int, *, denoising: bool) -> Span:
        return Span(
            start,
            size,
            {
                "full_attention": self._seat(table.full, start, size, None, denoising=denoising),
                "sliding_attention": self._seat(table.sliding, start, size, self._window, denoising=denoising),
            },
        )

    def _seat(self, pages: GroupPages, start: int, size: int, window: int | None, *, denoising: bool) -> Seat:
        first = first_seen(start, window)
        view = view_of(start, size, window, self._model.device, denoising=denoising)
        return Seat(_slots(pages, start, start + size), _slots(pages, first, start + size), view)


def _how(need: Denoise) -> tuple[float, float, bool]:
    return need.temperature, need.proposal_temperature, need.with_soft


def _slots(pages: GroupPages, start: int, end: int) -> Slots:
    """Slots of positions, as a slice where they are consecutive, for that is read without a copy."""
    first = pages.run(start, end)
    return torch.tensor(pages.slots(start, end)) if first is None else slice(first, first + end - start)


def _check_finite(numbers: Tensor) -> None:
    """Raise FloatingPointError for an output that is no number."""
    if not bool(torch.isfinite(numbers).all()):
        raise FloatingPointError("the model's output is not finite; the weights or their dtype do not suit this input")
