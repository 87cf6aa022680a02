"""Draws tools that do not exist, declared as OpenAI's clients do; what is asked of them lives in `requests`.

A name is a verb and a noun, a key of a parameter is a base or a qualifier and a base. A hash gives a quarter of
the names and of the qualified keys to test, which train never declares.
"""

from collections.abc import Callable, Sequence
from itertools import product
from random import Random
from typing import Any, NamedTuple

from mezzotint.tasks.family import Split, is_held_out
from mezzotint.tasks.values import DATE, EMAIL, IDENTIFIER, NAME, PLACE, PRICE, TIME, Kind, count

# Other words for a verb, beside itself.
VERBS: dict[str, tuple[str, ...]] = {
    "book": ("reserve",),
    "find": ("look up", "search for"),
    "check": ("look at",),
    "send": ("hand over",),
    "cancel": ("call off",),
    "order": ("ask for",),
    "open": ("unlock",),
    "print": ("put on paper",),
    "count": ("add up",),
    "start": ("begin",),
    "buy": ("pay for",),
    "rent": ("hire",),
    "write": ("note down",),
    "fix": ("repair",),
    "close": ("shut",),
    "read": ("go through",),
}
NOUNS = tuple(
    "table room ticket parcel garden car desk file note list class lamp seat tour game boat song shop".split()
)
QUALIFIERS = ("first", "last", "start", "end", "old", "new", "home", "main")
FLAGS = ("urgent", "final", "paid", "secret")
CHOICES: dict[str, tuple[str, ...]] = {
    "color": ("red", "green", "blue", "white"),
    "size": ("small", "medium", "large"),
    "speed": ("slow", "normal", "fast"),
}
_QUALIFIED = ("city", "date", "time", "name", "mail", "code", "price")


class Base(NamedTuple):
    """What a parameter can stand for: its kind of value, other words for it, and phrases that tell it alone."""

    kind: Kind
    words: tuple[str, ...]
    phrases: tuple[str, ...]


BASES: dict[str, Base] = {
    "city": Base(PLACE, ("place",), ("in {x}", "near {x}")),
    "date": Base(DATE, ("day",), ("on {x}", "dated {x}")),
    "time": Base(TIME, ("hour",), ("at {x}",)),
    "name": Base(NAME, ("person",), ("for {x}", "on behalf of {x}")),
    "mail": Base(EMAIL, ("address",), ("by mail to {x}",)),
    "code": Base(IDENTIFIER, ("number",), ("filed as {x}",)),
    "price": Base(PRICE, ("cost",), ("at most {x}", "paying {x}")),
    "count": Base(count(2, 99), ("total",), ("for {x} people",)),
    "length": Base(count(2, 99), ("stay",), ("for {x} days",)),
}


class Parameter(NamedTuple):
    """One parameter: its key and schema, words and phrases that a request may use for it, and how to draw a value."""

    key: str
    schema: dict[str, Any]
    words: tuple[str, ...]
    phrases: tuple[str, ...]
    draw: Callable[[Random, Split], Any]


class Tool(NamedTuple):
    """One tool: its name is `verb_noun`."""

    verb: str
    noun: str
    parameters: tuple[Parameter, ...]

    @property
    def name(self) -> str:
        """The name that a call spells."""
        return f"{self.verb}_{self.noun}"


def draw_tools(rng: Random, split: Split, sizes: Sequence[int], handed: str = "") -> list[Tool]:
    """Draw tools of different names, with as many parameters as `sizes` says.

    `handed` is the key of a parameter that the second tool has and the first has not.
    In half of the sets all tools share their verb or their noun, so that half a name does not tell them apart.
    Returns: as many tools as sizes.
    """
    names = _draw_names(rng, split, len(sizes))
    return [
        Tool(verb, noun, _draw_parameters(rng, split, size, handed if index == 1 else "", handed if index == 0 else ""))
        for index, ((verb, noun), size) in enumerate(zip(names, sizes, strict=True))
    ]


def declare(tool: Tool, *, described: bool, required: Sequence[str]) -> dict[str, Any]:
    """Write a tool as a client declares it; `described` adds a description, `required` the keys that must be given.

    Returns: the declaration.
    """
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.key: parameter.schema for parameter in tool.parameters},
    }
    if required:
        parameters["required"] = list(required)
    function: dict[str, Any] = {"name": tool.name, "parameters": parameters}
    if described:
        function["description"] = f"{tool.verb.capitalize()} a {tool.noun}."
    return {"type": "function", "function": function}


def base_parameter(key: str) -> Parameter:
    """The parameter that is called as its base is.

    Returns: the parameter.
    """
    kind, words, phrases = BASES[key]
    return Parameter(key, {"type": kind.json_type}, (key, *words), phrases, _read(kind))


def _draw_names(rng: Random, split: Split, size: int) -> list[tuple[str, str]]:
    names = [
        (verb, noun) for verb, noun in product(VERBS, NOUNS) if is_held_out(f"{verb}_{noun}", 4) == (split == "test")
    ]
    first = rng.choice(names)
    alike = [name for name in names if name != first and (name[0] == first[0] or name[1] == first[1])]
    others = alike if rng.random() < 0.5 else [name for name in names if name != first]
    return [first, *rng.sample(others, size - 1)]


def _draw_parameters(rng: Random, split: Split, size: int, has: str, lacks: str) -> tuple[Parameter, ...]:
    found = {has: base_parameter(has)} if has else {}
    while len(found) < size:
        parameter = _draw_parameter(rng, split)
        if parameter.key != lacks:
            found.setdefault(parameter.key, parameter)
    return tuple(rng.sample(list(found.values()), size))


def _draw_parameter(rng: Random, split: Split) -> Parameter:
    chance = rng.random()
    if chance < 0.55:
        return base_parameter(rng.choice(list(BASES)))
    if chance < 0.85:
        return _draw_qualified(rng, split)
    if chance < 0.93:
        key = rng.choice(list(CHOICES))
        choices = rng.sample(CHOICES[key], 2)
        schema = {"type": "string", "enum": choices}
        return Parameter(key, schema, (key,), (), lambda rng, split: rng.choice(choices))
    return Parameter(rng.choice(FLAGS), {"type": "boolean"}, (), (), lambda rng, split: rng.random() < 0.7)


def _draw_qualified(rng: Random, split: Split) -> Parameter:
    pairs = [
        (qualifier, base)
        for qualifier, base in product(QUALIFIERS, _QUALIFIED)
        if is_held_out(f"{qualifier}_{base}", 4) == (split == "test")
    ]
    qualifier, base = rng.choice(pairs)
    kind = BASES[base].kind
    return Parameter(f"{qualifier}_{base}", {"type": kind.json_type}, (f"{qualifier} {base}",), (), _read(kind))


def _read(kind: Kind) -> Callable[[Random, Split], Any]:
    convert: Callable[[str], Any] = {"string": str, "integer": int, "number": float}[kind.json_type]
    return lambda rng, split: convert(kind.draw(rng, split))
