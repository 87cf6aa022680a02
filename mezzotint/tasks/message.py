"""Examples and answers as chats have them in OpenAI's form: messages out, replies in, judged as their family does."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mezzotint.tasks.family import Example, Family
from mezzotint.text.parse import Reply, ToolCall
from mezzotint.types import Verdict


@dataclass(frozen=True, kw_only=True)
class FamilyVerifier:
    """Takes what the family of an example takes, however it is spelled."""

    family: Family
    example: Example

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """See Verifier."""
        reply = read_message(answer)
        if self.family.accept(self.example, reply):
            return Verdict(accepted=True)
        return Verdict(accepted=False, reason=f"not the right answer of {self.family.name}{_list(reply.faults)}")


def read_message(answer: Mapping[str, Any]) -> Reply:
    """An assistant's message in OpenAI's form as a reply; `faults` in it are what a server found badly written."""
    faults, calls = list(answer.get("faults") or ()), []
    for call in answer.get("tool_calls") or ():
        function = call.get("function") or {}
        name = function.get("name") or ""
        arguments = _read_arguments(function.get("arguments"))
        if arguments is None:
            faults.append(f"The arguments of {name} are no JSON object.")
        else:
            calls.append(ToolCall(name, arguments))
    thoughts = answer.get("reasoning_content") or answer.get("reasoning") or ""
    return Reply(_text_of(answer), thoughts if isinstance(thoughts, str) else "", tuple(calls), tuple(faults))


def write_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A talk as OpenAI's clients send it: the response to each call is a message of its own."""
    written: list[dict[str, Any]] = []
    for turn, message in enumerate(messages):
        if "tool_calls" not in message:
            written.append(dict(message))
            continue
        calls = [
            {
                "id": f"call_{turn}_{at}",
                "type": "function",
                "function": {
                    "name": call["function"]["name"],
                    "arguments": json.dumps(call["function"]["arguments"], ensure_ascii=False),
                },
            }
            for at, call in enumerate(message["tool_calls"])
        ]
        written.append({"role": "assistant", "content": None, "tool_calls": calls})
        for call, back in zip(calls, message.get("tool_responses", ()), strict=False):
            content = json.dumps(back["response"], ensure_ascii=False)
            written.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    return written


def _read_arguments(told: Any) -> dict[str, Any] | None:
    try:
        read = json.loads(told or "{}")
    except (TypeError, ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _text_of(answer: Mapping[str, Any]) -> str:
    """The text of a message, its parts joined."""
    content = answer.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _list(faults: Sequence[str]) -> str:
    return f": {' '.join(faults)}" if faults else ""
