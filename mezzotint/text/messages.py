"""What a chat may hold before a template reads it: roles, content, tools; rendering lives in `template`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

ROLES = ("system", "developer", "user", "assistant", "tool")
FIELDS = ("role", "content", "tool_calls", "tool_responses")


class CheckedChat(NamedTuple):
    """Messages and tool declarations, checked, of plain JSON types and shared with no caller."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]


def check_chat(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> CheckedChat:
    """Check a chat as a client sent it.

    A message has a role of ROLES and what else it says. Its content is a string or a list of parts
    {"type": "text", "text": string}; its tool_calls a list of
    {"function": {"name": string, "arguments": object}}; its tool_responses a list of
    {"name": string, "response": any}. A field that is None is left out.
    A tool is {"function": {"name": string, ...}}.
    Returns: a copy, in which a system message in parts is one string.
    Raises: ValueError naming the message or tool by its index from 0, and the remedy.
    """
    if not messages:
        raise ValueError("messages is empty; send at least one message")
    try:
        copies = json.loads(json.dumps([list(messages), list(tools)]))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"messages and tools must be JSON ({error}); send strings, numbers, lists, objects") from error
    checked = [_check_message(message, f"message {index}") for index, message in enumerate(copies[0])]
    for index, tool in enumerate(copies[1]):
        _function(tool, f"tool {index}")
    return CheckedChat(checked, copies[1])


def _check_message(message: Any, where: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise ValueError(f"{where} is {message!r}; send an object with role and content")
    given = {field: value for field, value in message.items() if value is not None}
    if unknown := [field for field in given if field not in FIELDS]:
        raise ValueError(f"{where} has the field {unknown[0]!r}; known are {', '.join(FIELDS)}")
    if given.get("role") not in ROLES:
        raise ValueError(f"{where} has the role {given.get('role')!r}; use one of {', '.join(ROLES)}")
    if not given.keys() & {"content", "tool_calls", "tool_responses"}:
        raise ValueError(f"{where} has no content; send a string or a list of text parts")
    if "content" in given:
        given["content"] = _check_content(given["content"], given["role"], where)
    for index, call in enumerate(_objects(given, "tool_calls", where)):
        _check_call(call, f"{where}, tool call {index}")
    for index, response in enumerate(_objects(given, "tool_responses", where)):
        if not isinstance(response.get("name"), str) or "response" not in response:
            raise ValueError(f"{where}, tool response {index} must hold a name and a response, not {response!r}")
    return given


def _check_content(content: Any, role: str, where: str) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValueError(f"{where} has content {content!r}; send a string or a list of text parts")
    for index, part in enumerate(content):
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, dict) else part
            raise ValueError(
                f"{where}, part {index} is of type {kind!r}, but this engine reads text only for now; "
                'send {"type": "text", "text": "..."}'
            )
    # Gemma's template takes a system message to be a string: a list it would write as Python spells one.
    return "".join(part["text"] for part in content) if role in ("system", "developer") else content


def _check_call(call: dict[str, Any], where: str) -> None:
    arguments = _function(call, where).get("arguments")
    if not isinstance(arguments, dict):
        raise ValueError(f"{where} has arguments {arguments!r}; send an object, parsed if it came as JSON text")


def _function(holder: Any, where: str) -> dict[str, Any]:
    function = holder.get("function") if isinstance(holder, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise ValueError(f'{where} is {holder!r}; send {{"type": "function", "function": {{"name": ...}}}}')
    return function


def _objects(message: dict[str, Any], field: str, where: str) -> list[dict[str, Any]]:
    items = message.get(field, [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{where} has {field} {items!r}; send a list of objects")
    return items
