"""Calls of declared tools as a grammar, in Gemma's own syntax: control tokens and text, not JSON; `call` reads them.

    <|tool_call>call:NAME{key:value,key:<|"|>text<|"|>}<tool_call|>

Keys stand in the order in which `call.write_call` sorts them. Of JSON Schema all that `schema` honours is taken for
parameters, but for: allOf of several, prefixItems, members or values that are not described, recursion.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from llguidance import regex_to_lark

from mezzotint.text.call import QUOTE, ToolCall, write_call
from mezzotint.text.grammar import Grammar, Grammars, quote
from mezzotint.text.schema import COMPACT, JsonForm, narrow_schema
from mezzotint.text.schema_hints import find_hints

MOST_CALLS = 16
_NUMERIC = "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split()
_KNOWN = [
    *_NUMERIC,
    *"type minLength maxLength pattern items minItems maxItems properties required additionalProperties".split(),
]


def compile_calls(
    grammars: Grammars,
    tools: Sequence[Mapping[str, Any]],
    *,
    choice: Literal["auto", "required"] = "auto",
    only: str | None = None,
    max_calls: int = MOST_CALLS,
    form: JsonForm = COMPACT,
) -> Grammar:
    """Compile what a model may answer that was given `tools`, declared as OpenAI's clients do.

    choice: `required` is 1 to `max_calls` calls and nothing else; `auto` is words, or such calls behind words if any.
    only: the name of the one tool that may be called.
    Returns: the grammar.
    Raises: ValueError for no tool, a name that is unknown, double or cannot be written, and parameters that cannot be
    honoured whole, naming tool, parameter and keyword.
    """
    if not 1 <= max_calls <= MOST_CALLS:
        raise ValueError(f"max_calls is {max_calls}; use 1 to {MOST_CALLS}")
    functions = [tool["function"] for tool in tools]
    names = [function["name"] for function in functions]
    if only is not None and only not in names:
        raise ValueError(f"the tool {only!r} is not declared; declared are {', '.join(names) or 'none'}")
    if not functions or len(set(names)) < len(names):
        raise ValueError(f"the tools are called {names}; declare at least one, each under a name of its own")
    writer = _Writer(form, grammars)
    callable_ = [function for function in functions if only in (None, function["name"])]
    calls = [writer.write_tool(function["name"], function.get("parameters") or {}) for function in callable_]
    some = f"calls{{1,{max_calls}}}"
    start = f"TEXT | TEXT? {some}" if choice == "auto" else some
    rules = [f"start: {start}", "TEXT: /(?s:.+)/", f"calls: {' | '.join(calls)}", *writer.rules]
    return grammars.from_lark("\n".join(rules), writer.hints)._replace(restricted=dict(writer.restricted))


class _Writer:
    """The rules of one grammar; `path` says where in which tool a schema stands."""

    def __init__(self, form: JsonForm, grammars: Grammars) -> None:
        self._form, self._grammars = form, grammars
        self._definitions: Mapping[str, Any] = {}
        self.rules: list[str] = []
        self.hints: list[str] = []
        self.restricted: Counter[str] = Counter()

    def write_tool(self, name: str, parameters: Mapping[str, Any]) -> str:
        """Returns: the name of the rule for one call."""
        write_call(ToolCall(name, {}))  # refuses a name that would not read back
        path = f"tool {name}"
        try:
            narrowed = narrow_schema({"properties": {}, "type": "object", **parameters}, self._form)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        self.restricted.update(narrowed.restricted)
        assert isinstance(narrowed.schema, dict)
        hints = find_hints(narrowed.schema, self._grammars.exemplify)
        self.hints += [*hints.members, *hints.texts]
        self._definitions = narrowed.schema.get("$defs", {})
        takes_some = bool(parameters.get("properties"))
        arguments = self._write(narrowed.schema, path, ()) if takes_some else '"{}"'
        return self._rule(f"<|tool_call> {quote(f'call:{name}')} {arguments} <tool_call|>")

    def _write(self, schema: Any, path: str, seen: tuple[str, ...]) -> str:
        """Returns: an expression for the values of a schema."""
        if not isinstance(schema, dict):
            raise ValueError(f"{path}: no value is allowed; leave it out")
        said = {key: value for key, value in schema.items() if key != "$defs"}
        if "$ref" in said:
            return self._write_reference(said, path, seen)
        if len(said.get("allOf", ())) == 1:
            return self._write({**said.pop("allOf")[0], **said}, path, seen)
        if "anyOf" in said:
            _take_only(said, ["anyOf"], path)
            return self._rule(" | ".join(self._write(option, path, seen) for option in said["anyOf"]))
        if "const" in said or "enum" in said:
            return self._write_options(said, path)
        if "type" not in said:
            raise ValueError(f"{path}: {', '.join(said)} cannot be written as a call; give it a type")
        if "object" in said["type"] and (said.get("additionalProperties") is not False or "patternProperties" in said):
            raise ValueError(f"{path}: members that are not described cannot be written as a call; name them")
        _take_only(said, _KNOWN, path)
        return self._rule(" | ".join(self._write_type(name, said, path, seen) for name in said["type"]))

    def _write_reference(self, said: dict[str, Any], path: str, seen: tuple[str, ...]) -> str:
        _take_only(said, ["$ref"], path)
        name = said["$ref"].rpartition("/")[2]
        if name.startswith("any"):
            raise ValueError(f"{path}: a value of any kind cannot be written as a call; give it a type")
        if name in seen:
            raise ValueError(f"{path}: a schema that holds itself cannot be written as a call; unfold it a few times")
        return self._write(self._definitions[name], path, (*seen, name))

    def _write_options(self, said: dict[str, Any], path: str) -> str:
        _take_only(said, ["const", "enum", "type"], path)
        options = [said["const"]] if "const" in said else said["enum"]
        fitting = [option for option in options if _has_type(option, said.get("type"))]
        if not fitting or ("const" in said and "enum" in said):
            raise ValueError(f"{path}: const, enum and type leave no value; correct them")
        return self._rule(" | ".join(map(_write_literal, fitting)))

    def _write_type(self, name: str, said: dict[str, Any], path: str, seen: tuple[str, ...]) -> str:
        match name:
            case "null":
                return '"null"'
            case "boolean":
                return '"true" | "false"'
            case "string":
                return self._write_string(said, path)
            case "array":
                return self._write_array(said, path, seen)
            case "object":
                return self._write_object(said, path, seen)
            case _:
                number = {key: said[key] for key in _NUMERIC if key in said}
                options = {"whitespace_flexible": False}
                return self._rule(f"%json {json.dumps({'type': name, **number, 'x-guidance': options})}")

    def _write_string(self, said: dict[str, Any], path: str) -> str:
        least, most = said.get("minLength", 0), said["maxLength"]
        if most == 0:
            return '<|"|> <|"|>'
        terminal = f"/(?s:.{{{max(1, least)},{most}}})/"
        if "pattern" in said:
            terminal += f" & /{regex_to_lark(_match_whole(said['pattern'], path), 'dw')}/"
        may_be_empty = "?" if least == 0 and "pattern" not in said else ""
        return f'<|"|> {self._rule(terminal, terminal=True)}{may_be_empty} <|"|>'

    def _write_array(self, said: dict[str, Any], path: str, seen: tuple[str, ...]) -> str:
        least, most = said.get("minItems", 0), said.get("maxItems", 0)
        if said.get("items") is False or most == 0:
            return '"[]"'
        item = self._write(said.get("items"), f"{path}, items", seen)
        more = f'("," {item}){{{max(0, least - 1)},{most - 1}}}' if most > 1 else ""
        filled = f'"[" {item} {more} "]"'
        return filled if least else f'"[]" | {filled}'

    def _write_object(self, said: dict[str, Any], path: str, seen: tuple[str, ...]) -> str:
        """One rule for what may follow each member, and one for what may come first from it on; so commas fit."""
        required = said.get("required", ())
        first, rest = '""', '""'
        for key in sorted(said.get("properties", {}), reverse=True):
            inner = f"{path}, parameter {key}"
            if said["properties"][key] is False and key not in required:
                continue
            if write_call(ToolCall("f", {key: 1})) != f"call:f{{{key}:1}}":
                raise ValueError(f"{inner}: the key {key!r} cannot be written bare; use letters, digits and _")
            value = self._write(said["properties"][key], inner, seen)
            first = self._rule(f"{quote(key + ':')} {value} {rest}" + (f" | {first}" if key not in required else ""))
            rest = self._rule(f"{quote(f',{key}:')} {value} {rest}" + (f" | {rest}" if key not in required else ""))
        return f'"{{" {first} "}}"'

    def _rule(self, body: str, *, terminal: bool = False) -> str:
        name = f"{'T' if terminal else 'r'}{len(self.rules)}"
        self.rules.append(f"{name}: {body}")
        return name


def _take_only(said: Mapping[str, Any], known: Sequence[str], path: str) -> None:
    if others := [key for key in said if key not in known]:
        raise ValueError(f"{path}: {', '.join(others)} cannot be written as a call; leave it out")


def _has_type(value: Any, types: list[str] | None) -> bool:
    if types is None:
        return True
    if isinstance(value, bool) or value is None:
        return {True: "boolean", False: "boolean", None: "null"}[value] in types
    if isinstance(value, int | float):
        return "number" in types or ("integer" in types and value == int(value))
    return ("string" if isinstance(value, str) else "array" if isinstance(value, list) else "object") in types


def _write_literal(value: Any) -> str:
    text = write_call(ToolCall("f", {"a": value})).removeprefix("call:f{a:").removesuffix("}")
    pieces = [quote(piece) if piece else "" for piece in text.split(QUOTE)]
    return ' <|"|> '.join(pieces)


def _match_whole(pattern: str, path: str) -> str:
    """Write a pattern that may match anywhere as one of the whole text."""
    begins, ends = pattern.startswith("^"), re.search(r"(?<!\\)(?:\\\\)*\$\Z", pattern) is not None
    inner = pattern[begins : len(pattern) - ends]
    if (begins or ends) and _has_outer_choice(inner):
        raise ValueError(f"{path}: the pattern {pattern!r} is anchored in one of its choices; put them in parentheses")
    return ("" if begins else "(?s:.*)") + f"(?:{inner})" + ("" if ends else "(?s:.*)")


def _has_outer_choice(pattern: str) -> bool:
    depth, inside = 0, False
    for piece in re.findall(r"\\.|.", pattern, re.DOTALL):
        inside = (inside or piece == "[") and piece != "]"
        depth += (piece == "(") - (piece == ")") if not inside else 0
        if piece == "|" and depth == 0 and not inside:
            return True
    return False
