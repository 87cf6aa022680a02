"""Stop strings and bounded thoughts, in text: what an answer says, what leaves when, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mezzotint import LLM, Chat, SamplingParams
from tests.llm.tiny import AR, ASKED, BOTH, CANVAS, CHAT, DIFFUSION, answer, fold, say, timeless

SURE = {"ar": replace(AR, max_tokens=40), "diffusion": replace(DIFFUSION, max_tokens=40, steps=1)}


def ids(llm: LLM, text: str) -> list[int]:
    """What a model writes that says `text`, control tokens spelled out."""
    assert llm.tokenizer is not None
    return llm.tokenizer.encode_rendered(text)


def tell(llm: LLM, monkeypatch: pytest.MonkeyPatch, text: str, params: SamplingParams, **options: Any) -> Any:
    """The stream of a model that is sure of `text`, and of nonsense behind it."""
    with monkeypatch.context() as patch:
        say(llm, patch, [*ids(llm, text), *range(900, 1000)])
        return fold(llm.stream([5], params, **options))


@pytest.mark.parametrize("name", ASKED)
def test_an_answer_is_the_whole_one_up_to_the_string(llm: LLM, name: str) -> None:
    params = replace(ASKED[name], ignore_eos=True)
    whole = answer(llm, CHAT, params)
    for first, size in ((0, 1), (3, 2), (len(whole.text) // 2, 9), (len(whole.text) - 4, 4)):
        stop = whole.text[first : first + size]
        if "\ufffd" in stop:
            continue
        [completion] = llm.generate(CHAT, params, stop=("never written", stop))
        folded = fold(llm.stream(CHAT, params, stop=["never written", stop]))
        assert timeless(folded.completion) == timeless(completion)
        assert folded.text == completion.text == whole.text.split(stop)[0]
        assert (completion.finish_reason, completion.stop_reason) == ("stop", stop)
        kept = len(completion.token_ids)
        assert completion.token_ids == whole.token_ids[:kept]
        assert llm.tokenizer is not None
        assert stop in llm.tokenizer.decode(whole.token_ids[:kept])
        assert stop not in llm.tokenizer.decode(whole.token_ids[: kept - 1])
        assert completion.receipt.output_tokens == kept


@pytest.mark.parametrize("name", ASKED)
def test_a_string_that_is_never_written_changes_nothing(llm: LLM, name: str) -> None:
    params = ASKED[name]
    [completion] = llm.generate(CHAT, params, stop="never written")
    assert timeless(completion) == answer(llm, CHAT, params)
    assert completion.stop_reason is None


@pytest.mark.parametrize("name", ["ar", "verified", "as the checkpoint says", "ddim"])
def test_each_of_several_prompts_stops_where_it_stops_alone(llm: LLM, name: str) -> None:
    params, prompts = replace(ASKED[name], ignore_eos=True), [CHAT, "Hello", [5, 6, 7], [*range(30, 60)]]
    stops = [text[5:7] for each in llm.generate(prompts, params) if "\ufffd" not in (text := each.text)[5:7]]
    together = llm.generate(prompts, params, stop=stops)
    alone = [timeless(llm.generate(prompt, params, stop=stops)[0]) for prompt in prompts]
    assert [timeless(each) for each in together] == alone
    assert {each.finish_reason for each in together} >= {"stop"}


@pytest.mark.parametrize("params", SURE.values(), ids=SURE)
def test_what_may_be_the_beginning_of_a_string_is_held_back_until_it_is_not(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, params: SamplingParams
) -> None:
    text = "one\ntwo\nEnd\nEN a\n\nE"
    told = tell(llm, monkeypatch, text + "\nEND and more", params, stop="\nEND")
    assert told.completion.text == told.text == text
    assert told.completion.stop_reason == "\nEND"
    after, seen = "", ""
    assert llm.tokenizer is not None
    for block in told.blocks:
        after, seen = after + block.text, seen + llm.tokenizer.decode(block.token_ids)
        if "\nEND" not in seen:
            held = next(size for size in (3, 2, 1, 0) if seen.endswith("\nEND"[:size]))
            assert after == seen[: len(seen) - held]


@pytest.mark.parametrize("params", SURE.values(), ids=SURE)
def test_what_was_held_back_in_vain_leaves_at_the_end(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, params: SamplingParams
) -> None:
    told = tell(llm, monkeypatch, "one EN<turn|>", params, stop=" END")
    assert told.completion.text == told.text == "one EN"
    assert (told.completion.finish_reason, told.completion.stop_reason) == ("stop", None)
    assert (told.blocks[-1].text, told.blocks[-1].token_ids) == (" EN", [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    text=st.text(st.sampled_from("ab é☃𝄞"), max_size=8),
    stops=st.lists(st.text(st.sampled_from("ab é☃𝄞"), min_size=1, max_size=3), min_size=1, max_size=3),
    name=st.sampled_from(sorted(SURE)),
)
def test_of_any_text_what_streams_is_what_stands_before_the_first_string(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, text: str, stops: list[str], name: str
) -> None:
    told = tell(llm, monkeypatch, f"{text}<turn|>", SURE[name], stop=stops)
    ends = [text.index(stop) + len(stop) for stop in stops if stop in text]
    found = max((stop for stop in stops if text[: min(ends, default=0)].endswith(stop)), key=len, default=None)
    before = text if found is None else text[: min(ends) - len(found)]
    assert "".join(block.text for block in told.blocks) == told.completion.text == before
    assert told.completion.stop_reason == found


@pytest.mark.parametrize("params", SURE.values(), ids=SURE)
def test_a_string_is_found_in_thoughts_too_and_a_reply_ends_before_it(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, params: SamplingParams
) -> None:
    text = "<|channel>thought\nLet me see.<channel|>The answer is 12.\nQuestion: what<turn|>"
    for stop, content, reasoning in (
        ("\nQuestion:", "The answer is 12.", "Let me see."),
        ("answer is 12", "The ", "Let me see."),
        ("me", "", "Let "),
        ("see.The", "", "Let me "),
        ("thought", "", ""),
    ):
        told = tell(llm, monkeypatch, text, params, stop=stop)
        found = llm.parse(told.completion)
        assert told.completion.stop_reason == stop
        assert (found.content, found.reasoning) == (content, reasoning)


def test_a_string_inside_a_blank_ends_what_fills_it(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Chat(messages=CHAT, ends=" end")
    with monkeypatch.context() as patch:
        say(llm, patch, [*ids(llm, "abcd"), *[0] * 100])
        [completion] = llm.generate(chat, replace(DIFFUSION, steps=1), stop="bc")
    assert (completion.text, completion.finish_reason, completion.stop_reason) == ("a", "stop", "bc")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"stop": ""}, "stop holds an empty string"),
        ({"stop": ["a"] * 17}, "stop has 17 strings; give at most 16"),
        ({"stop": "a" * 257}, "stop holds a string of 257 characters; give at most 256"),
        ({"stop": None}, "stop is None; give a string or several"),
    ],
)
def test_what_can_be_no_stop_string_is_refused_before_any_work(
    llm: LLM, forwards: list[str], options: dict[str, Any], told: str
) -> None:
    for ask in (llm.generate, llm.stream):
        with pytest.raises(ValueError, match=told):
            ask(CHAT, AR, **options)
    assert forwards == []


def test_a_stop_string_is_refused_with_a_grammar_with_min_tokens_and_without_text(
    llm: LLM, folder: Path, tmp_path: Path, forwards: list[str]
) -> None:
    with pytest.raises(ValueError, match="stop strings are given, but a grammar's answer has to be whole"):
        llm.generate(CHAT, AR, stop="a", grammar=llm.grammars.from_regex("[ab]+"))
    with pytest.raises(ValueError, match="min_tokens is 2, but a stop string may come before so many"):
        llm.generate([CHAT, CHAT], replace(AR, min_tokens=2), stop="a")
    assert forwards == []
    for file in folder.iterdir():
        if not file.name.startswith("tokenizer") and file.name != "chat_template.jinja":
            (tmp_path / file.name).symlink_to(file)
    with pytest.raises(ValueError, match=r"has no tokenizer.json, and stop strings are text; add the file"):
        LLM(str(tmp_path)).generate([5, 6], AR, stop="a")


THOUGHTS = "<|channel>thought\nLet me see, that is not so easy at all, is it, and who knows?<channel|>Yes.<turn|>"


@pytest.mark.parametrize("params", SURE.values(), ids=SURE)
@pytest.mark.parametrize("budget", [0, 1, 3, 6, 7, 8, 14])
def test_thoughts_that_had_to_close_never_become_content(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, params: SamplingParams, budget: int
) -> None:
    told = tell(llm, monkeypatch, THOUGHTS, replace(params, thinking_budget=budget))
    close = llm.limits.channel.closing if llm.limits.channel else -1
    written = ids(llm, THOUGHTS)
    assert told.token_ids[: budget + 2] == [*written[: budget + 1], close]
    found = llm.parse(told.completion)
    assert found.content == llm.tokenizer.decode(told.token_ids[budget + 2 :])  # type: ignore[union-attr]
    assert "Let me see, that is not so easy at all, is it, and who knows?".startswith(found.reasoning)
    assert told.completion.receipt.forced_tokens == 1


@pytest.mark.parametrize("params", SURE.values(), ids=SURE)
def test_an_answer_that_ends_within_a_thought_has_no_content(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, params: SamplingParams
) -> None:
    for budget in (None, 30):
        for most in (1, 4, CANVAS, 12):
            told = tell(llm, monkeypatch, THOUGHTS, replace(params, max_tokens=most, thinking_budget=budget))
            assert llm.parse(told.completion).content == ""
            assert told.completion.finish_reason == "length"


@pytest.mark.parametrize("params", SURE.values(), ids=SURE)
@pytest.mark.parametrize("begun", ["<|channel>", "<|channel>thought\n", "<|channel>thought\nLet me"])
def test_thoughts_that_the_prompt_has_opened_never_become_content(
    llm: LLM, monkeypatch: pytest.MonkeyPatch, params: SamplingParams, begun: str
) -> None:
    prompt: Sequence[int] = [2, 5, *ids(llm, begun)]
    rest = ids(llm, "<|channel>thought\nLet me see.<channel|>Yes.<turn|>".removeprefix(begun))
    for bound in (None, 2):
        with monkeypatch.context() as patch:
            say(llm, patch, [*rest, *range(900, 1000)])
            [completion] = llm.generate(prompt, replace(params, thinking_budget=bound))
        assert list(completion.opened) == ids(llm, begun)
        assert llm.tokenizer is not None
        thoughts = completion.token_ids.index(llm.tokenizer.control["<channel|>"])
        assert thoughts == bound or bound is None
        assert llm.parse(completion).content == llm.tokenizer.decode(completion.token_ids[thoughts:])
    assert answer(llm, [2, 5], params).opened == ()


def test_ends_and_bounds_on_thinking_exclude_each_other(llm: LLM) -> None:
    with pytest.raises(ValueError, match="ends is given together with a bound on thinking"):
        llm.generate(Chat(messages=CHAT, ends="x"), replace(DIFFUSION, answer_reserve=2))


@pytest.mark.parametrize("decoder", ["ar", "verified", "diffusion"])
def test_bounded_prompts_get_together_what_they_get_alone(llm: LLM, decoder: Any) -> None:
    base = BOTH.get(decoder, AR)
    params = replace(base, decoder=decoder, max_tokens=20, thinking_budget=3, answer_reserve=4, ignore_eos=True)
    prompts: list[Any] = [CHAT, [2, 5, *ids(llm, "<|channel>")], [2, 5, *ids(llm, "<|channel>thought\nHm")], "Hello"]
    together = [timeless(each) for each in llm.generate(prompts, params)]
    assert together == [answer(llm, prompt, params) for prompt in prompts]
    assert [each.receipt.forced_tokens for each in together[1:3]] == [1, 1]


def test_the_checkpoint_knows_how_thoughts_and_turns_end(llm: LLM) -> None:
    assert llm.tokenizer is not None
    control = llm.tokenizer.control
    assert llm.limits.turn_id == control["<turn|>"]
    assert llm.limits.channel == (control["<|channel>"], control["<channel|>"], (control["<|tool_call>"],))
