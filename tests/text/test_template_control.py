"""User text is text: no string of a user's becomes a control token, and each reaches the model as written."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mezzotint.text.template import ChatTemplate
from tests.text.conftest import Checkpoint, Message

HOSTILE = st.sampled_from(
    [
        "<|turn>",
        "<turn|>",
        "<eos>",
        "<|tur",
        "n>system\n",
        "<|",
        "|>",
        "turn",
        '<|"|>',
        "\ue000",
        " ",
        "<|think|>",
        "\n",
    ]
)


PARTS = st.lists(st.lists(HOSTILE, max_size=6).map("".join), min_size=1, max_size=3)


@settings(max_examples=150)
@given(contents=st.lists(PARTS, min_size=1, max_size=3))
def test_users_never_write_a_control_token_not_even_in_parts(checkpoint: Checkpoint, contents: list[list[str]]) -> None:
    ids = checkpoint.template.encode(_in_parts(contents))
    harmless = checkpoint.template.encode(_in_parts([["x"] for _ in contents]))
    assert checkpoint.control_in(ids) == checkpoint.control_in(harmless)


@given(contents=st.lists(PARTS, min_size=1, max_size=3))
def test_what_users_write_reaches_lab_unchanged(lab: Checkpoint, contents: list[list[str]]) -> None:
    turns = "".join(f"<|turn>user\n{''.join(texts)}<turn|>\n" for texts in contents)
    ids = lab.template.encode(_in_parts(contents))
    assert lab.tokenizer.decode(ids, keep_control=True) == f"<bos>{turns}<|turn>model\n"


def _in_parts(contents: list[list[str]]) -> list[Message]:
    return [{"role": "user", "content": [{"type": "text", "text": text} for text in texts]} for texts in contents]


SPELLED = 'a<|turn><turn|><|"|><bos><|tool_call> \ue000b'


def _chat_with(text: str) -> tuple[list[Message], list[dict[str, Any]]]:
    """A chat that holds `text` at every place where a user's string can stand."""
    arguments: dict[str, Any] = {"key" + text: [text, {"inner" + text: text}], "flag": True}
    call = {"function": {"name": text, "arguments": arguments}}
    responses = [{"name": text, "response": {text: text}}, {"name": "f", "response": text}]
    messages: list[Message] = [
        {"role": "system", "content": text},
        {"role": "user", "content": text},
        {"role": "user", "content": [{"type": "text", "text": text}]},
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "assistant", "tool_responses": responses},
    ]
    described = {"type": "string", "description": text, "enum": [text]}
    parameters = {"type": text, "properties": {text: described, "b": {"type": text}}, "required": [text]}
    function = {"name": text, "description": text, "parameters": parameters}
    return messages, [{"type": "function", "function": function}]


@pytest.mark.parametrize("control", ["<|turn>", "<turn|>", '<|"|>', "<bos>", "<|image|>", "<|tool_response>", "<eos>"])
def test_a_control_token_is_text_wherever_a_user_writes_it(checkpoint: Checkpoint, control: str) -> None:
    messages, tools = _chat_with(f"a{control}b")
    ids = checkpoint.template.encode(messages, tools=tools, thinking=True)
    plain_messages, plain_tools = _chat_with("axb")
    plain = checkpoint.template.encode(plain_messages, tools=plain_tools, thinking=True)
    assert checkpoint.control_in(ids) == checkpoint.control_in(plain)
    text = checkpoint.tokenizer.decode(ids, keep_control=True).replace(f"a{control}b", "axb")
    text = text.replace(f"A{control.upper()}B", "AXB")
    assert text == checkpoint.tokenizer.decode(plain, keep_control=True)


def test_a_spelled_control_token_becomes_the_ids_of_its_text(checkpoint: Checkpoint) -> None:
    messages = [{"role": "user", "content": SPELLED}]
    ids = checkpoint.template.encode(messages)
    sanitized = checkpoint.oracle_ids(messages, sanitize_control_tokens=True)  # it cuts text elsewhere
    assert checkpoint.control_in(ids) == checkpoint.control_in(sanitized)
    assert checkpoint.tokenizer.decode(ids) == checkpoint.tokenizer.decode(sanitized)
    head = checkpoint.tokenizer.encode_rendered("<bos><|turn>")
    body = checkpoint.tokenizer.encode_text(f"user\n{SPELLED}")
    assert ids[: len(head) + len(body)] == head + body
    assert ids[len(head) + len(body)] == checkpoint.tokenizer.control["<turn|>"]


def test_a_user_may_write_about_channels(lab: Checkpoint) -> None:
    text = "What does <|channel>thought<channel|> mean?"
    assert text in lab.tokenizer.decode(lab.template.encode([{"role": "user", "content": text}]))


def test_json_keeps_a_users_control_token_text(lab: Checkpoint) -> None:
    source = "{{ messages[0].content | tojson(ensure_ascii=True, indent=1) }}{{ eos_token }}"
    ids = ChatTemplate(source, lab.tokenizer).encode([{"role": "user", "content": "<eos>é"}])
    assert lab.control_in(ids) == ["<eos>"]
    assert lab.tokenizer.decode(ids) == '"<eos>\\u00e9"'


@pytest.mark.parametrize("filters", ["upper", "lower", "trim", "replace(' ', '')", "reverse"])
def test_no_filter_turns_a_users_string_into_a_control_token(lab: Checkpoint, filters: str) -> None:
    for content in ("<|turn>", " < | TURN > ", ">nrut|<", "<|TURN>"):
        ids = ChatTemplate(f"{{{{ messages[0].content | {filters} }}}}", lab.tokenizer).encode(
            [{"role": "user", "content": content}]
        )
        assert lab.control_in(ids) == []


def test_a_chat_that_takes_every_private_character_is_refused(lab: Checkpoint) -> None:
    codes = [*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE), *range(0x100000, 0x10FFFE)]
    with pytest.raises(ValueError, match="every private-use character"):
        lab.template.encode([{"role": "user", "content": "".join(map(chr, codes))}])
