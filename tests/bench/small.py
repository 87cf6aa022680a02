"""A model small enough to be counted by hand: a sliding and a full layer, and of four experts a token visits two."""

from typing import Any

from mezzotint.model.config import LayerShape, ModelConfig


def small(**sizes: Any) -> ModelConfig:
    """Width 8, two heads, 32 ids, a canvas of 4 and a window of 8; without a vision tower."""
    layers = (
        LayerShape("sliding_attention", 4, 1, shares_kv=False, rope_theta=1e4, rotary_fraction=1.0),
        LayerShape("full_attention", 8, 1, shares_kv=True, rope_theta=1e6, rotary_fraction=0.25),
    )
    usual: dict[str, Any] = {
        "family": "diffusion_gemma",
        "vocab_size": 32,
        "hidden_size": 8,
        "intermediate_size": 16,
        "num_heads": 2,
        "layers": layers,
        "sliding_window": 8,
        "num_experts": 4,
        "top_k_experts": 2,
        "moe_intermediate_size": 4,
        "rms_norm_eps": 1e-6,
        "softcap": 30.0,
        "max_positions": 4096,
        "canvas_length": 4,
        "bos_id": 2,
        "pad_id": 0,
        "eos_ids": (1,),
        "vision": None,
    }
    return ModelConfig(**{**usual, **sizes})
