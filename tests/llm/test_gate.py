"""A gate in a whole checkpoint: what may be asked, and that one prompt and several get the same."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mezzotint import LLM, Chat
from mezzotint.decoding.alarms import GateLimits
from mezzotint.decoding.policy import SMALL_MODEL
from mezzotint.llm import Blank
from mezzotint.llm.checkpoint import read_bounds
from mezzotint.model.config import ConfigError
from tests.llm.tiny import CHAT, DIFFUSION, answer, timeless

GATED = {gate: replace(DIFFUSION, gate=gate, steps=2, ignore_eos=True) for gate in ("text", "causal")}


@pytest.mark.parametrize("gate", GATED)
def test_prompts_answered_at_once_get_what_each_gets_alone(llm: LLM, gate: str) -> None:
    prompts: list[Any] = [CHAT, "Once upon a time", [2, 30, 31]]
    params = GATED[gate]
    together = [timeless(each) for each in llm.generate(prompts, params)]
    assert together == [answer(llm, prompt, params) for prompt in prompts]
    assert any(each.receipt.interventions for each in together), "random weights write what alarms"


def test_a_receipt_counts_what_a_gate_took(llm: LLM, forwards: list[str]) -> None:
    completion = answer(llm, CHAT, GATED["causal"])
    receipt = completion.receipt
    assert len(forwards) == receipt.forwards + 1  # the prompt's
    assert forwards.count("denoise") == sum(receipt.denoise_steps)
    assert sum(receipt.block_tokens) == receipt.output_tokens == len(completion.token_ids)
    assert 0 < sum(each.forwards for each in receipt.interventions) < receipt.forwards


@pytest.mark.parametrize(
    ("prompt", "grammar", "message"),
    [
        (Chat(messages=CHAT, ends="}"), False, "ends is given, and gate is 'text', but a blank has no block to mend"),
        (
            CHAT,
            True,
            "gate is 'text', but under a grammar each token is held to it before it leaves; leave it at 'off'",
        ),
    ],
)
def test_where_a_gate_means_nothing_it_is_refused(llm: LLM, prompt: Any, grammar: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        llm.generate(prompt, GATED["text"], grammar=llm.grammars.from_choices(["yes"]) if grammar else None)


def test_blanks_have_no_gate(llm: LLM) -> None:
    with pytest.raises(ValueError, match="gate is 'text', which blanks do not use; leave it at 'off'"):
        llm.infill(["a", Blank(), "b"], replace(DIFFUSION, gate="text"))


def test_without_a_tokenizer_there_is_no_gate(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(folder, bare)
    (bare / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"nobody inspects the text, for which a checkpoint needs its tokenizer\.json"):
        LLM(str(bare), costs=SMALL_MODEL).generate([2, 30], GATED["text"])


def test_a_checkpoint_says_what_its_blocks_may_show(tmp_path: Path) -> None:
    assert read_bounds(tmp_path) == GateLimits()
    (tmp_path / "gate.json").write_text(json.dumps({"surprise": 3.5, "spikes": 0}))
    assert read_bounds(tmp_path) == GateLimits(surprise=3.5, spikes=0)
    (tmp_path / "gate.json").write_text(json.dumps({"surprize": 3.5}))
    with pytest.raises(ConfigError, match="surprize"):
        read_bounds(tmp_path)


def test_the_bounds_of_a_checkpoint_decide(folder: Path, tmp_path: Path) -> None:
    strict, loose = (tmp_path / name for name in ("strict", "loose"))
    for copy, bounds in ((strict, {"surprise": 0.01}), (loose, {"surprise": 1e6, "spike": 1e6, "doubt": 1e6})):
        shutil.copytree(folder, copy)
        (copy / "gate.json").write_text(json.dumps(bounds))
    kinds = [
        {kind for each in answer(llm, [2, 30], GATED["causal"]).receipt.interventions for kind in each.kinds}
        for llm in (LLM(str(path), costs=SMALL_MODEL) for path in (strict, loose))
    ]
    assert "surprise" in kinds[0]
    assert not {"surprise", "spikes", "unconverged"} & kinds[1]
