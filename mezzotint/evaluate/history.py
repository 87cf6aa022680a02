"""Chats with calls of tools, from OpenAI's form to the one that templates read and back; templates live in text."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def write_history(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Chats as `text.messages` checks them, in OpenAI's form: calls get ids, and each response is a message."""
    written: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        told = {name: value for name, value in message.items() if name != "tool_responses"}
        ids = [f"call_{at}_{number}" for number in range(len(message.get("tool_calls") or ()))]
        if ids:
            told["content"] = message.get("content")
            told["tool_calls"] = [_write_call(*each) for each in zip(ids, message["tool_calls"], strict=True)]
        written.append(told)
        for id, response in zip(ids, message.get("tool_responses") or (), strict=False):
            said = response["response"]
            content = said if isinstance(said, str) else json.dumps(said)
            written.append({"role": "tool", "tool_call_id": id, "content": content})
    return written


def read_history(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The way back.

    Raises: ValueError for a call without id or arguments in JSON, and for a response to no call before it.
    """
    read: list[dict[str, Any]] = []
    ids: list[Any] = []
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise ValueError(f"message {at} is {message!r}; give an object with role and content")
        if message.get("role") == "tool":
            if (id := message.get("tool_call_id")) not in ids:
                raise ValueError(f"message {at} answers tool_call_id {id!r}; name a call of the turn before it")
            calls = read[-1]["tool_calls"]
            responses = read[-1].setdefault("tool_responses", [{}] * len(calls))
            name = calls[ids.index(id)]["function"]["name"]
            responses[ids.index(id)] = {"name": name, "response": _read_response(message.get("content"))}
            continue
        told = {name: value for name, value in message.items() if value is not None}
        ids = [_id_of(call, at) for call in message.get("tool_calls") or ()]
        if ids:
            told["tool_calls"] = [_read_call(call, at) for call in message["tool_calls"]]
        read.append(told)
    if any({} in message.get("tool_responses", ()) for message in read):
        raise ValueError("a call has no response where others of its turn have; give each a message of the role tool")
    return read


def _write_call(id: str, call: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": call["function"]["name"], "arguments": json.dumps(call["function"].get("arguments") or {})}
    return {"id": id, "type": "function", "function": function}


def _id_of(call: Any, at: int) -> str:
    if not isinstance(call, Mapping) or not isinstance(call.get("id"), str):
        raise ValueError(f"message {at} has a call {call!r}; give it an id and a function")
    return str(call["id"])


def _read_call(call: Mapping[str, Any], at: int) -> dict[str, Any]:
    try:
        function = {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"message {at} has a call {call!r} ({error!r}); give a name, and arguments as JSON") from error
    return {"function": function}


def _read_response(content: Any) -> Any:
    try:
        value = json.loads(content)
    except (TypeError, ValueError):
        return content
    return value if isinstance(value, dict) else content
