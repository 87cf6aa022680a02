"""Both forwards over rows of any lengths and contexts at once: products over all tokens, attention row by row.

Must equal `DiffusionGemma.encode` and `denoise` of each row alone. Keys and values stand in a store of slots that
rows share; which slot holds which position of which row is the caller's business.

    tokens   a a a a | b | c c        one product over all of them
    slots    . . . .   .   . .        each row attends its own context and itself
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from mezzotint.model.attention import View, attend, denoise_view, encode_view
from mezzotint.model.config import LayerKind, ModelConfig
from mezzotint.model.device import send
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.kv import Pair
from mezzotint.model.layers import Angles

Slots = slice | Tensor  # consecutive ones, or any


class Pages(Protocol):
    """Where one row's positions stand for one layer kind: in pages of `page_size` slots, the oldest given back.

    pages: the numbers of those that are held, which page `first` of the row heads; slot page × page_size + i of the
    store holds the i-th position of a page.
    """

    @property
    def pages(self) -> Sequence[int]:
        """See above."""

    @property
    def first(self) -> int:
        """See above."""

    @property
    def page_size(self) -> int:
        """See above."""

    def run(self, start: int, end: int) -> int | None:
        """The first slot of positions start to end − 1 if theirs are consecutive, else None."""

    def slots(self, start: int, end: int) -> list[int]:
        """The slots of positions start to end − 1."""


class Store:
    """Keys and values by slot: one pair a layer, each [KV heads, slots, head_dim]; layers of a kind share slots."""

    def __init__(
        self, config: ModelConfig, slots: Mapping[LayerKind, int], *, dtype: torch.dtype, device: torch.device
    ) -> None:
        """Allocate the slots of each layer kind."""
        sizes = [(shape.kv_heads, slots[shape.kind], shape.head_dim) for shape in config.layers]
        self.pairs = [Pair(*(torch.zeros(size, dtype=dtype, device=device) for _ in range(2))) for size in sizes]


class Span(NamedTuple):
    """`size` new tokens of one row behind `start` tokens of its context, and the row's pages for each layer kind."""

    start: int
    size: int
    pages: Mapping[LayerKind, Pages]


class RowContext(NamedTuple):
    """One row's context in a store, as a drafter reads it; see types.ContextPairs. kinds: of the model's layers."""

    store: Store
    pages: Mapping[LayerKind, Pages]
    kinds: Sequence[LayerKind]

    def pair(self, layer: int, first: int, end: int) -> Pair:
        """See ContextPairs."""
        pair = self.store.pairs[layer]
        seen = slots_of(self.pages[self.kinds[layer]], first, end, pair.k.device)
        return Pair(pair.k[None, :, seen], pair.v[None, :, seen])


class _Seat(NamedTuple):
    """One span before layers of one kind: the slots of its `size` new tokens, and of the positions that it sees."""

    size: int
    written: Slots
    seen: Slots
    view: View


class StoreMixer(NamedTuple):
    """Attention of every span over its own slots, for the layers of one kind: the slow form of what is compiled."""

    store: Store
    seats: Sequence[_Seat]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """See attention.Mixer; B is 1, and T the tokens of all spans."""
        if len(self.seats) == 1:
            return self._mix(layer, self.seats[0], q, k, v)
        counts = [seat.size for seat in self.seats]
        parts = zip(self.seats, q.split(counts, 2), k.split(counts, 2), v.split(counts, 2), strict=True)
        return torch.cat([self._mix(layer, *part) for part in parts], 2)

    def _mix(self, layer: int, seat: _Seat, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = self.store.pairs[layer]
        keys[:, seat.written] = k[0]
        values[:, seat.written] = v[0]
        return attend(q, keys[None, :, seat.seen], values[None, :, seat.seen], seat.view)


def encode_spans(model: DiffusionGemma, ids: Tensor, spans: Sequence[Span], store: Store) -> Tensor:
    """Causal forward over the tokens of all spans, ids [T], which writes their keys and values.

    Returns: hidden [T, D] after the final norm.
    """
    return _run(model, model.embed(ids), spans, store, denoising=False)


def denoise_spans(
    model: DiffusionGemma, ids: Tensor, soft: Tensor | None, spans: Sequence[Span], store: Store
) -> Tensor:
    """Bidirectional forward over one canvas a span, ids [T]; their slots behind the context are scratch.

    soft: [T, D], zero for a canvas on its first step, which is then exactly None's contribution; None if all are.
    Returns: hidden [T, D] after the final norm.
    """
    return _run(model, model.condition(model.embed(ids), soft), spans, store, denoising=True)


def slots_of(pages: Pages, start: int, end: int, device: torch.device) -> Slots:
    """Slots of positions start to end − 1, as a slice where they are consecutive, for that is read without a copy.

    Others are listed on `device`, where every layer of a kind reads them.
    """
    first = pages.run(start, end)
    if first is None:
        return send(torch.tensor(pages.slots(start, end)), device)
    return slice(first, first + end - start)


def _run(model: DiffusionGemma, x: Tensor, spans: Sequence[Span], store: Store, *, denoising: bool) -> Tensor:
    if model.compiled is not None:
        return model.compiled.run_spans(x, spans, store, denoising=denoising)
    mixers = {
        kind: StoreMixer(store, [_seat(span, kind, model, denoising=denoising) for span in spans])
        for kind in dict.fromkeys(shape.kind for shape in model.config.layers)
    }
    return model.run(x[None], _angles(model, spans), mixers, denoising=denoising)[0]


def _angles(model: DiffusionGemma, spans: Sequence[Span]) -> dict[LayerKind, Angles]:
    """Rotary tables of all tokens."""
    parts = [model.angles(span.start, span.size) for span in spans]
    if len(parts) == 1:
        return parts[0]
    return {kind: Angles(*map(torch.cat, zip(*(part[kind] for part in parts), strict=True))) for kind in parts[0]}


def _seat(span: Span, kind: LayerKind, model: DiffusionGemma, *, denoising: bool) -> _Seat:
    window = model.config.sliding_window if kind == "sliding_attention" else None
    if denoising:
        view = denoise_view(span.start, span.size, None if window is None else window - 1, None)
    else:
        view = encode_view(span.start, span.size, window, model.device)
    pages, end = span.pages[kind], span.start + span.size
    written, seen = (slots_of(pages, first, end, model.device) for first in (span.start, view.first))
    return _Seat(span.size, written, seen, view._replace(first=0))
