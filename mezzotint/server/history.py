"""A talk as OpenAI's clients send it, as `text.messages` reads it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mezzotint.server.errors import ApiError

# What else a message may hold: labels, and what an earlier answer brought that templates leave out.
_INERT = frozenset("name refusal annotations reasoning reasoning_content id phase".split())


def read_history(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Take messages over. Calls get their responses, in the order of the calls, whatever order those came in.

    Raises: ApiError naming the message by its index and what is wrong with it.
    """
    read: list[dict[str, Any]] = []
    open_calls: dict[str, tuple[dict[str, Any], str]] = {}  # by id: the message that made the call, the tool's name
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, Mapping):
            raise _wrong(f"{where} is {message!r}; send an object with role and content")
        if message.get("role") == "tool":
            _respond(message, open_calls, where)
            continue
        said = {key: value for key, value in message.items() if key not in _INERT and value is not None}
        if said.get("role") == "assistant":
            said["content"] = _read_said(said.get("content"), where)
            calls = said.get("tool_calls")
            if calls is not None and not isinstance(calls, list):
                raise _wrong(f"{where} has tool_calls {calls!r}; send a list")
            if calls:
                said["tool_calls"] = [_read_call(call, f"{where}.tool_calls[{at}]") for at, call in enumerate(calls)]
                open_calls = {call["id"]: (said, call["function"]["name"]) for call in calls}
            else:
                said.pop("tool_calls", None)
            if not said["content"] and "tool_calls" in said:
                del said["content"]
        elif isinstance(said.get("content"), list):
            said["content"] = [_read_part(part, where) for part in said["content"]]
        read.append(said)
    return [_order(message) for message in read]


def _respond(message: Mapping[str, Any], open_calls: dict[str, Any], where: str) -> None:
    id = message.get("tool_call_id")
    if not isinstance(id, str) or id not in open_calls:
        told = ", ".join(open_calls) or "none"
        raise _wrong(f"{where} answers tool_call_id {id!r}; calls of the assistant's turn before it are: {told}")
    asked, name = open_calls.pop(id)
    asked.setdefault("responses", {})[id] = {"name": name, "response": _read_response(message.get("content"), where)}


def _order(message: dict[str, Any]) -> dict[str, Any]:
    """Responses in the order of their calls, and calls without the ids that a template does not show."""
    given = message.pop("responses", {})
    if "tool_calls" not in message:
        return message
    calls = message["tool_calls"]
    if given:
        message["tool_responses"] = [given[call["id"]] for call in calls if call["id"] in given]
    message["tool_calls"] = [{"function": call["function"]} for call in calls]
    return message


def _read_call(call: Any, where: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, Mapping) else None
    is_named = isinstance(function, Mapping) and isinstance(function.get("name"), str)
    if not isinstance(function, Mapping) or not is_named or not isinstance(call.get("id"), str):
        raise _wrong(f'{where} is {call!r}; send {{"id": ..., "type": "function", "function": {{...}}}}')
    given = function.get("arguments") or "{}"
    try:
        arguments = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        raise _wrong(f"{where} has arguments {given[:200]!r}, which is no JSON; send an object as JSON text") from None
    if not isinstance(arguments, Mapping):
        raise _wrong(f"{where} has arguments {given!r}; send an object as JSON text")
    return {"id": call["id"], "function": {"name": function["name"], "arguments": dict(arguments)}}


def _read_response(content: Any, where: str) -> Any:
    """What a tool gave back: an object if the text is one, else the text."""
    text = content if isinstance(content, str) else "".join(_text_of(part, where) for part in content or ())
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _read_said(content: Any, where: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise _wrong(f"{where} has content {content!r}; send a string, a list of text parts, or null beside calls")
    return "".join(_text_of(part, where) for part in content)


def _read_part(part: Any, where: str) -> dict[str, str]:
    return {"type": "text", "text": _text_of(part, where)}


def _text_of(part: Any, where: str) -> str:
    if isinstance(part, Mapping) and part.get("type") in ("text", "input_text", "output_text", "refusal"):
        text = part.get("text", part.get("refusal"))
        if isinstance(text, str):
            return text
    kind = part.get("type") if isinstance(part, Mapping) else part
    raise _wrong(
        f'{where} has a part of type {kind!r}, but this model reads text; send {{"type": "text", "text": ...}}'
    )


def _wrong(message: str) -> ApiError:
    return ApiError(400, message, param="messages")
