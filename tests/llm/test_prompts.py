"""Prompts of every kind in, completions in their order out; what is malformed is refused before any forward."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from mezzotint import LLM, SamplingParams
from mezzotint.model.assistant import AssistantNetwork
from mezzotint.model.assistant_weights import write_assistant
from mezzotint.model.config import parse_config
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.train.drafter import drafter_config
from mezzotint.train.lab import initialise
from tests.llm.tiny import AR, BOTH, CANVAS, CHAT, CONTEXT, DIFFUSION, V, answer, fold, timeless, watch


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_text_stands_behind_bos_and_a_chat_goes_through_the_template(llm: LLM, params: SamplingParams) -> None:
    assert llm.tokenizer is not None
    raw = [llm.tokenizer.bos_id, *llm.tokenizer.encode_text("Hello")]
    chat = llm.tokenizer.encode_rendered("<bos><|turn>user\nHello<turn|>\n<|turn>model\n")
    for prompt, ids in (("Hello", raw), (CHAT, chat)):
        assert llm.encode(prompt) == ids
        assert answer(llm, prompt, params) == answer(llm, ids, params)
        assert answer(llm, prompt, params).receipt.prompt_tokens == len(ids)
    assert answer(llm, "Hello", params).token_ids != answer(llm, CHAT, params).token_ids


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_prompts_of_every_kind_go_together_and_keep_their_order(llm: LLM, params: SamplingParams) -> None:
    prompts: Any = [CHAT, "Hello", [5, 6, 7], "", (9, 10), "Hello"]
    alone = [answer(llm, prompt, params) for prompt in prompts]
    assert [timeless(completion) for completion in llm.generate(prompts, params)] == alone
    assert len({tuple(completion.token_ids) for completion in alone}) == len(prompts) - 1


def test_every_id_of_the_vocabulary_may_stand_in_a_prompt(llm: LLM) -> None:
    assert len(answer(llm, [0, V - 1], replace(AR, max_tokens=1)).token_ids) == 1


def test_an_empty_text_is_bos_alone(llm: LLM) -> None:
    assert llm.encode("") == [2]
    assert answer(llm, "", AR) == answer(llm, [2], AR)


MALFORMED: dict[str, tuple[Any, str]] = {
    "no ids": ([], "the prompt has 0 tokens; give at least 1"),
    "a bool among ids": ([5, True], "a prompt holds True"),
    "an id behind the vocabulary": ([5, V], f"token id {V} lies outside"),
    "a negative id": ([-1], "token id -1 lies outside"),
    "nothing": (None, "a prompt is None"),
    "a number": (5, "a prompt is 5"),
    "bytes": (b"Hello", "a prompt is b'Hello'"),
    "a message without its list": (CHAT[0], "a prompt is {'role': 'user'"),
    "half a character": ("\ud800", "half a surrogate pair"),
    "a chat with an unknown role": ([{"role": "robot", "content": "x"}], "the role 'robot'"),
    "a text that is too long": ("word " * 200, f"exceed the context of {CONTEXT}"),
}


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize(("prompt", "words"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_prompt_is_refused_before_any_forward(
    llm: LLM, forwards: list[str], prompt: Any, words: str, params: SamplingParams
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        llm.generate(["Hello", prompt, CHAT], params)
    with pytest.raises(ValueError, match=re.escape(words)):
        llm.stream(prompt, params)  # before the first event is asked for
    assert forwards == []
    llm.generate("Hello", params)
    assert forwards[0] == "encode", "a forward would have been seen"


@pytest.mark.parametrize("nothing", [[], ()])
def test_no_prompt_at_all_is_refused(llm: LLM, nothing: Any) -> None:
    with pytest.raises(ValueError, match="prompts is empty; give at least one"):
        llm.generate(nothing, AR)


@pytest.mark.parametrize(
    ("params", "fits"),
    [
        (replace(AR, max_tokens=6), CONTEXT - 6),
        (replace(DIFFUSION, max_tokens=6, steps=1), CONTEXT - CANVAS),
        (replace(DIFFUSION, max_tokens=9, steps=1), CONTEXT - 2 * CANVAS),
    ],
)
def test_a_prompt_may_fill_the_context_and_not_exceed_it(
    llm: LLM, forwards: list[str], params: SamplingParams, fits: int
) -> None:
    params = replace(params, ignore_eos=True)
    with pytest.raises(ValueError, match=f"prompt of {fits + 1} tokens .* exceed the context of {CONTEXT}"):
        llm.generate([[5], [5] * (fits + 1)], params)
    assert forwards == []
    assert len(answer(llm, [5] * fits, params).token_ids) == params.max_tokens


def without(folder: Path, copy: Path, *names: str) -> LLM:
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(*names))
    return LLM(str(copy))


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_without_a_tokenizer_ids_work_and_text_is_refused_by_name(
    llm: LLM, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, params: SamplingParams
) -> None:
    bare = without(folder, tmp_path / "bare", "tokenizer*", "*.jinja")
    forwards = watch(bare, monkeypatch)
    refused: list[Any] = ["Hello", CHAT]
    for prompt in refused:
        with pytest.raises(ValueError, match=r"bare has no tokenizer\.json; give prompts as token ids"):
            bare.generate([[5], prompt], params)
    assert forwards == []
    folded = fold(bare.stream([5, 6], params))
    assert folded.token_ids == folded.completion.token_ids == answer(llm, [5, 6], params).token_ids
    assert folded.text == folded.completion.text == ""


def test_without_a_template_text_works_and_a_chat_is_refused_by_name(
    llm: LLM, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = without(folder, tmp_path / "base", "*.jinja")
    forwards, mixed = watch(base, monkeypatch), list[Any](["Hello", CHAT])
    with pytest.raises(ValueError, match="base has no chat template; give prompts as text or token ids"):
        base.generate(mixed, AR)
    assert forwards == []
    assert answer(base, "Hello", AR) == answer(llm, "Hello", AR)


def test_mtp_is_refused_before_any_work_where_the_checkpoint_has_no_drafter(llm: LLM, forwards: list[str]) -> None:
    with pytest.raises(ValueError, match=r"decoder is 'mtp', which needs a drafter, and .* has none; name one or use"):
        llm.generate([5, 6], replace(AR, decoder="mtp"))
    assert forwards == []


def test_mtp_takes_the_drafter_that_is_named_or_that_lies_beside_the_checkpoint(folder: Path, tmp_path: Path) -> None:
    beside, named = tmp_path / "model", tmp_path / "elsewhere"
    shutil.copytree(folder, beside)
    drafter = AssistantNetwork(drafter_config(LLM(str(beside)).model.config, guesses=2))
    for parameter in drafter.parameters():
        torch.nn.init.normal_(parameter, 0, 0.2, generator=torch.Generator().manual_seed(0))
    write_assistant(drafter, named, dtype=torch.float32)
    asked = replace(AR, decoder="mtp", ignore_eos=True)
    expected = answer(LLM(str(beside)), "Hello", replace(AR, ignore_eos=True))
    found = answer(LLM(str(beside), drafter=str(named)), "Hello", asked)
    assert found.token_ids == expected.token_ids
    assert found.receipt.draft_forwards > 0
    named.rename(tmp_path / "model-drafter")
    assert answer(LLM(str(beside)), "Hello", asked) == found


def test_gemma_4_runs_ar_and_refuses_what_needs_a_canvas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2, "vocab_size": 40}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "global_head_dim": 8}
    kinds = {"layer_types": ["sliding_attention", "full_attention"], "hidden_size_per_layer_input": 0}
    raw = {"model_type": "gemma4_text", **sizes, **heads, **kinds, "max_position_embeddings": 64}
    weights = initialise(DiffusionGemma(parse_config(raw)), seed=0).state_dict()
    stored = {f"model.{name}": value for name, value in weights.items() if "encoder" not in name}
    save_file(stored, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(raw))
    gemma = LLM(str(tmp_path))
    forwards = watch(gemma, monkeypatch)
    for params in (None, DIFFUSION, replace(AR, decoder="verified")):
        with pytest.raises(ValueError, match="is a gemma4 checkpoint without a canvas; use decoder 'ar' or"):
            gemma.generate([5, 6], params)
        with pytest.raises(ValueError, match="gemma4"):
            gemma.stream([5, 6], params)
    assert forwards == []
    completion = answer(gemma, [5, 6], replace(AR, ignore_eos=True))
    assert len(completion.token_ids) == AR.max_tokens
    assert forwards == ["encode"] * AR.max_tokens
