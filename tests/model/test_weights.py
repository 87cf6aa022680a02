import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from mezzotint.model.config import ConfigError, parse_config
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.generation_config import GenerationDefaults
from mezzotint.model.shards import Shards
from mezzotint.model.weights import CheckpointError, inspect_checkpoint, load_model, write_checkpoint
from tests.model.checkpoints import EXPERTS, RAW, TEXT, Tensors, assert_same_weights, random_model

FIRST = "model.decoder.layers.0"


def rewrite(folder: Path, change: Callable[[Tensors], None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def test_a_written_checkpoint_reads_back_bit_for_bit(model: DiffusionGemma, folder: Path) -> None:
    loaded = load_model(folder)
    assert_same_weights(loaded, model)
    assert loaded.config == model.config
    assert not loaded.training
    assert not any(parameter.requires_grad for parameter in loaded.parameters())


def test_dtype_none_keeps_the_stored_one_and_another_converts(model: DiffusionGemma, tmp_path: Path) -> None:
    write_checkpoint(model, tmp_path)
    stored = load_model(str(tmp_path))
    assert {tensor.dtype for tensor in stored.state_dict().values()} == {torch.bfloat16}
    assert_same_weights(stored, deepcopy(model).bfloat16())
    assert_same_weights(load_model(tmp_path, dtype=torch.float64), stored.double())


def test_weights_in_the_stored_dtype_stay_in_the_file(folder: Path) -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("only Linux tells what a page of memory is backed by")
    loaded = load_model(folder)
    ranges = [line.split()[0].split("-") for line in maps.read_text().splitlines() if str(folder) in line]
    for name, tensor in loaded.state_dict().items():
        assert any(int(low, 16) <= tensor.data_ptr() < int(high, 16) for low, high in ranges), name


def test_transformers_finds_every_key_it_wants_and_no_other(model: DiffusionGemma, tmp_path: Path) -> None:
    from transformers import DiffusionGemmaForBlockDiffusion

    write_checkpoint(model, tmp_path, generation=GenerationDefaults(t_min=0.3), max_new_tokens=8)
    load: Any = DiffusionGemmaForBlockDiffusion.from_pretrained
    theirs, told = load(tmp_path, output_loading_info=True)
    assert not any(told.values()), told
    assert theirs.generation_config.sampler_config.entropy_bound == 0.1
    assert theirs.generation_config.eos_token_id == [1]
    assert theirs.generation_config.t_min == 0.3
    assert theirs.generation_config.max_new_tokens == 8
    scalar = model.state_dict()["layers.1.encoder_layer_scalar"]
    assert torch.equal(theirs.model.encoder.language_model.layers[1].layer_scalar, scalar.to(torch.bfloat16))


def test_vision_tensors_are_recognised_and_left_out(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    report = inspect_checkpoint(folder)
    assert (report.text_tensors, report.vision_tensors) == (51, 16)
    file_bytes = sum(tensor.nbytes for tensor in load_file(folder / "model.safetensors").values())
    assert report.text_bytes + report.vision_bytes == file_bytes
    with caplog.at_level("INFO"):
        load_model(folder)
    assert "text only for now: 16 vision tensors are recognised and left out" in caplog.text


def test_a_copy_without_vision_tensors_loads(model: DiffusionGemma, folder: Path) -> None:
    def drop(tensors: Tensors) -> None:
        for name in [name for name in tensors if "vision" in name]:
            del tensors[name]

    rewrite(folder, drop)
    assert_same_weights(load_model(folder), model)
    assert inspect_checkpoint(folder).vision_tensors == 0


def test_experts_stored_one_by_one_are_stacked(model: DiffusionGemma, folder: Path) -> None:
    rewrite(folder, split_experts)
    assert_same_weights(load_model(folder), model)
    rewrite(folder, pop(f"{FIRST}.experts.2.up_proj.weight"))
    with pytest.raises(CheckpointError, match=rf"lacks {FIRST}.experts.2.up_proj.weight \(1 such"):
        load_model(folder)


def split_experts(tensors: Tensors) -> None:
    for layer in (0, 1):
        experts = f"model.decoder.layers.{layer}.experts"
        gate_up, down = tensors.pop(f"{experts}.gate_up_proj"), tensors.pop(f"{experts}.down_proj")
        for index in range(len(down)):
            gate, up = gate_up[index].chunk(2)
            parts = {"gate": gate, "up": up, "down": down[index]}
            tensors |= {f"{experts}.{index}.{part}_proj.weight": value.clone() for part, value in parts.items()}


@pytest.mark.parametrize("prefix", ["model.language_model.", "language_model.model.", "model."])
def test_gemma_4_loads_under_every_spelling(prefix: str, tmp_path: Path) -> None:
    raw = {"model_type": "gemma4_text", **TEXT, "hidden_size_per_layer_input": 0}
    source = random_model(parse_config(raw))
    stored = {prefix + name: tensor for name, tensor in source.state_dict().items() if "encoder" not in name}
    save_file(stored, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(raw))
    loaded = load_model(tmp_path).state_dict()
    scalars = {name: value for name, value in source.state_dict().items() if name.endswith(".layer_scalar")}
    for name, value in scalars.items():
        assert torch.equal(loaded.pop(name.replace("layer_scalar", "encoder_layer_scalar")), value)
    assert loaded.keys() == {name for name in source.state_dict() if "encoder" not in name}
    assert all(torch.equal(value, source.state_dict()[name]) for name, value in loaded.items())
    assert "layers.1.self_attn.v_proj.weight" in loaded
    assert not any(name.startswith("self_conditioning") for name in loaded)


def pop(name: str) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.__delitem__(name)


def put(name: str, value: Tensor) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.__setitem__(name, value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (pop("model.decoder.norm.weight"), "lacks model.decoder.norm.weight (1 such tensors)"),
        (
            pop("model.encoder.language_model.layers.1.layer_scalar"),
            "lacks model.encoder.language_model.layers.1.layer_scalar",
        ),
        (
            put("model.decoder.bias", torch.ones(1)),
            "holds model.decoder.bias, which config.json has no place for",
        ),
        (
            put("model.decoder.norm.weight", torch.ones(17)),
            "model.decoder.norm.weight has shape [17], config.json asks for [16]",
        ),
        (pop("model.encoder.embed_vision.embedding_projection.weight"), "lacks model.encoder.embed_vision"),
        (
            put("model.encoder.vision_tower.patch_embedder.input_proj.weight", torch.ones(8, 3)),
            "input_proj.weight has shape [8, 3], config.json asks for [8, 12]",
        ),
        (
            put(f"{FIRST}.mlp.up_proj.weight_scale", torch.ones(1)),
            "up_proj.weight_scale (F32) belongs to quantised weights",
        ),
        (
            put(f"{FIRST}.mlp.up_proj.weight", torch.ones(12, 16, dtype=torch.uint8)),
            "up_proj.weight (U8) belongs to quantised weights",
        ),
        (put("lm_head.weight", torch.ones(40, 16)), "lm_head.weight differs from model.decoder.embed_tokens"),
        (put(f"{FIRST}.layer_scalar", torch.tensor([torch.nan])), f"{FIRST}.layer_scalar is not finite"),
        (
            put(f"{FIRST}.mlp.up_proj.weight", torch.ones(12, 16).index_fill(0, torch.tensor([7]), -torch.inf)),
            "up_proj.weight is not finite in torch.float32 (from -inf to 1.0)",
        ),
    ],
)
def test_a_damaged_checkpoint_is_refused_by_name(damage: Callable[[Tensors], None], message: str, folder: Path) -> None:
    rewrite(folder, damage)
    with pytest.raises(CheckpointError, match=re.escape(message)):
        load_model(folder)


def test_nothing_is_read_before_everything_is_accounted_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shards, "read", lambda *_: pytest.fail("a weight was read"))
    with pytest.raises(CheckpointError, match=r"needs .* cpu has 1000 bytes as its limit"):
        load_model(folder, memory_limit_bytes=1000)
    with pytest.raises(CheckpointError, match=r"dtype is torch.int8, must be one of"):
        load_model(folder, dtype=torch.int8)
    rewrite(folder, pop("model.decoder.norm.weight"))
    with pytest.raises(CheckpointError, match="lacks"):
        load_model(folder)


def test_a_head_equal_to_the_embedding_is_taken_as_tied(model: DiffusionGemma, folder: Path) -> None:
    rewrite(folder, put("lm_head.weight", model.embed_tokens.weight.detach().clone()))
    assert_same_weights(load_model(folder), model)


def test_a_weight_too_large_for_the_dtype_is_refused(folder: Path) -> None:
    rewrite(folder, put("model.decoder.norm.weight", torch.full((16,), 1e300, dtype=torch.float64)))
    load_model(folder, dtype=torch.float64)
    with pytest.raises(CheckpointError, match=r"norm.weight is not finite in torch.float32 .* a wider one"):
        load_model(folder)


def test_a_checkpoint_in_float16_is_read_as_float32_or_as_asked(folder: Path) -> None:
    rewrite(folder, lambda tensors: tensors.update({name: tensor.half() for name, tensor in tensors.items()}))
    assert inspect_checkpoint(folder).dtype == torch.float16
    model = load_model(folder)
    assert {tensor.dtype for tensor in model.state_dict().values()} == {torch.float32}
    assert_same_weights(load_model(folder, dtype=torch.bfloat16), deepcopy(model).bfloat16())


def test_float16_is_no_dtype_to_run_in(model: DiffusionGemma, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"dtype is torch.float16, must be one of torch.float64, torch.float32"):
        load_model(folder, dtype=torch.float16)
    with pytest.raises(CheckpointError, match=r"dtype is torch.float16, must be one of"):
        write_checkpoint(model, tmp_path / "half", dtype=torch.float16)
    assert not (tmp_path / "half").exists()


def test_mps_is_refused_before_anything_is_looked_up() -> None:
    with pytest.raises(CheckpointError, match=r"device 'mps:0' is not supported yet: it lacks float64.*; use cpu"):
        load_model("nobody/nothing", device="mps:0")


def test_a_config_key_that_nobody_knows_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps(RAW | {"canvas_lenght": 8}))
    with pytest.raises(ConfigError, match="canvas_lenght is 8; an unknown key"):
        load_model(folder)


def test_eos_ids_of_generation_config_win(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"eos_token_id": [3, 4]}')
    assert load_model(folder).config.eos_ids == (3, 4)


def test_a_model_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    model = random_model(parse_config(RAW))
    model.state_dict()["norm.weight"][0] = torch.nan
    with pytest.raises(CheckpointError, match=r"norm.weight is not finite"):
        write_checkpoint(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_model_that_the_format_cannot_hold_is_not_written(tmp_path: Path) -> None:
    dense = random_model(parse_config({"model_type": "gemma4_text", **TEXT}))
    with pytest.raises(CheckpointError, match="num_experts"):
        write_checkpoint(dense, tmp_path / "new")
    experts = {"enable_moe_block": True, **EXPERTS}
    causal = random_model(parse_config({"model_type": "gemma4_text", **TEXT, **experts}))
    with pytest.raises(CheckpointError, match="family would be read back as diffusion_gemma, and is gemma4"):
        write_checkpoint(causal, tmp_path / "new")


def test_a_checkpoint_can_be_written_over_the_one_it_was_read_from(model: DiffusionGemma, folder: Path) -> None:
    write_checkpoint(load_model(folder), folder, dtype=torch.float32)
    assert_same_weights(load_model(folder), model)
    assert not list(folder.glob("*.partial"))
