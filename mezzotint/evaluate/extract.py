"""Reads out of an answer what is to be judged, its text, code or number; whether that is right is said elsewhere."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*(\w*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_DEFINITION = re.compile(r"^(?:async +)?(?:def|class) +(\w+)", re.MULTILINE)
# A number as people write it, with or without groups of three.
_NUMBER = re.compile(r"(?<![\w.])[-−+]?\$?\d{1,30}(?:,\d{3}){0,10}(?:\.\d{1,30})?(?!\d)")
_MARK = re.compile(r"####\s*|\\boxed\s*\{\s*")


def content_of(answer: Mapping[str, Any]) -> str:
    """The text of a message in OpenAI's form, its parts joined; a message without any has an empty one."""
    content = answer.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def find_code(text: str) -> str:
    """The Python in an answer: its fenced blocks, those called python if any are, else all of it."""
    blocks = [(match[2].lower(), match[3]) for match in _FENCE.finditer(text)]
    named = [code for name, code in blocks if name in ("python", "py", "python3")]
    return "\n".join(named or [code for _, code in blocks]) if blocks else text


def join_code(before: str, code: str) -> list[str]:
    """How code that answers a question with code may be run, the likeliest first; the first that compiles is meant.

    It goes on with what the question began where it is indented or defines nothing that stands there, and else says
    it anew; what else the question imports and defines stays there for it.
    """
    first = next((line for line in code.split("\n") if line.strip()), "")
    again = not set(_DEFINITION.findall(before)).isdisjoint(_DEFINITION.findall(code))
    if first[:1] in (" ", "\t") or not again:
        return [before + code, code]
    return [f"{before}\n    pass\n\n{code}", f"{before}\n{code}", code]


def find_number(text: str) -> Decimal | None:
    """The number that a text gives as its result: behind its last #### or in its last \\boxed, else its last."""
    marks = list(_MARK.finditer(text))
    behind = _NUMBER.match(text, marks[-1].end()) if marks else None
    found = [behind] if behind else list(_NUMBER.finditer(text))
    return read_number(found[-1][0]) if found else None


def read_number(text: str) -> Decimal:
    """A number, with commas between groups of three or a dollar sign. Raises: ValueError."""
    try:
        number = Decimal(text.strip().replace(",", "").replace("$", "").replace("−", "-"))
    except InvalidOperation:
        raise ValueError(f"value is {text!r}; write a number, as '72' or '1,000.50'") from None
    if not number.is_finite():
        raise ValueError(f"value is {text!r}; write a finite number")
    return number
