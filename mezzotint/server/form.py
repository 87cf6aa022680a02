"""Which grammar a request's answer follows: that of a schema, an expression, choices or declared tools."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from mezzotint.server.errors import ApiError
from mezzotint.server.protocol import StructuredOutputs
from mezzotint.text.call_grammar import MOST_CALLS, compile_calls
from mezzotint.text.grammar import Grammar, Grammars

Write = Callable[[Grammars], Grammar]


def write_calls(
    tools: Sequence[Mapping[str, Any]], choice: str | Mapping[str, Any], *, parallel: bool, thinking: bool
) -> Write | None:
    """The grammar of what may be answered where `tools` are declared; None where anything may.

    choice: auto, required, or the name of the one to call. With thoughts, which a grammar does not know, auto lets
    the model write as it will. Raises: ApiError for a choice that there is not.
    """
    if not tools:
        if choice not in ("none", "auto"):
            raise ApiError(
                400, f"tool_choice is {choice!r}, and no tools are declared; declare them", param="tool_choice"
            )
        return None
    for index, tool in enumerate(tools):
        function = tool.get("function")
        if tool.get("type", "function") != "function" or not isinstance(function, Mapping) or "name" not in function:
            told = f'tools[{index}] is {tool!r}; declare {{"type": "function", "function": {{"name": ...}}}}'
            raise ApiError(400, told, param="tools")
        parameters = function.get("parameters")
        if parameters is not None and (
            not isinstance(parameters, Mapping) or parameters.get("type", "object") != "object"
        ):
            told = f"tools[{index}].function.parameters is {parameters!r}; give a schema of an object, or nothing"
            raise ApiError(400, told, param="tools")
    only = _named(choice)
    if only is None and choice not in ("auto", "required"):
        told = f'tool_choice is {choice!r}; give none, auto, required or {{"type": "function", "function": {{...}}}}'
        raise ApiError(400, told, param="tool_choice")
    if thinking and choice == "auto":
        return None
    how: Literal["auto", "required"] = "auto" if choice == "auto" else "required"
    most = MOST_CALLS if parallel else 1
    return lambda grammars: compile_calls(grammars, tools, choice=how, only=only, max_calls=most)


def read_format(given: Mapping[str, Any] | None) -> Write | None:
    """What `response_format` asks for; None for any text. Raises: ApiError for a form that there is not."""
    kind = None if given is None else given.get("type")
    if given is None or kind == "text":
        return None
    if kind == "json_object":
        return lambda grammars: grammars.from_schema({"type": "object"})
    holder = given.get("json_schema")
    if kind == "json_schema" and isinstance(holder, Mapping) and isinstance(holder.get("schema"), Mapping):
        if strange := holder.keys() - {"name", "description", "schema", "strict"}:
            told = f"json_schema has the field {min(strange)!r}; it knows name, description, schema, strict"
            raise ApiError(400, told, param="response_format")
        schema = holder["schema"]
        return lambda grammars: grammars.from_schema(schema)
    told = '{"type": "text" | "json_object"} or {"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}'
    raise ApiError(400, f"response_format is {given!r}; give {told}", param="response_format")


def read_structured(given: StructuredOutputs | None) -> Write | None:
    """What `structured_outputs`, a name of vLLM's, asks for. Raises: ApiError unless it names exactly one grammar."""
    if given is None:
        return None
    said = {name: value for name, value in dict(given).items() if value is not None}
    if len(said) != 1:
        told = f"structured_outputs names {', '.join(said) or 'nothing'}; name one of json, regex, choice, grammar"
        raise ApiError(400, told, param="structured_outputs")
    [(name, value)] = said.items()
    return {
        "json_": lambda grammars: grammars.from_schema(value),
        "regex": lambda grammars: grammars.from_regex(value),
        "choice": lambda grammars: grammars.from_choices(value),
        "grammar": lambda grammars: grammars.from_lark(value),
    }[name]


def only_one(first: Write | None, second: Write | None) -> Write | None:
    """The one of two grammars that is given, if any. Raises: ApiError where both are."""
    if first and second:
        told = (
            "an answer follows one grammar: give one of response_format, structured_outputs, and tools to choose from"
        )
        raise ApiError(400, told, param="response_format")
    return first or second


def _named(choice: str | Mapping[str, Any]) -> str | None:
    if not isinstance(choice, Mapping):
        return None
    named = choice.get("function", choice)
    name = named.get("name") if isinstance(named, Mapping) else None
    if choice.get("type") != "function" or not isinstance(name, str):
        told = f'tool_choice is {choice!r}; name a function: {{"type": "function", "function": {{"name": ...}}}}'
        raise ApiError(400, told, param="tool_choice")
    return name
