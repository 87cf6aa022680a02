"""What a narrowed schema insists on, as texts that bring an answer nearer to its end; trying them is for `closure`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from mezzotint.text.schema_patterns import strip_pattern

_MOST = 64


class Hints(NamedTuple):
    """Names of members that are required, and texts of strings: the shortest option of each enum, what patterns want.

    None of them is sure to fit anywhere.
    """

    members: tuple[str, ...]
    texts: tuple[str, ...]


def find_hints(schema: Any, exemplify: Callable[[str], str | None]) -> Hints:
    """Look through a narrowed schema; `exemplify` gives a text that a pattern matches, if it finds one.

    Returns: at most 64 names and 64 texts, each once.
    """
    members: dict[str, None] = {}
    texts: dict[str, None] = {}
    for node in _walk(schema):
        members |= dict.fromkeys(name for name in node.get("required", ()) if isinstance(name, str))
        if options := [option for option in node.get("enum", ()) if isinstance(option, str)]:
            texts[min(options, key=len)] = None
        for pattern in (node.get("pattern"), *node.get("patternProperties", ())):
            if len(texts) < _MOST and isinstance(pattern, str) and (example := exemplify(strip_pattern(pattern))):
                texts[example] = None
    return Hints(tuple(members)[:_MOST], tuple(texts)[:_MOST])


def _walk(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _walk(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _walk(value)
