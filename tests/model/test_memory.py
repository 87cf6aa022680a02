from dataclasses import replace
from pathlib import Path

import pytest
import torch

from mezzotint.model.config import parse_config, shipped_config
from mezzotint.model.fields import CheckpointError
from mezzotint.model.fused import layer_bytes
from mezzotint.model.memory import MemoryEstimate, available_bytes, check_memory, estimate, outline
from tests.model.checkpoints import RAW, random_model

CPU = torch.device("cpu")
NEED = MemoryEstimate(weights_bytes=3 * 2**30, fused_bytes=2**12, kv_bytes=2**20, scratch_bytes=2**10)


def test_the_released_weights_take_what_their_691_tensors_hold() -> None:
    config = shipped_config("diffusiongemma-26b-a4b")
    assert len(outline(config).state_dict()) == 691
    need = estimate(config, dtype=torch.bfloat16, context_tokens=8192, rows=1)
    assert need.weights_bytes == 50_501_973_624
    assert need.kv_bytes == 8192 * 2 * (25 * 2 * 8 * 256 + 5 * 2 * 2 * 512)
    assert need.fused_bytes == 0
    assert need.total_bytes == need.weights_bytes + need.kv_bytes + need.scratch_bytes


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_small_checkpoint_is_counted_with_the_fused_copy_of_its_layers(dtype: torch.dtype) -> None:
    config = parse_config(RAW)
    need = estimate(config, dtype=dtype, context_tokens=8, rows=1)
    assert need.fused_bytes == layer_bytes(random_model(config).to(dtype)) > 0
    assert need.total_bytes == need.weights_bytes + need.fused_bytes + need.kv_bytes + need.scratch_bytes


def test_rows_and_canvas_add_to_context_and_scratch_but_not_to_weights() -> None:
    config = shipped_config("diffusiongemma-26b-a4b")
    one = estimate(config, dtype=torch.bfloat16, context_tokens=1024, rows=1)
    four = estimate(config, dtype=torch.bfloat16, context_tokens=1024, rows=4)
    assert (four.weights_bytes, four.kv_bytes) == (one.weights_bytes, 4 * one.kv_bytes)
    assert four.scratch_bytes > one.scratch_bytes
    narrow = estimate(replace(config, canvas_length=64), dtype=torch.bfloat16, context_tokens=1024, rows=1)
    assert narrow.scratch_bytes < one.scratch_bytes


def test_too_little_memory_is_told_with_need_have_and_remedy() -> None:
    message = (
        r"needs 3.0 GiB \(weights 3.0 GiB, fused layers 4.0 KiB, keys and values 1.0 MiB, vocabulary pass 1.0 KiB\), "
        r"and cpu has 500 bytes as its limit; use a smaller checkpoint or dtype"
    )
    with pytest.raises(CheckpointError, match=message):
        check_memory(NEED, device=CPU, limit_bytes=500)
    check_memory(NEED, device=CPU, limit_bytes=NEED.total_bytes)


def test_without_a_limit_the_machine_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < available_bytes(CPU) < 2**60
    monkeypatch.setattr("mezzotint.model.memory.available_bytes", lambda device: NEED.total_bytes - 1)
    with pytest.raises(CheckpointError, match=r"cpu has 3.0 GiB available"):
        check_memory(NEED, device=CPU)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"device is cuda, and torch finds no CUDA device here; use cpu"):
        check_memory(NEED, device=torch.device("cuda"), limit_bytes=2**40)


def test_an_outline_has_no_memory_and_draws_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    # A draw on the meta device does nothing, after importing torch's compiler for several seconds.
    monkeypatch.setattr(torch.nn.init, "_no_grad_normal_", lambda *_: pytest.fail("numbers were drawn"))
    model = outline(shipped_config("diffusiongemma-26b-a4b"))
    assert {tensor.device.type for tensor in model.state_dict().values()} == {"meta"}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"max": "4000", "current": "1000"}, 3000),
        ({"max": "4000", "current": "1000", "stat": "anon 5\ninactive_file 70\nactive_file 8\nfile 99"}, 3078),
        ({"max": "4000", "current": "5000"}, 0),
        ({"max": "9999999", "current": "0"}, 8192),
        ({"max": "max", "current": "1000"}, 8192),
        ({}, 8192),
    ],
)
def test_a_host_has_what_it_and_the_container_leave(
    files: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable: 8 kB\n")
    for name, text in files.items():
        (tmp_path / f"memory.{name}").write_text(f"{text}\n")
    monkeypatch.setattr("mezzotint.model.memory._MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr("mezzotint.model.memory._CGROUP", tmp_path)
    assert available_bytes(CPU) == expected
