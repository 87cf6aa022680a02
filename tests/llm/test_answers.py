"""How long an answer is, what repeats it, what it cost, and that no other one disturbs it."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint import LLM, SamplingParams
from mezzotint.llm import Event
from tests.llm.tiny import (
    AR,
    ASKED,
    BOTH,
    BUDGET,
    CANVAS,
    CHAT,
    DIFFUSION,
    END,
    answer,
    fold,
    say,
    timeless,
    timeless_event,
    write,
)


@pytest.mark.parametrize("tokens", [1, 7, 8, 9, 20])
@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_who_ignores_end_tokens_gets_exactly_the_tokens_asked_for(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, params: SamplingParams, tokens: int
) -> None:
    say(llm, monkeypatch, [END] * 200)
    completion = answer(llm, [5, 6], replace(params, max_tokens=tokens, steps=None, ignore_eos=True))
    assert completion.token_ids == [END] * tokens
    assert completion.finish_reason == "length"
    assert completion.text == ""


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_an_end_token_ends_an_answer_and_is_its_last(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, params: SamplingParams
) -> None:
    say(llm, monkeypatch, [*range(300, 309), END, *range(400, 480)])
    params = params if params.decoder == "ar" else replace(params, steps=1)
    completion = answer(llm, [5, 6], params)
    assert completion.token_ids == [*range(300, 309), END]
    assert completion.finish_reason == "stop"
    assert llm.tokenizer is not None
    assert completion.text == llm.tokenizer.decode(range(300, 309))


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_a_seed_repeats_an_answer_and_another_one_does_not(llm: LLM, params: SamplingParams) -> None:
    first = answer(llm, CHAT, params)
    assert answer(llm, CHAT, params) == first
    assert first.receipt.seed == params.seed
    assert answer(llm, CHAT, replace(params, seed=4)).token_ids != first.token_ids


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_without_a_seed_the_receipt_tells_one_that_repeats_the_answer(llm: LLM, params: SamplingParams) -> None:
    unseeded = replace(params, seed=None)
    one, two = llm.generate([CHAT, CHAT], unseeded)
    three = fold(llm.stream(CHAT, unseeded)).completion
    assert len({completion.receipt.seed for completion in (one, two, three)}) == 3
    for completion in (one, two, three):
        assert answer(llm, CHAT, replace(params, seed=completion.receipt.seed)) == timeless(completion)


@pytest.mark.parametrize("params", ASKED.values(), ids=ASKED)
def test_a_receipt_counts_the_forwards_that_ran(llm: LLM, forwards: list[str], params: SamplingParams) -> None:
    folded = fold(llm.stream(CHAT, replace(params, ignore_eos=True)))
    receipt = folded.completion.receipt
    encodes, denoises = forwards.count("encode"), forwards.count("denoise")
    assert (receipt.prompt_tokens, receipt.output_tokens) == (len(llm.encode(CHAT)), 20)
    assert (receipt.decoder, receipt.seed) == (params.decoder, 3)
    assert receipt.tokens_per_forward == 20 / receipt.forwards
    assert receipt.prefill_s > 0
    assert receipt.generation_s > 0
    if params.decoder == "verified":
        assert receipt.forwards == denoises + encodes, "the prompt's forward yields the first token"
        assert receipt.denoise_steps == tuple(block.steps for block in folded.blocks if block.token_ids)
        assert receipt.block_tokens == tuple(len(block.token_ids) for block in folded.blocks if block.token_ids)
        assert sum(receipt.denoise_steps) == denoises == len(folded.drafts) > 0
        assert 0 <= receipt.accepted_tokens <= receipt.drafted_tokens > 0
        assert (receipt.step_budget, receipt.draft_forwards) == (params.draft_steps or 4, 0)
        assert {draft.step_budget for draft in folded.drafts} == {receipt.step_budget}
    elif params.decoder == "ar":
        assert receipt.forwards == encodes == 20, "the prompt's forward yields the first token"
        assert (receipt.sampler, receipt.denoise_steps, receipt.block_tokens) == (None, (), ())
        assert (receipt.step_budget, receipt.canvas_length, receipt.entropy_bound) == (0, 0, None)
    else:
        assert receipt.forwards == denoises + encodes - 1, "the prompt's forward is not among them"
        assert receipt.denoise_steps == tuple(block.steps for block in folded.blocks if block.token_ids)
        assert sum(receipt.denoise_steps) == denoises == len(folded.drafts)
        assert receipt.block_tokens == (8, 8, 4)
        assert receipt.canvas_length == CANVAS


@pytest.mark.parametrize(
    ("params", "ran"),
    [
        (DIFFUSION, ("report", BUDGET, 4.0)),
        (replace(DIFFUSION, sampler="hf"), ("hf", BUDGET, 4.0)),
        (replace(DIFFUSION, steps=2, entropy_bound=0.5), ("report", 2, 0.5)),
        (replace(DIFFUSION, sampler="refine"), ("refine", 32, None)),
        (replace(DIFFUSION, sampler="ddim", steps=2), ("ddim", 2, None)),
    ],
)
def test_the_checkpoints_numbers_run_unless_the_request_names_others(
    llm: LLM, params: SamplingParams, ran: tuple[str, int, float | None]
) -> None:
    receipt = answer(llm, [5, 6], params).receipt
    assert (receipt.sampler, receipt.step_budget, receipt.entropy_bound) == ran
    sampler = llm.sampler(params)
    assert (sampler.name, sampler.budget) == ran[:2]


@pytest.mark.parametrize("law", [{"temperature": 0.0}, {}, {"temperature": 0.7, "top_k": 50, "top_p": 0.9}], ids=str)
def test_verified_answers_as_ar_does_whatever_it_drafts(llm: LLM, law: dict[str, Any]) -> None:
    plain = replace(AR, max_tokens=20, **law)
    options: list[dict[str, Any]] = [{}, {"draft_steps": 1, "draft_tokens": 3, "draft_tail": "tail"}]
    for drafts in options:
        verified = answer(llm, CHAT, replace(plain, decoder="verified", **drafts))
        expected = answer(llm, CHAT, plain)
        assert (verified.text, verified.token_ids) == (expected.text, expected.token_ids)
        assert verified.finish_reason == expected.finish_reason


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_two_checkpoints_in_one_process_do_not_disturb_each_other(
    llm: LLM, tmp_path: Path, params: SamplingParams
) -> None:
    params = replace(params, ignore_eos=True)
    alone = list(map(timeless_event, llm.stream(CHAT, params)))
    stream = llm.stream(CHAT, params)
    events = list(islice(stream, 3))
    other = LLM(str(write(tmp_path / "other", seed=1)))
    others_alone = list(map(timeless_event, other.stream(CHAT, params)))
    others = other.stream(CHAT, params)
    others_events = []
    while event := next(stream, None):
        events.append(event)
        others_events += list(islice(others, 1))
    assert list(map(timeless_event, events)) == alone
    assert list(map(timeless_event, [*others_events, *others])) == others_alone
    assert alone[:-1] != others_alone[:-1]


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_two_answers_of_one_checkpoint_may_grow_side_by_side(llm: LLM, params: SamplingParams) -> None:
    params = replace(params, ignore_eos=True)
    prompts: list[Any] = [CHAT, "Hello"]
    alone = [list(map(timeless_event, llm.stream(prompt, params))) for prompt in prompts]
    first, second = (llm.stream(prompt, params) for prompt in prompts)
    grown: list[list[Event]] = [[], []]
    for _ in range(200):
        grown[0] += islice(first, 1)
        grown[1] += islice(second, 2)
    assert [list(map(timeless_event, events)) for events in grown] == alone


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize("leave", ["close", "forget", "fail"])
def test_a_stream_may_be_abandoned(llm: LLM, params: SamplingParams, leave: str) -> None:
    expected = answer(llm, CHAT, params)
    stream: Any = llm.stream(CHAT, params)
    next(stream)
    assert torch.is_grad_enabled(), "between two events torch is as the caller left it"
    assert not torch.is_inference_mode_enabled()
    if leave == "close":
        stream.close()
    elif leave == "fail":
        with pytest.raises(KeyboardInterrupt):
            stream.throw(KeyboardInterrupt())
    del stream
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert answer(llm, CHAT, params) == expected


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_no_forward_keeps_anything_for_gradients(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, params: SamplingParams
) -> None:
    modes: list[bool] = []
    run = llm.model.embed

    def embed(ids: Tensor) -> Tensor:
        modes.append(torch.is_inference_mode_enabled())
        return run(ids)

    monkeypatch.setattr(llm.model, "embed", embed)
    llm.generate(CHAT, params)
    assert len(modes) > 3
    assert all(modes)
