import json
from pathlib import Path

import torch

from mezzotint.model.config import shipped_config
from mezzotint.model.memory import outline
from mezzotint.model.names import account
from mezzotint.model.shards import Stored


def test_every_tensor_of_the_released_checkpoint_has_its_place() -> None:
    from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

    raw = (Path(__file__).parents[2] / "mezzotint/configs/diffusiongemma-26b-a4b.json").read_text()
    with torch.device("meta"):
        theirs = DiffusionGemmaForBlockDiffusion(DiffusionGemmaConfig.from_dict(json.loads(raw)))
    kept = {
        name: Stored(Path("model.safetensors"), tuple(tensor.shape), torch.bfloat16)
        for name, tensor in theirs.state_dict().items()
        if not is_tied(name)
    }
    config = shipped_config("diffusiongemma-26b-a4b")
    shapes = {name: tuple(tensor.shape) for name, tensor in outline(config).state_dict().items()}
    found = account(config, shapes, kept)
    text = [part for parts in found.sources.values() for part in parts]
    assert (len(text), len(found.vision), len(kept)) == (691, 356, 1047)
    assert sum(kept[name].bytes for name in text) == 50_501_973_624
    assert sum(tensor.bytes for tensor in kept.values()) == 51_647_562_456


def is_tied(name: str) -> bool:
    """Whether the reference stores another tensor in this one's place."""
    encoder = name.startswith("model.encoder.language_model.") and not name.endswith("layer_scalar")
    return encoder or name == "lm_head.weight"
