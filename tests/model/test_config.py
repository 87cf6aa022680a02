import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mezzotint.model.config import (
    ConfigError,
    LayerShape,
    ModelConfig,
    parse_config,
    read_config,
    shipped_config,
)
from mezzotint.model.config_json import config_json
from mezzotint.model.fields import CheckpointError, read_json

RELEASED = "diffusiongemma-26b-a4b"
FILE = Path(__file__).parents[2] / "mezzotint" / "configs" / f"{RELEASED}.json"
GLOBAL = {"global_head_dim": 512, "num_global_key_value_heads": 2}


@pytest.fixture
def raw() -> dict[str, Any]:
    """The released config.json, free to be changed."""
    return read_json(FILE)


def test_the_released_configuration_has_the_published_shape() -> None:
    config = shipped_config(RELEASED)
    sliding = LayerShape("sliding_attention", 256, 8, shares_kv=False, rope_theta=1e4, rotary_fraction=1.0)
    full = LayerShape("full_attention", 512, 2, shares_kv=True, rope_theta=1e6, rotary_fraction=0.25)
    assert config.layers == (*[sliding] * 5, full) * 5
    assert (config.num_experts, config.top_k_experts, config.moe_intermediate_size) == (128, 8, 704)
    assert (config.sliding_window, config.canvas_length, config.softcap) == (1024, 256, 30.0)
    assert (config.bos_id, config.pad_id, config.eos_ids) == (2, 0, (1, 106))


def test_an_unknown_shipped_name_is_told_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=rf"no configuration is called '27b'; there are: {RELEASED}"):
        shipped_config("27b")


def test_both_styles_of_layer_sizes_mean_the_same(raw: dict[str, Any]) -> None:
    older = copy.deepcopy(raw)
    del older["text_config"]["per_layer_config"]
    older["text_config"] |= GLOBAL
    assert parse_config(older) == parse_config(raw)
    older["text_config"] |= {"num_global_key_value_heads": 4}
    assert parse_config(older) != parse_config(raw)


def test_a_flat_text_config_means_the_same_as_a_nested_one(raw: dict[str, Any]) -> None:
    flat = raw["text_config"] | {"canvas_length": raw["canvas_length"]}
    assert parse_config(flat) == replace(parse_config(raw), vision=None)


def test_what_a_file_may_leave_out_is_what_the_release_implies(raw: dict[str, Any]) -> None:
    implied = ("layer_types", "rope_parameters", "hidden_activation", "final_logit_softcapping")
    short = copy.deepcopy(raw)
    for key in implied:
        del short["text_config"][key]
    assert parse_config(short) == parse_config(raw)


def test_the_last_layer_is_full_whatever_the_file_says(raw: dict[str, Any]) -> None:
    raw["text_config"]["layer_types"][-1] = "sliding_attention"
    assert parse_config(raw) == shipped_config(RELEASED)


def test_gemma_4_with_its_own_v_keeps_the_usual_kv_heads(raw: dict[str, Any]) -> None:
    text = raw["text_config"] | GLOBAL | {"model_type": "gemma4_text", "hidden_size_per_layer_input": 0}
    del text["per_layer_config"]
    own, shared = parse_config(text), parse_config(text | {"attention_k_eq_v": True})
    assert (own.layers[5].shares_kv, own.layers[5].kv_heads) == (False, 8)
    assert (shared.layers[5].shares_kv, shared.layers[5].kv_heads) == (True, 2)
    assert own.num_experts == 0
    assert parse_config(text | {"enable_moe_block": True}).num_experts == 128


@pytest.mark.parametrize(
    ("place", "key", "value", "message"),
    [
        ("", "canvas_lenght", 64, "config.json: canvas_lenght is 64; an unknown key (1 in all"),
        (
            "text_config",
            "attn_logit_softcapping",
            50.0,
            "text_config: attn_logit_softcapping is 50.0; an unknown",
        ),
        ("vision_config", "depth", 3, "vision_config: depth is 3; an unknown key"),
        (
            "text_config.per_layer_config",
            "30",
            {"head_dim": 4},
            'per_layer_config: 30 is {"head_dim": 4}; an unknown',
        ),
        ("text_config.rope_parameters.full_attention", "factor", 8.0, "factor is 8.0; an unknown key"),
        ("", "model_type", "llama", "model_type is 'llama'; this version runs 'diffusion_gemma'"),
        ("", "tie_word_embeddings", False, "tie_word_embeddings is false; only true is supported"),
        ("", "quantization_config", {"bits": 4}, "quantised weights, which this version does not read"),
        ("text_config", "num_kv_shared_layers", 10, "num_kv_shared_layers is 10; only 0 is supported"),
        ("text_config", "hidden_size_per_layer_input", 256, "hidden_size_per_layer_input is 256; only 0"),
        ("text_config", "use_bidirectional_attention", "all", 'is "all"; only "vision" is supported'),
        ("text_config", "hidden_activation", "silu", 'hidden_activation is "silu"; only "gelu_pytorch_tanh"'),
        ("text_config", "attention_k_eq_v", False, "attention_k_eq_v is false; only true is supported"),
        ("text_config", "hidden_size", "2816", 'hidden_size is "2816"; must be a whole number of at least 1'),
        ("text_config", "num_experts", None, "num_experts is null; must be a whole number of at least 1"),
        ("text_config", "top_k_experts", 129, "top_k_experts is 129, must lie between 1 and num_experts 128"),
        ("text_config", "num_key_value_heads", 3, "layer 0 has 3 KV heads, which do not divide"),
        ("text_config", "head_dim", 255, "layer 0 has head_dim 255, must be even"),
        (
            "text_config",
            "layer_types",
            ["full_attention"],
            "layer_types has 1 entries, num_hidden_layers is 30",
        ),
        (
            "text_config",
            "layer_types",
            ["linear"] * 30,
            "layer_types[0] is 'linear', must be sliding_attention or",
        ),
        ("text_config", "rms_norm_eps", 0, "rms_norm_eps is 0; must be a number greater than 0"),
        ("text_config", "final_logit_softcapping", -1, "must be a number of at least 0"),
        ("text_config", "eos_token_id", [1, 262144], "token id 262144 lies outside vocab_size 262144"),
        (
            "text_config",
            "eos_token_id",
            "</s>",
            'eos_token_id is "</s>"; must be a token id or a list of them',
        ),
        (
            "text_config.rope_parameters.full_attention",
            "rope_type",
            "yarn",
            'is "yarn"; only "proportional" is',
        ),
        (
            "text_config.rope_parameters.full_attention",
            "partial_rotary_factor",
            1.5,
            "factor 1.5, must be at most 1",
        ),
        ("text_config.rope_parameters.sliding_attention", "partial_rotary_factor", 0.5, "0.5; only 1.0 is"),
        ("vision_config", "standardize", 1, "standardize is 1; must be true or false"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_its_value(
    raw: dict[str, Any], place: str, key: str, value: Any, message: str
) -> None:
    section = raw
    for name in filter(None, place.split(".")):
        section = section[name]
    section[key] = value
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_config(raw)


def test_generation_config_decides_where_text_ends(raw: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(raw))
    assert read_config(tmp_path).eos_ids == (1, 106)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [1, 106, 50]}')
    assert read_config(tmp_path).eos_ids == (1, 106, 50)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1', "cannot be read as JSON"),
        (b"\xff\xfe", "cannot be read as JSON"),
        (b"[1]", "holds a JSON list, must be an object"),
    ],
)
def test_a_file_that_is_no_json_object_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"config.json {message}.*; download it again"):
        read_config(tmp_path)


def test_a_written_config_reads_back_as_itself() -> None:
    config = shipped_config(RELEASED)
    assert parse_config(json.loads(json.dumps(config_json(config, torch.bfloat16)))) == config


@pytest.mark.parametrize(
    "change",
    [
        {"layers": (shipped_config(RELEASED).layers[5], *shipped_config(RELEASED).layers[:6])},
        {"vision": None, "canvas_length": 64, "softcap": 0.0, "eos_ids": (7,)},
    ],
)
def test_other_shapes_that_the_format_holds_read_back_too(change: dict[str, Any]) -> None:
    config = replace(shipped_config(RELEASED), **change)
    assert parse_config(config_json(config, torch.float32)) == config


def test_a_config_that_would_change_on_the_way_is_not_written() -> None:
    config: ModelConfig = shipped_config(RELEASED)
    for change in ({"layers": config.layers[:5]}, {"family": "gemma4"}):
        with pytest.raises(CheckpointError, match=r"a DiffusionGemma config.json has no place for that"):
            config_json(replace(config, **change), torch.bfloat16)
