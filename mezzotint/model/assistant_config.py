"""What shape a Gemma 4 assistant has, the drafter of a larger model; no tensors, and no file but its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mezzotint.model.config import INERT, refuse_unsupported
from mezzotint.model.fields import ConfigError, Fields, read_json
from mezzotint.model.geometry import LayerShape, check_layers, parse_layers


@dataclass(frozen=True, kw_only=True)
class AssistantConfig:
    """An assistant's architecture: dense Gemma 4 layers that own no keys or values. Sizes in elements.

    target_width: hidden size of the model it drafts for. centroids: groups of an ordered head, 0 for a dense one;
    top_centroids: how many of them are scored. draft_tokens: how many tokens it is meant to guess at a time.
    """

    target_width: int
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    layers: tuple[LayerShape, ...]
    sliding_window: int
    rms_norm_eps: float
    max_positions: int
    centroids: int = 0
    top_centroids: int = 0
    draft_tokens: int = 6

    def __post_init__(self) -> None:
        check_layers(self.layers, self.num_heads)
        if self.centroids and self.vocab_size % self.centroids:
            raise ConfigError(
                f"config.json: vocab_size is {self.vocab_size}, must be a multiple of num_centroids {self.centroids}"
            )
        if self.centroids and not 1 <= self.top_centroids <= self.centroids:
            raise ConfigError(
                f"config.json: centroid_intermediate_top_k is {self.top_centroids}, must lie between 1 and "
                f"num_centroids {self.centroids}"
            )


def read_assistant_config(folder: Path) -> AssistantConfig:
    """The AssistantConfig of a checkpoint's folder: config.json, and the draft length of generation_config.json.

    Raises: CheckpointError naming the file, ConfigError naming the key.
    """
    generation = folder / "generation_config.json"
    stated = read_json(generation) if generation.is_file() else None
    return parse_assistant_config(read_json(folder / "config.json"), stated)


def parse_assistant_config(raw: Mapping[str, Any], generation: Mapping[str, Any] | None = None) -> AssistantConfig:
    """Turn a decoded config.json of an assistant into an AssistantConfig.

    generation: decoded generation_config.json; only its num_assistant_tokens is read.
    Raises: ConfigError naming the key for anything unknown, missing or unsupported.
    Source: the reference's Gemma4AssistantConfig and its defaults; its softcap is read by no head.
    """
    if raw.get("model_type") != "gemma4_assistant":
        raise ConfigError(
            f"config.json: model_type is {raw.get('model_type')!r}, must be 'gemma4_assistant' for a drafter; "
            "name the checkpoint of an assistant"
        )
    outer, stated = Fields(raw, "config.json"), Fields(generation or {}, "generation_config.json")
    text = outer.section("text_config") or Fields({}, "config.json: text_config")
    for section in (outer, text):
        refuse_unsupported(section)
    text.only(model_type="gemma4_text", enable_moe_block=False)
    text.skip("num_experts", "top_k_experts", "moe_intermediate_size", "final_logit_softcapping")
    layers = tuple(parse_layers(text, shared=text.flag("attention_k_eq_v", default=False)))
    if text.integer("num_kv_shared_layers", 0, least=0):  # 0 says the same
        text.only(num_kv_shared_layers=len(layers))
    centroids, top_centroids = outer.integer("num_centroids", 2048), outer.integer("centroid_intermediate_top_k", 32)
    ordered = outer.flag("use_ordered_embeddings", default=False)
    config = AssistantConfig(
        target_width=outer.integer("backbone_hidden_size", 1536),
        vocab_size=text.integer("vocab_size", 262_144),
        hidden_size=text.integer("hidden_size", 2304),
        intermediate_size=text.integer("intermediate_size", 9216),
        num_heads=text.integer("num_attention_heads", 8),
        layers=layers,
        sliding_window=text.integer("sliding_window", 512),
        rms_norm_eps=text.number("rms_norm_eps", 1e-6, above=0),
        max_positions=text.integer("max_position_embeddings", 131_072),
        centroids=centroids if ordered else 0,
        top_centroids=top_centroids if ordered else 0,
        draft_tokens=stated.integer("num_assistant_tokens", 6),
    )
    text.close(INERT)
    outer.close(INERT)
    return config
