"""A message in OpenAI's form is read as the reply that it stands for, and badly written calls are faults in it."""

import asyncio
from typing import Any

import pytest

from mezzotint.evaluate.local import write_message
from mezzotint.tasks import FAMILIES
from mezzotint.tasks.message import FamilyVerifier, read_message
from mezzotint.text.parse import Reply, ToolCall

NAMES = [
    name for name in FAMILIES if name not in ("infill", "repair")
]  # no chats; a library that takes seconds to read


@pytest.mark.parametrize("name", NAMES)
def test_the_right_answer_of_every_family_is_right_as_a_message_and_a_fault_spoils_calls(name: str) -> None:
    for seed in range(4):
        example = FAMILIES[name].generate(seed, "test")
        verifier = FamilyVerifier(family=FAMILIES[name], example=example)
        message = write_message(example.reply)
        assert read_message(message) == example.reply
        assert asyncio.run(verifier.verify((), message)).accepted is True
        assert asyncio.run(verifier.verify((), {"content": "I cannot say."})).accepted is False
        if example.calls:
            spoilt = {**message, "faults": ["A call is not closed."]}
            verdict = asyncio.run(verifier.verify((), spoilt))
            assert verdict == (False, f"not the right answer of {name}: A call is not closed.")


@pytest.mark.parametrize("arguments", ["[1", "[1]", "7", "[" * 100_000, 5])
def test_arguments_that_are_no_object_are_a_fault(arguments: Any) -> None:
    reply = read_message({"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]})
    assert reply == Reply("", "", (), ("The arguments of f are no JSON object.",))


def test_what_a_message_leaves_out_is_empty() -> None:
    told = {"content": None, "tool_calls": [{"function": {"name": "f"}}, {"function": None}], "faults": None}
    assert read_message(told) == Reply("", "", (ToolCall("f", {}), ToolCall("", {})), ())
    assert read_message({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}).content == "ab"
