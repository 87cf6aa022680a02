"""What shape a checkpoint has, read from config.json; no tensors and no files other than JSON live here."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mezzotint.model.fields import ConfigError as ConfigError
from mezzotint.model.fields import Fields, read_json
from mezzotint.model.geometry import LayerKind as LayerKind
from mezzotint.model.geometry import LayerShape as LayerShape
from mezzotint.model.geometry import check_layers, parse_layers
from mezzotint.model.vision import VisionConfig as VisionConfig
from mezzotint.model.vision import parse_vision

Family = Literal["diffusion_gemma", "gemma4"]

_SHIPPED = Path(__file__).parents[1] / "configs"

# Keys that Hugging Face writes into every config and that cannot change a number we compute.
INERT = frozenset(
    "architectures model_type dtype torch_dtype transformers_version initializer_range attention_dropout "
    "_name_or_path id2label label2id return_dict output_hidden_states output_attentions problem_type "
    "use_cache auto_map is_encoder_decoder chunk_size_feed_forward vocab_size_per_layer_input bos_token_id "
    "pad_token_id eos_token_id boi_token_id eoi_token_id boa_token_id eoa_token_id eoa_token_index "
    "image_token_id video_token_id audio_token_id vision_soft_tokens_per_image".split()
)


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A checkpoint's architecture. Sizes in elements, windows in tokens (the token itself counts).

    num_experts 0 means dense layers, softcap 0 none, vision None a checkpoint without a vision tower.
    """

    family: Family
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    layers: tuple[LayerShape, ...]
    sliding_window: int
    num_experts: int
    top_k_experts: int
    moe_intermediate_size: int
    rms_norm_eps: float
    softcap: float
    max_positions: int
    canvas_length: int
    bos_id: int
    pad_id: int
    eos_ids: tuple[int, ...]
    vision: VisionConfig | None

    def __post_init__(self) -> None:
        for name in "vocab_size hidden_size num_heads sliding_window canvas_length max_positions".split():
            if getattr(self, name) < 1:
                raise ConfigError(f"config.json: {name} is {getattr(self, name)}, must be at least 1")
        check_layers(self.layers, self.num_heads)
        if self.num_experts and not 1 <= self.top_k_experts <= self.num_experts:
            raise ConfigError(
                f"config.json: top_k_experts is {self.top_k_experts}, must lie between 1 and num_experts "
                f"{self.num_experts}"
            )
        for token in (self.bos_id, self.pad_id, *self.eos_ids):
            if not 0 <= token < self.vocab_size:
                raise ConfigError(f"config.json: token id {token} lies outside vocab_size {self.vocab_size}")


def read_config(folder: Path) -> ModelConfig:
    """The ModelConfig of a checkpoint's folder: config.json, and eos ids from generation_config.json.

    Raises: CheckpointError naming the file, ConfigError naming the key.
    """
    generation = folder / "generation_config.json"
    return parse_config(read_json(folder / "config.json"), read_json(generation) if generation.is_file() else None)


def shipped_config(name: str) -> ModelConfig:
    """A released configuration that the package holds without weights, such as `diffusiongemma-26b-a4b`.

    Raises: ConfigError naming what there is.
    """
    known = sorted(file.stem for file in _SHIPPED.glob("*.json"))
    if name not in known:
        raise ConfigError(f"no configuration is called {name!r}; there are: {', '.join(known)}")
    return parse_config(read_json(_SHIPPED / f"{name}.json"))


def parse_config(raw: Mapping[str, Any], generation: Mapping[str, Any] | None = None) -> ModelConfig:
    """Turn a decoded config.json (old or new key style, nested or flat) into a ModelConfig.

    generation: decoded generation_config.json; only its eos_token_id is read, and it wins over config.json's.
    Raises: ConfigError naming the key for anything unknown, missing or unsupported.
    Source: the released config's two storage styles (`per_layer_config`, or `global_head_dim` and
    `num_global_key_value_heads`) and its implied defaults.
    """
    outer, stated = Fields(raw, "config.json"), Fields(generation or {}, "generation_config.json")
    family = _family(raw)
    text = outer.section("text_config") or outer
    for section in (outer, text):
        refuse_unsupported(section)
        section.only(num_kv_shared_layers=0)
    experts, vision = _experts(text, family), outer.section("vision_config")
    config = ModelConfig(
        family=family,
        vocab_size=text.integer("vocab_size", 262_144),
        hidden_size=text.integer("hidden_size", 2304),
        intermediate_size=text.integer("intermediate_size", 9216),
        num_heads=text.integer("num_attention_heads", 8),
        layers=tuple(parse_layers(text, shared=_shares_kv(text, family))),
        sliding_window=text.integer("sliding_window", 512),
        num_experts=experts.total,
        top_k_experts=experts.top_k,
        moe_intermediate_size=experts.inner,
        rms_norm_eps=text.number("rms_norm_eps", 1e-6, above=0),
        softcap=text.number("final_logit_softcapping", 30.0 if family == "diffusion_gemma" else 0.0),
        max_positions=text.integer("max_position_embeddings", 131_072),
        canvas_length=outer.integer("canvas_length", 256),
        bos_id=text.integer("bos_token_id", 2, least=0),
        pad_id=text.integer("pad_token_id", 0, least=0),
        eos_ids=stated.ids("eos_token_id") or outer.ids("eos_token_id") or text.ids("eos_token_id") or (1,),
        vision=None if vision is None else parse_vision(vision),
    )
    text.close(INERT)
    outer.close(INERT)
    return config


def _family(raw: Mapping[str, Any]) -> Family:
    kind = raw.get("model_type")
    if kind in ("diffusion_gemma", "diffusion_gemma_text"):
        return "diffusion_gemma"
    if kind in ("gemma4", "gemma4_text"):
        return "gemma4"
    if kind == "gemma4_assistant":
        raise ConfigError(
            "config.json: model_type is 'gemma4_assistant', a drafter that runs beside the model it was trained for; "
            "load that model, and this with load_assistant"
        )
    raise ConfigError(
        f"config.json: model_type is {kind!r}; this version runs 'diffusion_gemma' and, autoregressively, 'gemma4'"
    )


def refuse_unsupported(section: Fields) -> None:
    """Refuse parts of Gemma 4 that no network of ours has. Raises: ConfigError naming the key."""
    section.only(
        tie_word_embeddings=True,
        audio_config=None,
        hidden_activation="gelu_pytorch_tanh",
        attention_bias=False,
        use_double_wide_mlp=False,
        hidden_size_per_layer_input=0,
        use_bidirectional_attention="vision",
    )
    if section.section("quantization_config") is not None:
        raise ConfigError(
            "config.json: quantization_config announces quantised weights, which this version does not read; "
            "use the release in bfloat16"
        )


class _Experts(NamedTuple):
    total: int
    top_k: int
    inner: int


def _experts(text: Fields, family: Family) -> _Experts:
    sizes = ("num_experts", "top_k_experts", "moe_intermediate_size")
    if family == "diffusion_gemma":
        text.only(enable_moe_block=True)
    elif not text.flag("enable_moe_block", default=False):
        text.skip(*sizes)
        return _Experts(0, 0, 0)
    return _Experts(*(text.integer(size) for size in sizes))


def _shares_kv(text: Fields, family: Family) -> bool:
    if family == "diffusion_gemma":
        text.only(attention_k_eq_v=True)
        return True
    return text.flag("attention_k_eq_v", default=False)
