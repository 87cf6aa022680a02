"""Rows of any lengths in one forward give what each gives alone, wherever their slots lie."""

from collections.abc import Sequence

import pytest
import torch

from mezzotint.model.fused import fuse
from tests.model.rows import CONTEXTS, CUTS, LAYOUTS, House, Layout, denoise_alone, encode_alone, soft_of
from tests.model.test_fused import CONFIGS, random_model

CANVASES = [name for name, raw in CONFIGS.items() if raw["model_type"] == "diffusion_gemma"]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("name", CONFIGS)
@torch.inference_mode()
def test_rows_encoded_together_and_in_pieces_are_rows_encoded_alone(
    name: str, fused: bool, cuts: Sequence[Sequence[int]], layout: Layout
) -> None:
    model = random_model(CONFIGS[name], torch.float64)
    expected = [encode_alone(model, row) for row in range(len(CONTEXTS))]
    if fused:
        fuse(model)
    for own, alone in zip(House(model, layout).encode(cuts), expected, strict=True):
        assert (own - alone).abs().max() <= 1e-10 * alone.abs().max()


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", CANVASES)
@torch.inference_mode()
def test_canvases_of_any_width_and_step_denoised_together_are_canvases_denoised_alone(
    name: str, layout: Layout
) -> None:
    model = random_model(CONFIGS[name], torch.float64)
    house = House(model, layout)
    house.encode(CUTS["in pieces"])
    some = [soft_of(0, model), None, soft_of(2, model)]  # the second row is on its first step
    for soft in (some, [None] * 3):
        for _ in range(2):  # what a canvas leaves behind the context must not be seen
            for row, own in enumerate(house.denoise(soft)):
                alone = denoise_alone(model, row, soft[row])
                assert (own - alone).abs().max() <= 1e-10 * alone.abs().max()
