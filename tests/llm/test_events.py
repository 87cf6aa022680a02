"""What a stream shows: drafts, final blocks, whole characters, and a completion that is their sum."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from mezzotint import LLM, BlockEvent, Completion, DraftEvent, SamplingParams
from tests.llm.tiny import AR, ASKED, BOTH, BUDGET, CANVAS, CANVASES, CHAT, END, answer, fold, say, timeless


@pytest.mark.parametrize("params", ASKED.values(), ids=ASKED)
def test_an_answer_is_its_stream_folded(llm: LLM, params: SamplingParams) -> None:
    assert llm.tokenizer is not None
    for seed in (3, 4):
        asked = replace(params, seed=seed, ignore_eos=True)
        folded = fold(llm.stream(CHAT, asked))
        assert answer(llm, CHAT, asked) == timeless(folded.completion)
        assert folded.text == folded.completion.text
        assert folded.token_ids == folded.completion.token_ids
        assert folded.completion.text == llm.tokenizer.decode(folded.token_ids)
        assert len(folded.token_ids) == 20


@pytest.mark.parametrize("params", CANVASES.values(), ids=CANVASES)
def test_drafts_count_up_to_a_block_that_they_no_longer_change(llm: LLM, params: SamplingParams) -> None:
    *events, completion = llm.stream(CHAT, replace(params, ignore_eos=True))
    budget = params.steps or (32 if params.sampler == "refine" else BUDGET)
    for block, left in enumerate((20, 12, 4)):
        drafts: list[DraftEvent] = []
        while isinstance(event := events.pop(0), DraftEvent):
            drafts.append(event)
        assert isinstance(event, BlockEvent)
        assert {draft.block for draft in drafts} == {event.block} == {block}
        assert [draft.step for draft in drafts] == list(range(1, event.steps + 1))
        assert {draft.step_budget for draft in drafts} == {budget}
        assert 1 <= event.steps <= budget
        assert all(len(draft.token_ids) == len(draft.accepted) == CANVAS for draft in drafts)
        assert all(type(mark) is bool for draft in drafts for mark in draft.accepted)
        assert event.token_ids == drafts[-1].token_ids[:left], "the last draft is what comes out"
    assert all(isinstance(event, BlockEvent) and not event.token_ids for event in events)
    assert isinstance(completion, Completion)


def test_under_ar_every_block_is_a_token_and_there_are_no_drafts(llm: LLM) -> None:
    folded = fold(llm.stream(CHAT, replace(AR, ignore_eos=True)))
    blocks = [block for block in folded.blocks if block.token_ids]
    assert folded.drafts == []
    assert [block.block for block in blocks] == list(range(AR.max_tokens))
    assert {(len(block.token_ids), block.steps) for block in blocks} == {(1, 0)}


class Spelled(NamedTuple):
    """Tokens in which characters cross tokens, and where canvases of 8 end; how many of them are asked for."""

    tokens: list[int]
    asked: int
    text: str
    pieces: list[str]


@pytest.fixture
def spelled(llm: LLM) -> Callable[[str], Spelled]:
    assert llm.tokenizer is not None
    clef = llm.tokenizer.encode_text("𝄞")
    a, b = (llm.tokenizer.encode_text(letter)[0] for letter in "ab")
    assert len(clef) == 4, "the test needs a character of four tokens"
    tokens = [a] * 6 + clef + [b] * 3 + clef
    cases = {
        "a character crosses canvases": Spelled(tokens, 13, "aaaaaa𝄞bbb", ["aaaaaa", "𝄞bbb"]),
        "the limit cuts a character": Spelled(tokens, 15, "aaaaaa𝄞bbb\ufffd", ["aaaaaa", "𝄞bbb", "\ufffd"]),
        "the turn ends within one": Spelled([*tokens[:14], END], 16, "aaaaaa𝄞bbb\ufffd", ["aaaaaa", "𝄞bbb", "\ufffd"]),
    }
    return cases.__getitem__


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
@pytest.mark.parametrize(
    "case", ["a character crosses canvases", "the limit cuts a character", "the turn ends within one"]
)
def test_text_comes_in_whole_characters_and_what_is_left_of_one_comes_last(
    llm: LLM,
    monkeypatch: pytest.MonkeyPatch,
    spelled: Callable[[str], Spelled],
    case: str,
    params: SamplingParams,
) -> None:
    tokens, asked, text, pieces = spelled(case)
    say(llm, monkeypatch, tokens + [END + 300] * CANVAS)
    params = params if params.decoder == "ar" else replace(params, steps=1)
    folded = fold(llm.stream([5], replace(params, max_tokens=asked)))
    assert folded.completion.text == folded.text == text
    assert folded.completion.token_ids == folded.token_ids == tokens[:asked]
    if params.decoder == "diffusion":
        assert [block.text for block in folded.blocks] == pieces
    last = folded.blocks[-1]
    assert (last.token_ids == []) == text.endswith("\ufffd")
    if not last.token_ids:
        assert (last.block, last.steps, last.text) == (folded.blocks[-2].block, 0, "\ufffd")
