"""How many cases a narrowed schema makes of one value where its parts are merged: a bound on the grammar's work."""

from collections.abc import Mapping
from math import prod
from typing import Any

_MOST = 512  # cases; compiling takes a second


def check_choices(schema: Any, definitions: Mapping[str, Any]) -> None:
    """Refuse schemas whose choices, merged with one another, multiply.

    Raises: ValueError where anyOf and lists of types, all true of one value, make more than 512 cases.
    """
    known: dict[str, int] = {}
    for each in (schema, *definitions.values()):
        _check(each, definitions, known)


def _check(schema: Any, definitions: Mapping[str, Any], known: dict[str, int]) -> None:
    if isinstance(schema, dict):
        factors = [factor for factor in _factors(schema, definitions, known) if factor > 1]
        if len(factors) > 1 and prod(factors) > _MOST:
            raise ValueError(
                f"the choices of a schema multiply to {prod(factors)} cases; at most {_MOST} are allowed, so write the "
                "cases that are meant as one anyOf"
            )
    if isinstance(schema, dict | list):
        for each in schema.values() if isinstance(schema, dict) else schema:
            _check(each, definitions, known)


def _factors(schema: Mapping[str, Any], definitions: Mapping[str, Any], known: dict[str, int]) -> list[int]:
    factors = [len(types)] if isinstance(types := schema.get("type"), list) else []
    if isinstance(branches := schema.get("allOf"), list):
        factors += [_count(branch, definitions, known) for branch in branches]
    if isinstance(branches := schema.get("anyOf"), list):
        factors.append(sum(_count(branch, definitions, known) for branch in branches))
    if isinstance(reference := schema.get("$ref"), str):
        name = reference.rpartition("/")[2]
        if name not in known:
            known[name] = _count(definitions.get(name), definitions, known)
        factors.append(known[name])
    return factors


def _count(schema: Any, definitions: Mapping[str, Any], known: dict[str, int]) -> int:
    return min(prod(_factors(schema, definitions, known)), 10**9) if isinstance(schema, dict) else 1
