"""A tiny model of every part and what its checkpoint holds, for the tests of reading and writing it."""

from typing import Any

import torch
from torch import Tensor

from mezzotint.model.config import ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma

Tensors = dict[str, Tensor]

TEXT = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"],
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "per_layer_config": {"1": {"head_dim": 12, "num_key_value_heads": 1}},
    "sliding_window": 8,
    "max_position_embeddings": 64,
}
EXPERTS = {"num_experts": 3, "top_k_experts": 2, "moe_intermediate_size": 4}
VISION = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "patch_size": 2,
    "position_embedding_size": 4,
}
RAW: dict[str, Any] = {
    "model_type": "diffusion_gemma",
    "text_config": TEXT | EXPERTS,
    "vision_config": VISION,
    "canvas_length": 4,
}


def random_model(config: ModelConfig) -> DiffusionGemma:
    model, generator = DiffusionGemma(config), torch.Generator().manual_seed(1)
    for tensor in model.state_dict().values():
        tensor.copy_(torch.randn(tensor.shape, generator=generator))
    return model


def assert_same_weights(ours: DiffusionGemma, other: DiffusionGemma) -> None:
    expected = other.state_dict()
    assert ours.state_dict().keys() == expected.keys()
    for name, tensor in ours.state_dict().items():
        assert tensor.dtype == expected[name].dtype, name
        assert torch.equal(tensor, expected[name]), name
