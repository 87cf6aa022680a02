"""Configs written as the config.json that Hugging Face reads; reading one back lives in config and assistant_config."""

from dataclasses import fields
from typing import Any

import torch

from mezzotint.model.assistant_config import AssistantConfig, parse_assistant_config
from mezzotint.model.config import LayerShape, ModelConfig, parse_config
from mezzotint.model.fields import CheckpointError
from mezzotint.model.vision import VisionConfig

Shaped = ModelConfig | AssistantConfig


def config_json(config: ModelConfig, dtype: torch.dtype) -> dict[str, Any]:
    """The config.json of a DiffusionGemma checkpoint whose weights are in `dtype`.

    Raises: CheckpointError for a config that would not read back as itself: the format has no place for it.
    """
    element = str(dtype).removeprefix("torch.")
    written = {
        "architectures": ["DiffusionGemmaForBlockDiffusion"],
        "model_type": "diffusion_gemma",
        "dtype": element,
        "canvas_length": config.canvas_length,
        "tie_word_embeddings": True,
        "text_config": {"dtype": element, **_text(config)},
        "vision_config": None if config.vision is None else {"dtype": element, **_vision(config.vision)},
    }
    _check_kept(config, parse_config(written), "a DiffusionGemma")
    return written


def assistant_json(config: AssistantConfig, dtype: torch.dtype) -> dict[str, Any]:
    """The config.json of a Gemma 4 assistant whose weights are in `dtype`.

    Raises: CheckpointError for a config that would not read back as itself.
    """
    element = str(dtype).removeprefix("torch.")
    written = {
        "architectures": ["Gemma4AssistantForCausalLM"],
        "model_type": "gemma4_assistant",
        "dtype": element,
        "backbone_hidden_size": config.target_width,
        "use_ordered_embeddings": config.centroids > 0,
        "tie_word_embeddings": True,
        "text_config": {
            "dtype": element,
            "model_type": "gemma4_text",
            **_geometry(config),
            "attention_k_eq_v": any(layer.shares_kv for layer in config.layers),
            "num_kv_shared_layers": len(config.layers),
            "enable_moe_block": False,
            "hidden_size_per_layer_input": 0,
            "vocab_size_per_layer_input": 0,
        },
    }
    if config.centroids:
        written |= {"num_centroids": config.centroids, "centroid_intermediate_top_k": config.top_centroids}
    _check_kept(
        config, parse_assistant_config(written, {"num_assistant_tokens": config.draft_tokens}), "an assistant's"
    )
    return written


def _check_kept(config: Shaped, back: Shaped, whose: str) -> None:
    lost = [field.name for field in fields(config) if getattr(config, field.name) != getattr(back, field.name)]
    if lost:
        raise CheckpointError(
            f"{lost[0]} would be read back as {getattr(back, lost[0])}, and is {getattr(config, lost[0])}; "
            f"{whose} config.json has no place for that: write a model of the released layout"
        )


def _text(config: ModelConfig) -> dict[str, Any]:
    return {
        "model_type": "diffusion_gemma_text",
        **_geometry(config),
        "num_experts": config.num_experts,
        "top_k_experts": config.top_k_experts,
        "moe_intermediate_size": config.moe_intermediate_size,
        "final_logit_softcapping": config.softcap,
        "use_bidirectional_attention": "vision",
        "bos_token_id": config.bos_id,
        "pad_token_id": config.pad_id,
        "eos_token_id": list(config.eos_ids),
    }


def _geometry(config: Shaped) -> dict[str, Any]:
    """The keys that the text configs of both have."""
    usual = config.layers[0]
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": len(config.layers),
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": usual.kv_heads,
        "head_dim": usual.head_dim,
        "per_layer_config": {
            str(index): {"head_dim": layer.head_dim, "num_key_value_heads": layer.kv_heads}
            for index, layer in enumerate(config.layers)
            if (layer.head_dim, layer.kv_heads) != (usual.head_dim, usual.kv_heads)
        },
        "layer_types": [layer.kind for layer in config.layers],
        "sliding_window": config.sliding_window,
        "rope_parameters": _ropes(config.layers),
        "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": False,
        "rms_norm_eps": config.rms_norm_eps,
        "max_position_embeddings": config.max_positions,
        "tie_word_embeddings": True,
    }


def _ropes(layers: tuple[LayerShape, ...]) -> dict[str, Any]:
    ropes: dict[str, Any] = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {"rope_type": "proportional", "rope_theta": 1e6},
    }
    for layer in layers:
        ropes[layer.kind]["rope_theta"] = layer.rope_theta
        if layer.kind == "full_attention":
            ropes[layer.kind]["partial_rotary_factor"] = layer.rotary_fraction
    return ropes


def _vision(config: VisionConfig) -> dict[str, Any]:
    return {
        "model_type": "gemma4_vision",
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "patch_size": config.patch_size,
        "position_embedding_size": config.position_embedding_size,
        "standardize": config.standardize,
        "use_clipped_linears": config.clipped_linears,
    }
