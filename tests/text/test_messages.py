"""Chats that are refused, by place and with a remedy; and the copy that is made of a good one."""

from typing import Any

import pytest

from mezzotint.text.messages import check_chat

USER = {"role": "user", "content": "Hi"}


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ("Hi", r"message 1 is 'Hi'; send an object with role and content"),
        (
            {"content": "Hi"},
            r"message 1 has the role None; use one of system, developer, user, assistant, tool",
        ),
        ({"role": "model", "content": "Hi"}, r"message 1 has the role 'model'; use one of"),
        ({"role": "user"}, r"message 1 has no content; send a string or a list of text parts"),
        ({"role": "user", "content": None}, r"message 1 has no content"),
        ({"role": "user", "content": 3}, r"message 1 has content 3; send a string or a list of text parts"),
        ({"role": "user", "content": {"text": "Hi"}}, r"message 1 has content .*; send a string"),
        ({**USER, "colour": "red"}, r"message 1 has the field 'colour'; known are role, content, tool_calls"),
        ({"role": "user", "content": ["Hi"]}, r"message 1, part 0 is of type 'Hi'"),
        ({"role": "user", "content": [{"type": "text"}]}, r"message 1, part 0 is of type 'text'"),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {}}],
            },
            r"message 1, part 1 is of type 'image_url', but this engine reads text only for now; send",
        ),
        ({"role": "assistant", "tool_calls": {}}, r"message 1 has tool_calls {}; send a list of objects"),
        (
            {"role": "assistant", "tool_calls": ["f"]},
            r"message 1 has tool_calls \['f'\]; send a list of objects",
        ),
        ({"role": "assistant", "tool_calls": [{}]}, r"message 1, tool call 0 is {}; send"),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}]},
            r"message 1, tool call 0 has arguments .*; send an object, parsed if it came as JSON text",
        ),
        (
            {"role": "assistant", "tool_responses": [{"name": "f"}]},
            r"message 1, tool response 0 must hold a name and a response",
        ),
        ({"role": "user", "content": b"Hi"}, r"messages and tools must be JSON \(.*bytes"),
    ],
)
def test_a_malformed_message_is_refused_by_place_and_with_a_remedy(message: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        check_chat([USER, message], [])


@pytest.mark.parametrize("tool", [{}, {"name": "f"}, {"function": {"name": 3}}, "f"])
def test_a_malformed_tool_is_refused_by_place_and_with_a_remedy(tool: Any) -> None:
    with pytest.raises(ValueError, match=r"tool 1 is .*; send .*function"):
        check_chat([USER], [{"function": {"name": "f"}}, tool])


def test_an_empty_chat_is_refused() -> None:
    with pytest.raises(ValueError, match="messages is empty; send at least one message"):
        check_chat([], [])


def test_a_good_chat_comes_back_as_a_copy_without_empty_fields() -> None:
    arguments = {"a": [1]}
    call = {"id": "1", "function": {"name": "f", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    chat = check_chat([USER, message], [{"function": {"name": "f"}}])
    assert chat.messages == [USER, {"role": "assistant", "tool_calls": [call]}]
    arguments["a"].append(2)
    assert chat.messages[1]["tool_calls"][0]["function"]["arguments"] == {"a": [1]}
    assert chat.tools == [{"function": {"name": "f"}}]


def test_only_a_system_message_has_its_parts_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    chat = check_chat([{"role": role, "content": parts} for role in ("system", "developer", "user")], [])
    assert [message["content"] for message in chat.messages] == ["ab", "ab", parts]
