"""OpenAI's messages become the talk that templates read."""

import json
from typing import Any

import pytest

from mezzotint.server.errors import ApiError
from mezzotint.server.history import read_history


def call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


ASKED = {"role": "assistant", "content": None, "tool_calls": [call("a", "add", x=1), call("b", "now")]}


def test_responses_stand_in_the_order_of_their_calls() -> None:
    back = [
        {"role": "tool", "tool_call_id": "b", "content": "noon"},
        {"role": "tool", "tool_call_id": "a", "content": '{"sum": 2}'},
    ]
    [_, read] = read_history([{"role": "user", "content": "go"}, ASKED, *back])
    assert read["tool_calls"] == [
        {"function": {"name": "add", "arguments": {"x": 1}}},
        {"function": {"name": "now", "arguments": {}}},
    ]
    assert read["tool_responses"] == [{"name": "add", "response": {"sum": 2}}, {"name": "now", "response": "noon"}]
    assert "content" not in read


def test_a_call_that_nobody_answered_has_no_response() -> None:
    [read] = read_history([ASKED, {"role": "tool", "tool_call_id": "b", "content": "noon"}])
    assert read["tool_responses"] == [{"name": "now", "response": "noon"}]


def test_parts_of_text_are_taken_and_labels_are_dropped() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}]
    read = read_history(
        [
            {"role": "user", "name": "Ann", "content": parts},
            {"role": "assistant", "content": parts, "refusal": None, "reasoning_content": "hm", "annotations": []},
        ]
    )
    assert read == [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "ab"},
    ]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([{"role": "tool", "tool_call_id": "z", "content": "?"}], r"messages\[0\] answers tool_call_id 'z'.*none"),
        ([ASKED, {"role": "tool", "content": "?"}], r"messages\[1\] answers tool_call_id None.*a, b"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], r"messages\[0\] has a part of type 'image_url'"),
        ([{"role": "assistant", "tool_calls": [{"id": "a"}]}], r"messages\[0\].tool_calls\[0\] is"),
        (["hello"], r"messages\[0\] is 'hello'"),
        ([{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{"}}]}], "no JSON"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "[]"}}]}],
            "an object",
        ),
    ],
)
def test_what_cannot_be_read_is_named_by_its_index(messages: list[Any], told: str) -> None:
    with pytest.raises(ApiError, match=told) as raised:
        read_history(messages)
    assert raised.value.status == 400


def test_an_answer_to_a_call_is_taken_once() -> None:
    back = {"role": "tool", "tool_call_id": "a", "content": "1"}
    with pytest.raises(ApiError, match=r"messages\[2\] answers"):
        read_history([ASKED, back, back])
