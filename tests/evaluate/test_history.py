"""Chats with calls, there and back."""

from typing import Any

import pytest

from mezzotint.evaluate.history import read_history, write_history
from mezzotint.tasks import FAMILIES


def test_chats_of_a_family_come_back_as_they_were() -> None:
    longest = 0
    for seed in range(60):
        messages = FAMILIES["call"].generate(seed, "test").messages
        written = write_history(messages)
        longest = max(longest, len(written))
        assert read_history(written) == list(messages)
        assert not any("tool_responses" in message for message in written)
        for message in written:
            for call in message.get("tool_calls") or ():
                assert isinstance(call["function"]["arguments"], str)
    assert longest >= 4


def test_responses_are_put_beside_their_calls_whatever_order_they_came_in() -> None:
    calls = [{"id": id, "type": "function", "function": {"name": id, "arguments": "{}"}} for id in "ab"]
    said = [{"role": "tool", "tool_call_id": id, "content": f"said {id}"} for id in "ba"]
    [message] = read_history([{"role": "assistant", "content": None, "tool_calls": calls}, *said])
    assert message["tool_responses"] == [
        {"name": "a", "response": "said a"},
        {"name": "b", "response": "said b"},
    ]


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (["hi"], "message 0 is 'hi'; give an object"),
        ([{"role": "tool", "tool_call_id": "1", "content": ""}], "message 0 answers tool_call_id '1'; name a call"),
        ([{"role": "assistant", "tool_calls": [{"function": {}}]}], "give it an id"),
        ([{"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f"}}]}], "arguments as JSON"),
        (
            [
                {"role": "assistant", "tool_calls": [CALL, {**CALL, "id": "2"}]},
                {"role": "tool", "tool_call_id": "2", "content": ""},
            ],
            "a call has no response where others",
        ),
    ],
)
def test_a_chat_that_cannot_be_read_is_refused(messages: list[Any], told: str) -> None:
    with pytest.raises(ValueError, match=r"; |give") as error:
        read_history(messages)
    assert told in str(error.value)
