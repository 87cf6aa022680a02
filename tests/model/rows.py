"""Rows of several lengths in one store, whose pages lie as a test says, against each row alone; no test lives here."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.engine.pages import PagePool
from mezzotint.engine.table import GroupPages
from mezzotint.model.config import LayerKind
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.ragged import Span, Store, denoise_spans, encode_spans

KINDS: tuple[LayerKind, ...] = ("full_attention", "sliding_attention")
ROOM = 40  # slots a row, in pages of 1 to 4
CONTEXTS = (14, 1, 23)  # tokens of each row's context in the end
WIDTHS = (8, 3, 5)  # of the canvases behind them
CUTS = {
    "whole": ((14,), (1,), (23,)),
    "in pieces": ((5, 9), (1,), (1, 7, 8, 6, 1)),
    "a token each": ((1,) * 14, (1,), (1,) * 23),
}


class Layout(NamedTuple):
    """How pages lie: whether in order, of how many slots, and whether those behind every window are given back."""

    scattered: bool
    page_size: int
    ring: bool


LAYOUTS = {
    "consecutive": Layout(scattered=False, page_size=4, ring=False),
    "scattered": Layout(scattered=True, page_size=1, ring=False),
    "scattered pages": Layout(scattered=True, page_size=4, ring=False),
    "ring": Layout(scattered=True, page_size=2, ring=True),
    "ring of odd pages": Layout(scattered=True, page_size=3, ring=True),
}


class House:
    """A model and a store for all rows; what a row has given back holds no numbers."""

    def __init__(self, model: DiffusionGemma, layout: Layout) -> None:
        self.model, self.layout = model, layout
        slots = dict.fromkeys(KINDS, len(CONTEXTS) * ROOM)
        self.store = Store(model.config, slots, dtype=model.dtype, device=model.device)
        self.rows = [{kind: self._pages(row, kind) for kind in KINDS} for row in range(len(CONTEXTS))]
        self.done = [0] * len(CONTEXTS)

    def _pages(self, row: int, kind: LayerKind) -> GroupPages:
        size = self.layout.page_size
        count = ROOM // size
        generator = torch.Generator().manual_seed(10 * row + len(kind))
        order = torch.randperm(count, generator=generator) if self.layout.scattered else torch.arange(count)
        held = GroupPages(PagePool(len(CONTEXTS) * count), size)
        held.pages = (row * count + order).tolist()
        return held

    def span(self, row: int, size: int) -> Span:
        if self.layout.ring:
            self._give_back(row)
        pages: Mapping[LayerKind, GroupPages] = self.rows[row]
        return Span(self.done[row], size, pages)

    def _give_back(self, row: int) -> None:
        """Let go of sliding pages that no token behind the context sees, and spoil them."""
        held, size = self.rows[row]["sliding_attention"], self.layout.page_size
        first = max(0, self.done[row] - self.model.config.sliding_window + 1) // size
        while held.first < first:
            page = held.pages.pop(0)
            held.first += 1
            for pair, shape in zip(self.store.pairs, self.model.config.layers, strict=True):
                if shape.kind == "sliding_attention":
                    for states in pair:
                        states[:, page * size : (page + 1) * size] = torch.nan

    def encode(self, cuts: Sequence[Sequence[int]]) -> list[Tensor]:
        """Each row's hidden states when its context is encoded in pieces, one of every row that has one at a time."""
        found: list[list[Tensor]] = [[] for _ in CONTEXTS]
        for step in range(max(map(len, cuts))):
            sizes = {row: cuts[row][step] for row in range(len(CONTEXTS)) if step < len(cuts[row])}
            spans = [self.span(row, size) for row, size in sizes.items()]
            ids = [ids_of(row)[self.done[row] : self.done[row] + size] for row, size in sizes.items()]
            hidden = encode_spans(self.model, torch.cat(ids), spans, self.store)
            for (row, size), own in zip(sizes.items(), hidden.split(list(sizes.values())), strict=True):
                found[row].append(own)
                self.done[row] += size
        assert self.done == list(CONTEXTS)
        return [torch.cat(parts) for parts in found]

    def denoise(self, soft: Sequence[Tensor | None]) -> list[Tensor]:
        """Each row's hidden states of its canvas."""
        spans = [self.span(row, width) for row, width in enumerate(WIDTHS)]
        zero = torch.zeros(max(WIDTHS), self.model.config.hidden_size, dtype=self.model.dtype)
        given = [zero[:width] if own is None else own for own, width in zip(soft, WIDTHS, strict=True)]
        together = torch.cat(given) if any(own is not None for own in soft) else None
        hidden = denoise_spans(self.model, torch.cat(list(map(canvas_of, range(3)))), together, spans, self.store)
        return list(hidden.split(WIDTHS))


def ids_of(row: int) -> Tensor:
    return torch.randint(96, (ROOM,), generator=torch.Generator().manual_seed(100 + row))


def canvas_of(row: int) -> Tensor:
    return torch.randint(96, (WIDTHS[row],), generator=torch.Generator().manual_seed(200 + row))


def soft_of(row: int, model: DiffusionGemma) -> Tensor:
    generator = torch.Generator().manual_seed(300 + row)
    return torch.randn(WIDTHS[row], model.config.hidden_size, generator=generator, dtype=torch.float64).to(model.dtype)


def encode_alone(model: DiffusionGemma, row: int) -> Tensor:
    return model.encode(ids_of(row)[None, : CONTEXTS[row]], model.new_kv(1, ROOM))[0]


def denoise_alone(model: DiffusionGemma, row: int, soft: Tensor | None) -> Tensor:
    kv = model.new_kv(1, ROOM)
    model.encode(ids_of(row)[None, : CONTEXTS[row]], kv)
    return model.denoise(canvas_of(row)[None], kv, None if soft is None else soft[None])[0]
