from math import prod
from typing import Any

import pytest
import torch

from mezzotint.model.config import shipped_config
from mezzotint.model.fields import Fields
from mezzotint.model.vision import parse_vision, vision_shapes

SMALL = {
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "patch_size": 2,
    "position_embedding_size": 4,
}


@pytest.mark.parametrize(
    "switches",
    [
        {},
        {"standardize": True},
        {"use_clipped_linears": True},
        {"standardize": True, "use_clipped_linears": True},
    ],
)
def test_names_and_shapes_are_those_of_the_reference(switches: dict[str, bool]) -> None:
    from transformers import Gemma4VisionConfig, Gemma4VisionModel

    raw: dict[str, Any] = SMALL | switches
    theirs = Gemma4VisionModel(Gemma4VisionConfig(**raw)).state_dict()
    ours = vision_shapes(parse_vision(Fields(raw, "vision_config")), 16)
    assert ours.pop("embed_vision.embedding_projection.weight") == (16, 8)
    assert ours == {f"vision_tower.{name}": tuple(tensor.shape) for name, tensor in theirs.items()}


def test_the_released_tower_has_356_tensors() -> None:
    config = shipped_config("diffusiongemma-26b-a4b")
    assert config.vision is not None
    shapes = vision_shapes(config.vision, config.hidden_size)
    assert len(shapes) == 356
    assert sum(map(prod, shapes.values())) * torch.bfloat16.itemsize == 1_145_588_832
