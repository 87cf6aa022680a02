"""The text of one call of a tool, `call:NAME{key:value}`, written and read; where calls stand lives in `parse`.

The text is a string in which QUOTE stands for the control token that delimits strings: half a surrogate pair, which
no decoded text can hold. What a control token is spelled like is text (contract 12).
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

QUOTE = "\ud800"
_QUOTES = (QUOTE, '"', "'")
_DEPTH = 32  # values in values
_NAME = re.compile(rf"[^\s{{}}()\[\]:,\"'{QUOTE}]+")
_BARE_KEY = re.compile(rf"[^\s{{}}()\[\]:=,\"'{QUOTE}]+(?: +[^\s{{}}()\[\]:=,\"'{QUOTE}]+)*")
_STRING = re.compile(rf"{QUOTE}([^{QUOTE}]*){QUOTE}")
_DOUBLE = re.compile(rf'"(?:[^"\\{QUOTE}]|\\.)*"', re.DOTALL)
_SINGLE = re.compile(rf"'([^'{QUOTE}]*)'")
_BARE = re.compile(rf"[^\s,{{}}()\[\]\"'{QUOTE}]+(?:\s+[^\s,{{}}()\[\]\"'{QUOTE}]+)*")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_PYTHON = {"True": True, "False": False, "None": None}


class ToolCall(NamedTuple):
    """One call of a tool; `arguments` is the object that it was given."""

    name: str
    arguments: Mapping[str, Any]


class CallText(NamedTuple):
    """A call as it was understood, and one sentence for each way in which it was not written as it should be."""

    call: ToolCall
    faults: tuple[str, ...]


def write_call(call: ToolCall) -> str:
    """Write a call as the chat templates of Gemma do: keys bare and sorted, strings between QUOTE, no white space.

    A key that could not be read back bare is delimited like a string.
    Returns: the text.
    Raises: ValueError for a name that could not be read back, a value that JSON does not have, one nested too deep,
    and half a surrogate pair.
    """
    if not _NAME.fullmatch(call.name):
        raise ValueError(f"a tool is called {call.name!r}; use a name without white space, quotes or any of {{}}()[]:,")
    return f"call:{call.name}{_write(call.arguments, 0)}"


def read_call(text: str) -> CallText | None:
    """Read a call, in the forms too that models are known to write by mistake.

    Returns: the call; None for a text that cannot be understood.
    """
    reader = _Reader(text)
    try:
        call = reader.read()
    except _NotUnderstoodError:
        return None
    return CallText(call, tuple(reader.faults))


def _write(value: Any, depth: int) -> str:
    if depth > _DEPTH:
        raise ValueError(f"arguments are nested deeper than {_DEPTH} values; flatten them")
    if isinstance(value, str):
        return f"{QUOTE}{_check_text(value)}{QUOTE}"
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return "{" + ",".join(f"{_write_key(key)}:{_write(value[key], depth + 1)}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return f"[{','.join(_write(item, depth + 1) for item in value)}]"
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    raise ValueError(f"an argument holds {value!r}; give strings, finite numbers, booleans, null, lists and objects")


def _write_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else f"{QUOTE}{_check_text(key)}{QUOTE}"


def _check_text(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"a string has half a surrogate pair: {text!a}; send whole characters")
    return text


class _NotUnderstoodError(Exception):
    """No known form of a call goes on like this."""


class _Reader:
    """A place in the text of one call, and the faults met before it."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.faults: dict[str, None] = {}  # in order, each once

    def read(self) -> ToolCall:
        self._space()
        if not self._take("call:"):
            self._fault("A call does not begin with call:.")
        self._space()
        name = self._match(_NAME)[0]
        self._space()
        if self._take("("):
            self._fault("A call has its arguments in parentheses.")
            arguments = self._in_parentheses()
        else:
            arguments = self._object()
        self._space()
        if self.at < len(self.text):
            raise _NotUnderstoodError
        return ToolCall(name, arguments)

    def _in_parentheses(self) -> dict[str, Any]:
        self._space()
        if not self.text.startswith("{", self.at):
            return self._members(")")
        arguments = self._object()
        self._space()
        self._expect(")")
        return arguments

    def _object(self) -> dict[str, Any]:
        self._expect("{")
        return self._members("}")

    def _members(self, end: str) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self._ends(end, first=not members):
            key = self._key()
            self._space()
            if self._take("="):
                self._fault("An argument has = behind its key.")
            else:
                self._expect(":")
            if key in members:
                self._fault(f"The key {key} occurs twice; the last one counts.")
            members[key] = self._value()
        return members

    def _list(self) -> list[Any]:
        self._expect("[")
        items: list[Any] = []
        while not self._ends("]", first=not items):
            items.append(self._value())
        return items

    def _ends(self, end: str, *, first: bool) -> bool:
        """Go past the end of a list or object, or to its next item."""
        self._space()
        if self._take(end):
            return True
        if not first:
            self._expect(",")
            self._space()
            if self._take(end):
                self._fault("A comma stands before a closing bracket.")
                return True
        return False

    def _key(self) -> str:
        if self.text.startswith(_QUOTES, self.at):
            return self._quoted()
        return self._match(_BARE_KEY)[0]

    def _value(self) -> Any:
        self._space()
        self.depth += 1
        if self.depth > _DEPTH:
            raise _NotUnderstoodError
        value = self._nested()
        self.depth -= 1
        return value

    def _nested(self) -> Any:
        if self.text.startswith("{", self.at):
            return self._object()
        if self.text.startswith("[", self.at):
            return self._list()
        if self.text.startswith(_QUOTES, self.at):
            return self._quoted()
        return self._bare(self._match(_BARE)[0])

    def _quoted(self) -> str:
        if self.text.startswith(QUOTE, self.at):
            return self._match(_STRING)[1]
        self._fault("A string is not between the control tokens for it.")
        if self.text.startswith("'", self.at):
            return self._match(_SINGLE)[1]
        try:
            return str(json.loads(self._match(_DOUBLE)[0], strict=False)).encode().decode()
        except ValueError as error:
            raise _NotUnderstoodError from error

    def _bare(self, text: str) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if text in _PYTHON:
            self._fault(f"{text} is Python's spelling.")
            return _PYTHON[text]
        if _NUMBER.fullmatch(text) and (number := _read_number(text)) is not None:
            return number
        self._fault("A string is not between the control tokens for it.")
        return text

    def _space(self) -> None:
        at = self.at
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        if self.at > at:
            self._fault("A call has white space between its parts.")

    def _take(self, literal: str) -> bool:
        taken = self.text.startswith(literal, self.at)
        self.at += len(literal) * taken
        return taken

    def _expect(self, literal: str) -> None:
        if not self._take(literal):
            raise _NotUnderstoodError

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self.text, self.at)
        if not found:
            raise _NotUnderstoodError
        self.at = found.end()
        return found

    def _fault(self, sentence: str) -> None:
        self.faults[sentence] = None


def _read_number(text: str) -> int | float | None:
    try:
        number: int | float = json.loads(text)
    except ValueError:  # an integer of more digits than Python reads
        return None
    return None if abs(number) == math.inf else number
