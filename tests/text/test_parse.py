"""Replies from ids and back: round trips, what templates write, every malformed form, and pieces as they arrive."""

import json
from itertools import pairwise
from typing import Any

import pytest
import tokenizers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models

from mezzotint.text.parse import Reply, ReplyParser, ToolCall, encode_reply, end_of_reply, find_channel, parse_reply
from mezzotint.text.tokenizer import Tokenizer
from tests.text.conftest import Checkpoint

MARKS = ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>', "<turn|>", "<|tool_response>")
TEXT = st.lists(
    st.sampled_from((*MARKS, "thought\n")) | st.text(st.characters(exclude_categories=["Cs"])), max_size=4
).map("".join)
KEYS = st.from_regex(r"\A[a-z_0-9]{1,6}\Z")
VALUES = st.recursive(
    TEXT | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.builds(ToolCall, st.from_regex(r"\A[a-zA-Z_.-]{1,12}\Z"), st.dictionaries(KEYS, VALUES, max_size=3))
REPLIES = st.builds(Reply, TEXT, TEXT, st.lists(CALLS, max_size=2).map(tuple))
fixtures_once = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(scope="module")
def tokenizer(lab: Checkpoint) -> Tokenizer:
    return lab.tokenizer


def read(text: str, tokenizer: Tokenizer) -> Reply:
    """Parse a reply in which control tokens are spelled out."""
    return parse_reply(tokenizer.encode_rendered(text), tokenizer)


def whole(reply: Reply) -> tuple[Any, ...]:
    """A reply to compare, its faults too."""
    return reply.content, reply.reasoning, reply.calls, reply.faults


def spelled(reply: Reply) -> str:
    """A reply as text that tells 1, 1.0 and true apart."""
    return json.dumps([reply.content, reply.reasoning, reply.calls], sort_keys=True)


def reading(
    content: str = "", reasoning: str = "", calls: tuple[ToolCall, ...] = (), faults: tuple[str, ...] = ()
) -> tuple[Any, ...]:
    return content, reasoning, calls, faults


def test_a_reply_is_written_in_the_models_own_syntax(tokenizer: Tokenizer) -> None:
    call = ToolCall("find_route", {"to": "Torvel", "at": 3})
    ids = encode_reply(Reply("Wait.", "A route.", (call, call)), tokenizer)
    written = '<|tool_call>call:find_route{at:3,to:<|"|>Torvel<|"|>}<tool_call|>'
    expected = f"<|channel>thought\nA route.<channel|>Wait.{written}{written}"
    assert tokenizer.decode(ids, keep_control=True) == expected


@fixtures_once
@given(reply=REPLIES)
def test_what_is_written_reads_back_the_same(tokenizer: Tokenizer, reply: Reply) -> None:
    ids = encode_reply(reply, tokenizer)
    for back in (ids, [*ids, end_of_reply(reply, tokenizer), tokenizer.eos_id, tokenizer.pad_id]):
        found = parse_reply(back, tokenizer)
        assert spelled(found) == spelled(reply)
        assert found.faults == ()


@fixtures_once
@given(content=TEXT, reasoning=TEXT)
def test_spelled_control_tokens_stay_text(tokenizer: Tokenizer, content: str, reasoning: str) -> None:
    reply = Reply(content, reasoning, (ToolCall("f", {"a": content}),))
    ids = encode_reply(reply, tokenizer)
    control = [id for id in ids if id in tokenizer.control_ids]
    assert len(control) == 4 + (2 if reasoning else 0)


def test_calls_wait_for_responses_and_words_end_the_turn(tokenizer: Tokenizer) -> None:
    assert end_of_reply(Reply("x"), tokenizer) == tokenizer.control["<turn|>"]
    assert end_of_reply(Reply(), tokenizer) == tokenizer.control["<turn|>"]
    assert end_of_reply(Reply("x", calls=(ToolCall("f", {}),)), tokenizer) == tokenizer.control["<|tool_response>"]


def rendered(checkpoint: Checkpoint, message: dict[str, Any]) -> list[int]:
    """What the template writes for an assistant's message, between the generation prompt and the end of the turn."""
    user = {"role": "user", "content": "Go."}
    prompt = checkpoint.template.encode([user], thinking=True)
    ids = checkpoint.template.encode([user, message], thinking=True, add_generation_prompt=False)
    assert ids[: len(prompt)] == prompt
    end = len(ids) - 1 - ids[::-1].index(checkpoint.tokenizer.control["<turn|>"])
    return ids[len(prompt) : end]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"to": "Torvel", "at": 3},
        {"b": "", "a": "<|\"|> and <turn|> and 'quotes' \"\n", "_c": "naïve 日本 😀"},
        {"x": [1, -2.5, 1e16, 1e-7, "two", True], "y": {"b": {"c": []}, "a": False}, "z": {}},
        {"first name": 1, "2nd": -0.0},
    ],
)
def test_calls_are_written_as_the_chat_template_writes_them(checkpoint: Checkpoint, arguments: dict[str, Any]) -> None:
    calls = (ToolCall("find_route", arguments), ToolCall("book", {}))
    functions = [{"function": {"name": call.name, "arguments": dict(call.arguments)}} for call in calls]
    expected = rendered(checkpoint, {"role": "assistant", "tool_calls": functions})
    assert encode_reply(Reply(calls=calls), checkpoint.tokenizer) == expected


def test_null_and_capital_keys_are_written_as_the_bundled_template_writes_them(lab: Checkpoint) -> None:
    arguments = {"b": None, "Z": [None], "a": {"y": 1, "X": 2}}
    functions = [{"function": {"name": "f", "arguments": arguments}}]
    expected = rendered(lab, {"role": "assistant", "tool_calls": functions})
    assert encode_reply(Reply(calls=(ToolCall("f", arguments),)), lab.tokenizer) == expected


@pytest.mark.parametrize("content", ["Hello, Torvel.", "12", "<turn|> is a token", "naïve 日本 😀", "two\nlines"])
def test_words_are_written_as_the_chat_template_writes_them(checkpoint: Checkpoint, content: str) -> None:
    expected = rendered(checkpoint, {"role": "assistant", "content": content})
    assert encode_reply(Reply(content), checkpoint.tokenizer) == expected


def test_an_empty_channel_is_no_fault(checkpoint: Checkpoint) -> None:
    """Gemma writes one where thinking is off."""
    assert whole(read("<|channel>thought\n<channel|>Hi.<turn|>", checkpoint.tokenizer)) == reading("Hi.")


CALL_F = ToolCall("f", {"a": 1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", reading()),
        ("<turn|>", reading()),
        ("Hi.<turn|><eos><eos><pad>", reading("Hi.")),
        ("<|tool_call>call:f{a:1}<tool_call|><turn|>", reading(calls=(CALL_F,))),
        ("<|tool_call>call:f{a:1}<tool_call|><|tool_response><eos>", reading(calls=(CALL_F,))),
        ("Hi<|tool_call>call:f{a:1}<tool_call|> you", reading("Hi you", calls=(CALL_F,))),
        ("<|tool_call>call:f{a:1}", reading(calls=(CALL_F,), faults=("A call has no end.",))),
        ("<|tool_call>call:f{a:1}<|tool_response>", reading(calls=(CALL_F,), faults=("A call has no end.",))),
        (
            "<|tool_call>call:f{a:1}<|tool_call>call:f{a:1}<tool_call|>",
            reading(calls=(CALL_F, CALL_F), faults=("A call has no end.",)),
        ),
        (
            "<|tool_call>f{a:1,}<tool_call|>",
            reading(
                calls=(CALL_F,),
                faults=("A call does not begin with call:.", "A comma stands before a closing bracket."),
            ),
        ),
        (
            '<|tool_call>call:f{a:<|"|>Tor',
            reading('<|tool_call>call:f{a:<|"|>Tor', faults=("A call has no end.", "A call cannot be understood.")),
        ),
        (
            "Hi <|tool_call>find it<tool_call|> you",
            reading("Hi <|tool_call>find it<tool_call|> you", faults=("A call cannot be understood.",)),
        ),
        (
            "<|tool_call>call:f<pad>{a:1}<tool_call|>",
            reading(calls=(CALL_F,), faults=("The control token <pad> stands where it does not belong.",)),
        ),
        ("<|channel>thought\nHm", reading("", "Hm", faults=("The thoughts have no end.",))),
        ("<|channel>thought\nHm<turn|>", reading("", "Hm", faults=("The thoughts have no end.",))),
        (
            "<|channel>thought\nHm<|tool_call>call:f{a:1}<tool_call|>",
            reading("", "Hm", (CALL_F,), ("The thoughts have no end.",)),
        ),
        (
            "<|channel>Hm<channel|>Hi",
            reading("Hi", "Hm", faults=("Thoughts do not begin with thought and a new line.",)),
        ),
        (
            "<|channel>thought Hm<channel|>",
            reading("", "Hm", faults=("Thoughts do not begin with thought and a new line.",)),
        ),
        (
            "<|channel>thoughtful<channel|>",
            reading("", "thoughtful", faults=("Thoughts do not begin with thought and a new line.",)),
        ),
        (
            "<|channel>thought<channel|>Hi",
            reading("Hi", faults=("Thoughts do not begin with thought and a new line.",)),
        ),
        (
            "<|channel><channel|>Hi",
            reading("Hi", faults=("Thoughts do not begin with thought and a new line.",)),
        ),
        (
            "Hi<|channel>thought\nHm<channel|> you",
            reading("Hi you", "Hm", faults=("Thoughts do not stand at the beginning.",)),
        ),
        (
            "<|channel>thought\na<channel|><|channel>thought\nb<channel|>",
            reading("", "a\nb", faults=("Thoughts do not stand at the beginning.",)),
        ),
        (
            "<|channel>thought\na<|channel>thought\nb<channel|>",
            reading("", "a\nb", faults=("The thoughts have no end.", "Thoughts do not stand at the beginning.")),
        ),
        ("Hi<channel|>", reading("Hi", faults=("The control token <channel|> stands where it does not belong.",))),
        ("Hi<tool_call|>", reading("Hi", faults=("The control token <tool_call|> stands where it does not belong.",))),
        ('<|"|>Hi', reading("Hi", faults=('The control token <|"|> stands where it does not belong.',))),
        ("<pad>Hi<pad>", reading("Hi", faults=("The control token <pad> stands where it does not belong.",))),
        ("a<turn|>b<turn|>c", reading("abc", faults=("Something stands behind the end of the reply.",))),
        (
            "<turn|><|tool_call>call:f{a:1}<tool_call|>",
            reading(calls=(CALL_F,), faults=("Something stands behind the end of the reply.",)),
        ),
    ],
)
def test_a_turn_is_read_with_a_fault_for_each_form_it_should_not_have(
    tokenizer: Tokenizer, text: str, expected: tuple[Any, ...]
) -> None:
    assert whole(read(text, tokenizer)) == expected


def test_an_id_that_no_vocabulary_has_is_a_fault(tokenizer: Tokenizer) -> None:
    hi = tokenizer.encode_text("Hi")
    reply = parse_reply([-1, *hi, 10**9], tokenizer)
    assert reply.content == "Hi"
    assert reply.faults == (
        "Token id -1 is not in the vocabulary, which ends at 2047.",
        "Token id 1000000000 is not in the vocabulary, which ends at 2047.",
    )


def test_a_tokenizer_without_the_control_tokens_gives_text_and_writes_no_call() -> None:
    import tokenizers

    vocabulary = tokenizers.Tokenizer(tokenizers.models.BPE())
    vocabulary.decoder = tokenizers.decoders.ByteLevel()
    vocabulary.add_special_tokens(["<bos>", "<eos>", "<pad>"])
    vocabulary.add_tokens(["Hi"])
    plain = Tokenizer(vocabulary)
    assert whole(parse_reply([*plain.encode_text("Hi"), plain.eos_id], plain)) == reading("Hi")
    for reply in (Reply(calls=(CALL_F,)), Reply(reasoning="Hi")):
        with pytest.raises(ValueError, match="has no control token"):
            encode_reply(reply, plain)
    with pytest.raises(ValueError, match=r"has no control token <turn\|>"):
        end_of_reply(Reply("Hi"), plain)


IDS = st.lists(st.integers(0, 19) | st.integers(-1, 2048), max_size=40)
LIKELY = st.lists(
    st.sampled_from((*MARKS, *"<eos> <pad> thought\n thou call:f{ a: 1 , } Hi é [ True".split(" "))), max_size=20
).map("".join)


@fixtures_once
@given(ids=IDS)
def test_no_sequence_of_ids_is_an_error(tokenizer: Tokenizer, ids: list[int]) -> None:
    parse_reply(ids, tokenizer)


def test_deep_nesting_is_no_error(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_rendered("<|tool_call>call:f{a:" + "[" * 20_000 + "<tool_call|>")
    assert parse_reply(ids, tokenizer).faults == ("A call cannot be understood.",)


@fixtures_once
@given(text=LIKELY, cuts=st.lists(st.integers(0, 60), max_size=4), extra=IDS)
def test_pieces_joined_are_the_whole_whatever_the_blocks(
    tokenizer: Tokenizer, text: str, cuts: list[int], extra: list[int]
) -> None:
    ids = tokenizer.encode_rendered(text) + extra
    edges = [0, *sorted(min(cut, len(ids)) for cut in cuts), len(ids)]
    parser = ReplyParser(tokenizer)
    pieces = [parser.push(ids[start:end]) for start, end in pairwise(edges)]
    pieces.append(parser.flush())
    joined = Reply()
    for piece in pieces:
        joined = Reply(*(before + new for before, new in zip(whole(joined), whole(piece), strict=True)))
    assert whole(joined) == whole(parse_reply(ids, tokenizer))


def test_a_call_comes_once_and_whole_when_its_end_comes(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_rendered('Hi<|tool_call>call:f{a:<|"|>é<|"|>}<tool_call|>')
    parser = ReplyParser(tokenizer)
    pieces = [parser.push([id]) for id in ids]
    assert "".join(piece.content for piece in pieces) == "Hi"
    assert [index for index, piece in enumerate(pieces) if piece.calls] == [len(ids) - 1]
    assert pieces[-1].calls == (ToolCall("f", {"a": "é"}),)
    assert whole(parser.flush()) == reading()


def test_thoughts_stream_without_their_label_and_characters_come_whole(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_rendered("<|channel>thought\nHm 😀.<channel|>Hi 😀.")
    parser = ReplyParser(tokenizer)
    pieces = [parser.push([id]) for id in ids]
    assert "".join(piece.reasoning for piece in pieces) == "Hm 😀."
    assert "".join(piece.content for piece in pieces) == "Hi 😀."
    assert not any("\ufffd" in piece.content + piece.reasoning for piece in pieces)
    assert sum(bool(piece.reasoning) for piece in pieces) > 1


def test_what_is_held_back_comes_at_the_end(tokenizer: Tokenizer) -> None:
    parser = ReplyParser(tokenizer)
    assert whole(parser.push(tokenizer.encode_rendered("<|tool_call>call:f{a:1}"))) == reading()
    assert whole(parser.flush()) == reading(calls=(CALL_F,), faults=("A call has no end.",))
    parser = ReplyParser(tokenizer)
    assert parser.push(tokenizer.encode_text("\U0001f9ff")[:1]).content == ""
    assert parser.flush().content == "\ufffd"


@pytest.mark.parametrize("begun", ["<|channel>", "<|channel>tho", "<|channel>thought\n", "<|channel>thought\nHm"])
def test_of_a_turn_that_began_before_only_what_is_new_is_told(tokenizer: Tokenizer, begun: str) -> None:
    turn = tokenizer.encode_rendered("<|channel>thought\nHmm.<channel|>Yes.<turn|>")
    before = tokenizer.encode_rendered(begun)
    after = tokenizer.encode_rendered("<|channel>thought\nHmm.<channel|>Yes.<turn|>".removeprefix(begun))
    found = parse_reply(after, tokenizer, before)
    assert whole(found) == reading("Yes.", "Hmm.".removeprefix("Hm") if begun.endswith("Hm") else "Hmm.")
    assert parse_reply(turn, tokenizer).content == "Yes."


def test_a_label_that_was_cut_short_is_no_thought(tokenizer: Tokenizer) -> None:
    for label in ("", "th", "thought"):
        found = read(f"<|channel>{label}<channel|>Yes.", tokenizer)
        assert (found.content, found.reasoning) == ("Yes.", "")
    assert read("<|channel>that<channel|>Yes.", tokenizer).reasoning == "that"


def test_thoughts_without_an_end_never_become_content(tokenizer: Tokenizer) -> None:
    found = read("<|channel>thought\nHm, that", tokenizer)
    assert (found.content, found.reasoning) == ("", "Hm, that")


def test_the_channel_of_thoughts_is_left_by_a_call_too(checkpoint: Checkpoint) -> None:
    control = checkpoint.tokenizer.control
    found = find_channel(checkpoint.tokenizer)
    assert found == (control["<|channel>"], control["<channel|>"], (control["<|tool_call>"],))
    left = read("<|channel>thought\nHm.<|tool_call>call:f{a:1}<tool_call|>Yes.", checkpoint.tokenizer)
    assert (left.content, left.reasoning, left.calls) == ("Yes.", "Hm.", (CALL_F,))


def test_a_tokenizer_may_have_no_channel() -> None:
    vocabulary = tokenizers.Tokenizer(models.BPE({"a": 0}, []))
    vocabulary.decoder = decoders.ByteLevel()
    vocabulary.add_special_tokens(["<bos>", "<eos>", "<pad>", "<|channel>"])
    assert find_channel(Tokenizer(vocabulary)) is None
