"""Both forwards over rows of any lengths and contexts at once: products over all tokens, attention row by row.

Must equal `DiffusionGemma.encode` and `denoise` of each row alone. Keys and values stand in a store of slots that
rows share; which slot holds which position of which row is the caller's business.

    tokens   a a a a | b | c c        one product over all of them
    slots    . . . .   .   . .        each row attends its own context and itself
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.model.attention import View, attend, denoise_view, encode_view
from mezzotint.model.config import LayerKind, ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma

Slots = slice | Tensor  # consecutive ones, or any


class Store:
    """Keys and values by slot: one pair a layer, each [KV heads, slots, head_dim]; layers of a kind share slots."""

    def __init__(
        self, config: ModelConfig, slots: Mapping[LayerKind, int], *, dtype: torch.dtype, device: torch.device
    ) -> None:
        """Allocate the slots of each layer kind."""
        self.pairs = [
            tuple(
                torch.zeros(shape.kv_heads, slots[shape.kind], shape.head_dim, dtype=dtype, device=device)
                for _ in range(2)
            )
            for shape in config.layers
        ]


class Seat(NamedTuple):
    """Where one row's keys and values stand for one layer kind.

    written: slots of the new tokens. seen: slots of the positions from the view's first one up to the last new token.
    """

    written: Slots
    seen: Slots
    view: View


class Span(NamedTuple):
    """`size` new tokens of one row behind `start` tokens of its context, and its seat for each layer kind."""

    start: int
    size: int
    seats: Mapping[LayerKind, Seat]


class StoreMixer(NamedTuple):
    """Attention of every span over its own slots, for the layers of one kind."""

    store: Store
    kind: LayerKind
    spans: Sequence[Span]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """See attention.Mixer; B is 1, and T the tokens of all spans."""
        keys, values = self.store.pairs[layer]
        counts = [span.size for span in self.spans]
        parts = zip(self.spans, q.split(counts, 2), k.split(counts, 2), v.split(counts, 2), strict=True)
        mixed = []
        for span, own_q, own_k, own_v in parts:
            seat = span.seats[self.kind]
            keys[:, seat.written] = own_k[0]
            values[:, seat.written] = own_v[0]
            mixed.append(attend(own_q, keys[None, :, seat.seen], values[None, :, seat.seen], seat.view))
        return mixed[0] if len(mixed) == 1 else torch.cat(mixed, 2)


def first_seen(start: int, window: int | None) -> int:
    """The oldest context position that new tokens behind `start` see; window as config.sliding_window, None = all."""
    return 0 if window is None else max(0, start - window + 1)


def view_of(start: int, count: int, window: int | None, device: torch.device, *, denoising: bool) -> View:
    """The view of `count` new tokens, counted from the first position seen."""
    if denoising:
        return denoise_view(start, count, None if window is None else window - 1, None)._replace(first=0)
    return encode_view(start, count, window, device)._replace(first=0)


def encode_spans(model: DiffusionGemma, ids: Tensor, spans: Sequence[Span], store: Store) -> Tensor:
    """Causal forward over the tokens of all spans, ids [T], which writes their keys and values.

    Returns: hidden [T, D] after the final norm.
    """
    return _run(model, model.embed(ids)[None], spans, store, denoising=False)


def denoise_spans(
    model: DiffusionGemma, ids: Tensor, soft: Tensor | None, spans: Sequence[Span], store: Store
) -> Tensor:
    """Bidirectional forward over one canvas a span, ids [T]; their slots behind the context are scratch.

    soft: [T, D], zero for a canvas on its first step, which is then exactly None's contribution; None if all are.
    Returns: hidden [T, D] after the final norm.
    """
    x = model.condition(model.embed(ids)[None], None if soft is None else soft[None])
    return _run(model, x, spans, store, denoising=True)


def _run(model: DiffusionGemma, x: Tensor, spans: Sequence[Span], store: Store, *, denoising: bool) -> Tensor:
    positions = torch.cat([torch.arange(span.start, span.start + span.size) for span in spans]).to(model.device)
    kinds: set[LayerKind] = {shape.kind for shape in model.config.layers}
    mixers = {kind: StoreMixer(store, kind, spans) for kind in kinds}
    return model.run(x, model.angles_at(positions), mixers, denoising=denoising)[0]
