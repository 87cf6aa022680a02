"""Rows of any lengths in one forward give what each gives alone, wherever their slots lie."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from mezzotint.model.config import LayerKind
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fused import fuse
from mezzotint.model.ragged import Seat, Span, Store, denoise_spans, encode_spans, first_seen, view_of
from tests.model.test_fused import CONFIGS, random_model

KINDS: tuple[LayerKind, ...] = ("full_attention", "sliding_attention")
ROOM = 40  # slots a row
WHOLE = (14, 1, 23)  # tokens of each row's context in the end


def slots_of(row: int, *, scattered: bool) -> Tensor:
    """Where a row's positions stand: consecutive, or in an order of its own."""
    order = torch.randperm(ROOM, generator=torch.Generator().manual_seed(row)) if scattered else torch.arange(ROOM)
    return row * ROOM + order


def span_of(model: DiffusionGemma, row: int, start: int, size: int, *, denoising: bool, scattered: bool) -> Span:
    seats, slots = dict[LayerKind, Seat](), slots_of(row, scattered=scattered)
    for kind in KINDS:
        window = model.config.sliding_window if kind == "sliding_attention" else None
        first = first_seen(start, window)
        view = view_of(start, size, window, model.device, denoising=denoising)
        seats[kind] = Seat(slots[start : start + size], slots[first : start + size], view)
        if not scattered:
            base = row * ROOM
            seats[kind] = Seat(slice(base + start, base + start + size), slice(base + first, base + start + size), view)
    return Span(start, size, seats)


def new_store(model: DiffusionGemma) -> Store:
    slots = dict.fromkeys(KINDS, len(WHOLE) * ROOM)
    return Store(model.config, slots, dtype=model.dtype, device=model.device)


def ids_of(row: int) -> Tensor:
    return torch.randint(96, (ROOM,), generator=torch.Generator().manual_seed(100 + row))


def encode_alone(model: DiffusionGemma, row: int) -> Tensor:
    return model.encode(ids_of(row)[None, : WHOLE[row]], model.new_kv(1, ROOM))[0]


def encode_together(
    model: DiffusionGemma, store: Store, cuts: Sequence[Sequence[int]], *, scattered: bool
) -> list[Tensor]:
    """Each row's hidden states when its context is encoded in pieces, one of every row that has one at a time."""
    found: list[list[Tensor]] = [[] for _ in WHOLE]
    done = [0] * len(WHOLE)
    for step in range(max(map(len, cuts))):
        rows = [row for row in range(len(WHOLE)) if step < len(cuts[row])]
        spans = [span_of(model, row, done[row], cuts[row][step], denoising=False, scattered=scattered) for row in rows]
        ids = torch.cat([ids_of(row)[done[row] : done[row] + cuts[row][step]] for row in rows])
        hidden = encode_spans(model, ids, spans, store)
        for row, own in zip(rows, hidden.split([span.size for span in spans]), strict=True):
            found[row].append(own)
            done[row] += len(own)
    assert done == list(WHOLE)
    return [torch.cat(parts) for parts in found]


CUTS = {"whole": ((14,), (1,), (23,)), "in pieces": ((5, 9), (1,), (1, 7, 8, 6, 1))}


@pytest.mark.parametrize("scattered", [False, True], ids=["consecutive", "scattered"])
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("name", CONFIGS)
@torch.inference_mode()
def test_rows_encoded_together_and_in_pieces_are_rows_encoded_alone(
    name: str, fused: bool, cuts: Sequence[Sequence[int]], scattered: bool
) -> None:
    model = random_model(CONFIGS[name], torch.float64)
    expected = [encode_alone(model, row) for row in range(len(WHOLE))]
    if fused:
        fuse(model)
    found = encode_together(model, new_store(model), cuts, scattered=scattered)
    for own, alone in zip(found, expected, strict=True):
        assert (own - alone).abs().max() <= 1e-10 * alone.abs().max()


@pytest.mark.parametrize("scattered", [False, True], ids=["consecutive", "scattered"])
@pytest.mark.parametrize("name", [name for name, raw in CONFIGS.items() if raw["model_type"] == "diffusion_gemma"])
@torch.inference_mode()
def test_canvases_of_any_width_and_step_denoised_together_are_canvases_denoised_alone(
    name: str, scattered: bool
) -> None:
    model = random_model(CONFIGS[name], torch.float64)
    generator = torch.Generator().manual_seed(1)
    widths = (8, 3, 5)
    canvases = [torch.randint(96, (width,), generator=generator) for width in widths]
    soft = [torch.randn(width, 32, generator=generator, dtype=torch.float64) for width in widths]
    soft[1].zero_()  # this row is on its first step
    store = new_store(model)
    encode_together(model, store, CUTS["whole"], scattered=scattered)
    for signalled in (True, False):
        for _ in range(2):  # what a canvas leaves behind the context must not be seen
            spans = [
                span_of(model, row, WHOLE[row], widths[row], denoising=True, scattered=scattered) for row in range(3)
            ]
            given = torch.cat(soft) if signalled else None
            hidden = denoise_spans(model, torch.cat(canvases), given, spans, store).split(widths)
            for row, own in enumerate(hidden):
                kv = model.new_kv(1, ROOM)
                model.encode(ids_of(row)[None, : WHOLE[row]], kv)
                signal = soft[row][None] if signalled and row != 1 else None
                alone = model.denoise(canvases[row][None], kv, signal)[0]
                assert (own - alone).abs().max() <= 1e-10 * alone.abs().max()
