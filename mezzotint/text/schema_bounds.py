"""Bounds for what a JSON Schema leaves endless: strings, numbers, arrays; which schemas these are is for `schema`.

Each function takes the keywords of one schema and returns them with what was added. Nothing is ever widened.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

_SEPARATORS = {"item_separator": ",", "key_separator": ":"}
_FEWEST_STEPS = 10  # multiples of a decimal step that a range of numbers must hold
_SMALLEST_STEP = 15  # digits behind the point


@dataclass(frozen=True, kw_only=True)
class JsonForm:
    """How JSON is written, and how far it goes where a schema sets no bound.

    item_separator, key_separator: a comma and a colon, with up to eight spaces; no other white space is written.
    max_string: characters. max_items, max_members: items of an array, keys that a schema does not name.
    max_number: absolute value. decimals: digits behind the point. max_depth: values in values of any kind.
    """

    item_separator: str = ","
    key_separator: str = ":"
    max_string: int = 512
    max_items: int = 64
    max_members: int = 16
    max_number: int = 2**53 - 1
    decimals: int = 6
    max_depth: int = 3

    def __post_init__(self) -> None:
        """Check each field. Raises: ValueError naming it."""
        for name, mark in _SEPARATORS.items():
            value = getattr(self, name)
            if value.strip(" ") != mark or len(value) > 9:
                raise ValueError(f"{name} is {value!r}; use {mark!r} with at most eight spaces")
        for name in ("max_string", "max_items", "max_members", "max_number", "decimals", "max_depth"):
            if not 1 <= getattr(self, name) <= 2**53 - 1:
                raise ValueError(f"{name} is {getattr(self, name)}; use 1 to {2**53 - 1}")


COMPACT = JsonForm()


def bound_string(schema: Mapping[str, Any], form: JsonForm) -> dict[str, Any]:
    """Returns: the keywords that bound a string's length."""
    return {} if "maxLength" in schema else {"maxLength": max(form.max_string, schema.get("minLength", 0))}


def bound_number(schema: Mapping[str, Any], form: JsonForm, *, integer: bool) -> dict[str, Any]:
    """Returns: the keywords that bound a number's value and its digits behind the point."""
    added: dict[str, Any] = {}
    low, high = _first(schema, "minimum", "exclusiveMinimum"), _first(schema, "maximum", "exclusiveMaximum")
    if low is None or low < -form.max_number:
        added["minimum"] = -form.max_number if high is None or high > -form.max_number else math.floor(2 * high)
    if high is None or high > form.max_number:
        added["maximum"] = form.max_number if low is None or low < form.max_number else math.ceil(2 * low)
    if not integer and "multipleOf" not in schema:
        low, high = added.get("minimum", low), added.get("maximum", high)
        step = next((step for step in range(form.decimals, _SMALLEST_STEP) if _holds(low, high, step)), None)
        if step is not None:
            added["multipleOf"] = 10.0**-step
    return added


def bound_array(schema: Mapping[str, Any], form: JsonForm) -> dict[str, Any]:
    """Returns: the keywords that bound an array's length."""
    if "maxItems" in schema or schema.get("items") is False:
        return {}
    return {"maxItems": max(form.max_items, schema.get("minItems", 0), len(schema.get("prefixItems", ())))}


def _first(schema: Mapping[str, Any], *keywords: str) -> Any:
    return next((schema[keyword] for keyword in keywords if keyword in schema), None)


def _holds(low: float, high: float, digits: int) -> bool:
    """Whether a range holds enough numbers of so many digits behind the point."""
    step = Decimal(1).scaleb(-digits)
    last = (Decimal(str(high)) / step).to_integral_value(ROUND_FLOOR)
    first = (Decimal(str(low)) / step).to_integral_value(ROUND_CEILING)
    return last - first >= _FEWEST_STEPS
