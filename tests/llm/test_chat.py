"""A Chat: tools and thinking reach the template, the turn may have begun, and a blank may have text behind it."""

from dataclasses import replace
from typing import Any

import pytest

from mezzotint import LLM, Chat
from tests.llm.tiny import AR, BOTH, CANVAS, CHAT, DIFFUSION, END, answer, fold, say

TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
PAD, FILL = 0, 1


def ids(llm: LLM, text: str) -> list[int]:
    assert llm.tokenizer is not None
    return llm.tokenizer.encode_text(text)


def test_tools_and_thinking_reach_the_template(llm: LLM) -> None:
    assert llm.tokenizer is not None
    text = llm.tokenizer.decode(llm.encode(Chat(messages=CHAT, tools=[TOOL], thinking=True)), keep_control=True)
    assert "<|think|>" in text
    assert "<|tool>declaration:find{" in text
    assert llm.encode(Chat(messages=CHAT)) == llm.encode(CHAT)


@pytest.mark.parametrize("params", BOTH.values(), ids=BOTH)
def test_an_answer_follows_what_its_turn_begins_with(llm: LLM, params: Any) -> None:
    begun = Chat(messages=CHAT, begins="Hello <turn|> th")
    assert llm.encode(begun) == llm.encode(CHAT) + ids(llm, "Hello <turn|> th")
    assert answer(llm, begun, params) == answer(llm, llm.encode(begun), params)


def test_only_what_fills_the_blank_comes_out(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    behind, (a, b) = ids(llm, " end"), ids(llm, "no")[:1] + ids(llm, "!")
    room = CANVAS - len(behind) - 1
    settled = [a, b, *[PAD] * (room - 2), *[5] * (CANVAS - room)]
    say(llm, monkeypatch, settled * 4)
    folded = fold(llm.stream(Chat(messages=CHAT, ends=" end"), DIFFUSION))
    assert folded.completion.token_ids == [a, b]
    assert folded.completion.text == folded.text == "no!"
    assert folded.completion.finish_reason == "stop"
    assert folded.completion.receipt.output_tokens == 2
    assert len(folded.completion.receipt.denoise_steps) == 1
    assert all(draft.token_ids[room:] == [*behind, END] for draft in folded.drafts)


def test_a_blank_is_no_larger_than_max_tokens(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    behind = ids(llm, " end")
    say(llm, monkeypatch, [9] * CANVAS * 4)
    folded = fold(llm.stream(Chat(messages=CHAT, ends=" end"), replace(DIFFUSION, max_tokens=3)))
    assert folded.completion.token_ids == [9] * 3
    assert folded.drafts[0].token_ids == [9] * 3 + [*behind, END] + [FILL] * (CANVAS - 4 - len(behind))


def test_text_behind_the_answer_needs_a_canvas_that_holds_it(llm: LLM, forwards: list[str]) -> None:
    with pytest.raises(ValueError, match="ends is given, but decoder 'ar' sees only what is before: use 'diffusion'"):
        llm.generate(Chat(messages=CHAT, ends="x"), AR)
    with pytest.raises(ValueError, match=f"and a canvas {CANVAS}; give at most {CANVAS - 1}"):
        llm.generate(Chat(messages=CHAT, ends="1234567890"), DIFFUSION)
    assert forwards == []
