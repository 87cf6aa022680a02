"""How a checkpoint is loaded: its dtype, device, threads and layers; and every refusal."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mezzotint import LLM, SamplingParams
from mezzotint.decoding.policy import SMALL_MODEL
from mezzotint.text.prompt import PromptEncoder
from tests.llm.tiny import ASKED, CHAT, answer

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"dtype": "int8"}, "dtype is 'int8'; choose one of float64, float32, bfloat16"),
    ({"dtype": torch.float32}, "dtype is torch.float32; choose one of float64, float32, bfloat16"),
    ({"device": "nonsense"}, "device is 'nonsense', which torch cannot use here ("),
    ({"device": ""}, "device is '', which torch cannot use here ("),
    ({"device": "meta"}, "device is 'meta', which torch cannot use here ("),
    ({"device": "cuda:99"}, "device is 'cuda:99', which torch cannot use here ("),
    ({"device": "hpu"}, "device is 'hpu', which torch cannot use here ("),
    ({"device": None}, "device is None, which torch cannot use here ("),
    ({"threads": 0}, "threads is 0; give a whole number from 1 up"),
    ({"threads": -2}, "threads is -2; give a whole number from 1 up"),
    ({"threads": 1.5}, "threads is 1.5; give a whole number from 1 up"),
    ({"threads": True}, "threads is True; give a whole number from 1 up"),
    ({"threads": "2"}, "threads is '2'; give a whole number from 1 up"),
    ({"shared": 1}, "shared is 1; give True or False"),
    ({"memory_bytes": 0}, "memory_bytes is 0; give None or at least 1"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED, ids=[str(options) for options, _ in REFUSED])
def test_a_wrong_option_is_named_with_its_value_and_a_remedy_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: str
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (all of the words are compared below)
        LLM("nowhere", **{"threads": 3, **options})
    message = str(caught.value)
    assert message.startswith(words)
    assert message.endswith("'cpu' works") == ("device" in options)
    assert "\n" not in message
    assert asked == [], "a refusal leaves the process as it was"


def test_dtype_is_honoured_and_none_keeps_what_is_stored(folder: Path) -> None:
    for name in ("float64", "float32", "bfloat16"):
        assert LLM(str(folder), dtype=name).model.dtype == getattr(torch, name)
    assert LLM(str(folder)).model.dtype == torch.float32


def test_threads_are_set_and_none_leaves_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    LLM(str(folder))
    LLM(str(folder), threads=3)
    assert asked == [3]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_small_checkpoint_runs_on_fused_layers_and_writes_what_the_plain_ones_write(folder: Path, dtype: str) -> None:
    fused, plain = (LLM(str(folder), dtype=dtype, costs=SMALL_MODEL) for _ in range(2))
    assert not set(map(id, fused.model.runners)) & set(map(id, fused.model.layers))
    plain.model.runners = list(plain.model.layers)
    for params in ASKED.values():
        assert answer(fused, CHAT, params) == answer(plain, CHAT, params)


def test_a_checkpoint_too_large_to_hold_its_layers_twice_runs_on_plain_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mezzotint.llm.checkpoint.layer_bytes", lambda model: 1 << 30)
    large = LLM(str(folder))
    assert list(large.model.runners) == list(large.model.layers)


def test_keys_and_values_that_no_memory_holds_are_refused_before_any_work(
    llm: LLM, forwards: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mezzotint.llm.entry.available_bytes", lambda device: 1000)
    with pytest.raises(ValueError, match=r"keys and values of .* tokens need .* bytes and cpu has 1,000"):
        llm.generate([1, 2, 3], SamplingParams(max_tokens=8))
    assert not forwards


def test_a_model_with_ids_that_its_tokenizer_cannot_spell_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = PromptEncoder.from_directory

    def short(directory: Path) -> PromptEncoder:
        encoder = original(directory)
        assert encoder.tokenizer is not None
        encoder.tokenizer.vocab_size = 7
        return encoder

    monkeypatch.setattr(PromptEncoder, "from_directory", short)
    with pytest.raises(ValueError, match="its tokenizer 7, so some tokens would have no text"):
        LLM(str(folder))
