"""Tiny checkpoints written by transformers and read by both sides; what both say of them lives in trace."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.weights import load_model

CANVAS, VOCABULARY = 8, 128
IMAGE_IDS: dict[str, Any] = {"image_token_id": 125, "boi_token_id": 126, "eoi_token_id": 127}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a checkpoint of either family may vary in. `layers` is one letter a layer: s sliding, f full.

    global_kv_heads None: as many as sliding layers have. experts 0 and shares_kv False: Gemma 4 only.
    style: how config.json says that full layers differ; `older` is what the first files used.
    """

    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    global_kv_heads: int | None = 1
    global_head_dim: int = 32
    width: int = 64
    layers: str = "sssssf"
    experts: int = 8
    top_k: int = 2
    shares_kv: bool = True
    window: int = 16
    sliding_theta: float = 1e4
    full_theta: float = 1e6
    rotary_fraction: float = 0.25
    eps: float = 1e-6
    vision_rule: str | None = None
    style: Literal["newer", "older"] = "newer"

    @property
    def text_config(self) -> dict[str, Any]:
        """The keys that both families' text configs have."""
        kinds = {"s": "sliding_attention", "f": "full_attention"}
        return {
            "vocab_size": VOCABULARY,
            "hidden_size": self.width,
            "intermediate_size": 48,
            "num_hidden_layers": len(self.layers),
            "layer_types": [kinds[letter] for letter in self.layers],
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "global_head_dim": self.global_head_dim,
            "num_global_key_value_heads": self.global_kv_heads,
            "num_experts": self.experts or None,
            "top_k_experts": self.top_k if self.experts else None,
            "moe_intermediate_size": 24 if self.experts else None,
            "sliding_window": self.window,
            "max_position_embeddings": 512,
            "rms_norm_eps": self.eps,
            "use_bidirectional_attention": self.vision_rule,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": self.sliding_theta},
                "full_attention": {
                    "rope_type": "proportional",
                    "rope_theta": self.full_theta,
                    "partial_rotary_factor": self.rotary_fraction,
                },
            },
        }


SHAPES = {
    "published pattern": Shape(),
    "published pattern, older config": Shape(style="older", vision_rule="vision"),
    "sixteen experts, top 4": Shape(heads=8, kv_heads=4, global_kv_heads=2, experts=16, top_k=4, layers="ssf"),
    "one expert of three": Shape(experts=3, top_k=1, kv_heads=1, head_dim=8, layers="sfsf", style="older"),
    "every expert, wide heads": Shape(experts=4, top_k=4, global_head_dim=64, kv_heads=4, width=48, layers="ssf"),
    "full layers no wider": Shape(global_head_dim=16, global_kv_heads=None, layers="fsf", style="older"),
    "short window, other rotations": Shape(
        window=7, sliding_theta=100.0, full_theta=1e3, rotary_fraction=0.5, eps=1e-4, layers="ssf"
    ),
}
CAUSAL_SHAPES = {
    "experts, V is K": Shape(layers="ssfssf"),
    "experts, own V": Shape(shares_kv=False, layers="ssf"),
    "experts, own V, older config": Shape(shares_kv=False, global_kv_heads=None, layers="ssf", style="older"),
    "dense, own V": Shape(experts=0, shares_kv=False, layers="sfsf"),
    "dense, V is K, older config": Shape(experts=0, layers="ssf", style="older"),
}


class Twin(NamedTuple):
    """One checkpoint directory as transformers reads it (`oracle`) and as we do (`model`)."""

    shape: Shape
    directory: Path
    oracle: Any
    model: DiffusionGemma


def diffusion_twin(shape: Shape, directory: Path, dtype: torch.dtype = torch.float32) -> Twin:
    """A DiffusionGemma checkpoint with a small vision tower, read by both sides."""
    from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion, DiffusionGemmaTextConfig

    if not (directory / "config.json").exists():
        config = DiffusionGemmaConfig(
            text_config=DiffusionGemmaTextConfig(**shape.text_config),
            vision_config=_small_vision(),
            canvas_length=CANVAS,
            **IMAGE_IDS,
        )
        write_checkpoint(DiffusionGemmaForBlockDiffusion(config), shape, directory)
    return _read(DiffusionGemmaForBlockDiffusion, shape, directory, dtype)


def causal_twin(shape: Shape, directory: Path, *, multimodal: bool = False) -> Twin:
    """A Gemma 4 checkpoint of the text model alone, or named as the published multimodal files are."""
    from transformers import Gemma4Config, Gemma4ForCausalLM, Gemma4ForConditionalGeneration

    config: Any = causal_config(shape)
    if multimodal:
        config = Gemma4Config(text_config=config, vision_config=_small_vision(), audio_config=None, **IMAGE_IDS)
    kind = Gemma4ForConditionalGeneration if multimodal else Gemma4ForCausalLM
    write_checkpoint(kind(config), shape, directory)
    return _read(kind, shape, directory, torch.float32)


def causal_config(shape: Shape) -> Any:
    """The Gemma 4 text config of a shape, with DiffusionGemma's softcap."""
    from transformers import Gemma4TextConfig

    return Gemma4TextConfig(
        **shape.text_config,
        attention_k_eq_v=shape.shares_kv,
        enable_moe_block=shape.experts > 0,
        hidden_size_per_layer_input=0,
        final_logit_softcapping=30.0,
    )


def write_checkpoint(network: Any, shape: Shape, directory: Path) -> None:
    """Give `network` seeded random weights and save it as published, config.json in the shape's style."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "vision" not in name:
                parameter.copy_(_random_weight(name, parameter, generator))
        for name, buffer in network.named_buffers():
            if name.endswith("layer_scalar"):  # stored once for encode and once for denoise: here they differ
                buffer.copy_(0.8 + 0.4 * torch.rand(buffer.shape, generator=generator))
    network.save_pretrained(directory)
    if shape.style == "older":
        _age(directory / "config.json", shape)


def _random_weight(name: str, like: Tensor, generator: torch.Generator) -> Tensor:
    noise = torch.randn(like.shape, generator=generator)
    if "q_norm" in name or "k_norm" in name:  # all that scales attention, which near 1 would be needle-sharp
        return 0.6 + 0.2 * noise
    if name.endswith(".norm.weight"):  # signs mixed, or the tied table would answer every token with itself
        return 2.5 * noise
    if like.ndim == 1:
        return 1 + 0.2 * noise
    if "embed_tokens" in name:
        return 0.15 * noise
    if "router" in name:  # sharp, or two experts of nearly equal score would change places between kernels
        return 2 * noise
    return noise / math.sqrt(like.shape[-1])


def _age(file: Path, shape: Shape) -> None:
    config = json.loads(file.read_text())
    text = config.get("text_config", config)
    del text["per_layer_config"]
    text |= {"global_head_dim": shape.global_head_dim, "num_global_key_value_heads": shape.global_kv_heads}
    file.write_text(json.dumps(config))


def _read(kind: Any, shape: Shape, directory: Path, dtype: torch.dtype) -> Twin:
    oracle = kind.from_pretrained(directory, dtype=dtype).eval().requires_grad_(requires_grad=False)
    return Twin(shape, directory, oracle, load_model(directory, dtype=dtype))


def _small_vision() -> Any:
    from transformers import Gemma4VisionConfig

    return Gemma4VisionConfig(
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        patch_size=4,
        pooling_kernel_size=2,
        position_embedding_size=64,
    )
