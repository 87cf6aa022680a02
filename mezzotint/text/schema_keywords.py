"""The keywords of JSON Schema: which are honoured, say nothing or are refused, and how old drafts wrote them."""

from collections.abc import Mapping
from itertools import chain
from types import UnionType
from typing import Any

from mezzotint.text.schema_patterns import FORMATS, translate_pattern

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
BRANCHES = ("$ref", "allOf", "anyOf", "oneOf")
KEYWORDS_OF = {
    "string": "minLength maxLength pattern format".split(),
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split(),
    "array": "items prefixItems minItems maxItems".split(),
    "object": "properties required additionalProperties patternProperties minProperties maxProperties".split(),
}
OWN = frozenset(["type", "enum", "const", *chain.from_iterable(KEYWORDS_OF.values())])
_COUNTS = "minLength maxLength minItems maxItems minProperties maxProperties".split()
_MOST_OPTIONS = 1024
_NOTES = frozenset(
    "$schema $id id $anchor $dynamicAnchor $recursiveAnchor $comment $vocabulary $defs definitions title description "
    "default examples example deprecated readOnly writeOnly".split()
)
_CONTENT = ("contentEncoding", "contentMediaType", "contentSchema")  # notes since 2019-09
_SHAPES: dict[str, type | UnionType] = {
    **dict.fromkeys("required enum prefixItems allOf anyOf oneOf".split(), list),
    **dict.fromkeys("properties patternProperties".split(), dict),
    **dict.fromkeys("items additionalProperties".split(), dict | bool),
    "pattern": str,
}
# Keywords that are not honoured, with the values that say nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "not": (False,),
    "if": (),
    "uniqueItems": (False,),
    "contains": (),
    "propertyNames": (True, {}),
    "dependencies": ({},),
    "propertyDependencies": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "unevaluatedItems": (True, {}),
    "unevaluatedProperties": (True, {}),
    "$dynamicRef": (),
    "$recursiveRef": (),
}
_ADDENDA = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}  # nothing without these
_REMEDY = {
    "not": "say what is allowed instead",
    "if": "use anyOf with one schema for each case",
    "uniqueItems": "leave it out and check the answer, or name the items as properties",
    "contains": "use prefixItems for what must be there",
    "propertyNames": "use patternProperties",
    "dependencies": "use anyOf with one schema for each case",
    "propertyDependencies": "use anyOf with one schema for each case",
    "dependentRequired": "use anyOf with one schema for each case",
    "dependentSchemas": "use anyOf with one schema for each case",
    "unevaluatedItems": "use items",
    "unevaluatedProperties": "use additionalProperties",
    "$dynamicRef": "use $ref",
    "$recursiveRef": "use $ref",
}


def read_keywords(schema: Mapping[str, Any], draft: int) -> dict[str, Any]:
    """Check a schema's own keywords and write them as draft 2020-12 does, in their order.

    A keyword that no draft knows says nothing, as the drafts have it.
    Returns: the keywords that are honoured, schemas in them as they were.
    Raises: ValueError for one that is not, or whose value is malformed.
    """
    if draft < 2019 and "$ref" in schema:
        return {"$ref": schema["$ref"]}  # its neighbours say nothing there
    _refuse(schema, draft)
    found = {key: value for key, value in _modernize(schema, draft).items() if key in OWN or key in BRANCHES}
    for key in _COUNTS:
        if key in found:
            found[key] = _read_count(key, found[key])
    if "type" in found:
        found["type"] = _read_types(found["type"])
    _check_shapes(found)
    return _write_patterns(found)


def _refuse(schema: Mapping[str, Any], draft: int) -> None:
    for keyword, neutral in _NEUTRAL.items():
        if keyword in schema and not any(schema[keyword] is each or schema[keyword] == each != 0 for each in neutral):
            raise ValueError(f"the keyword {keyword} is not honoured; {_REMEDY[keyword]}")
    for keyword in _CONTENT:
        if keyword in schema and draft < 2019:
            raise ValueError(f"the keyword {keyword} is not honoured; leave it out, or use pattern")


def _modernize(schema: Mapping[str, Any], draft: int) -> dict[str, Any]:
    found = dict(schema)
    if draft == 4:
        for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            is_exclusive = found.pop(exclusive, False)
            if is_exclusive is True and bound in found:
                found[exclusive] = found.pop(bound)
    if draft < 2020:
        found.pop("prefixItems", None)
        if isinstance(found.get("items"), list):
            renamed = {"items": "prefixItems", "additionalItems": "items"}
            found = {renamed.get(key, key): value for key, value in found.items()}
    return found


def _read_count(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value != int(value):
        raise ValueError(f"{key} is {value!r}; it must be a whole number from 0 on")
    return int(value)


def _read_types(value: Any) -> list[str]:
    types = [value] if isinstance(value, str) else value
    if not isinstance(types, list) or not types or not all(each in TYPES for each in types):
        raise ValueError(f"type is {value!r}; use {', '.join(TYPES)}, or a list of them")
    return types


def _write_patterns(found: dict[str, Any]) -> dict[str, Any]:
    """Patterns in the grammar's dialect; a format becomes one, or says nothing where there are no strings."""
    format = found.pop("format", None)
    if "pattern" in found:
        found["pattern"] = translate_pattern(found["pattern"])
    if "patternProperties" in found:
        found["patternProperties"] = {translate_pattern(key): it for key, it in found["patternProperties"].items()}
    if format is None or "string" not in found.get("type", TYPES):
        return found
    if format not in FORMATS:
        raise ValueError(f"format {format!r} is not known; use one of {', '.join(FORMATS)}, or a pattern")
    if "pattern" in found:
        return found | {"allOf": [*found.get("allOf", ()), {"pattern": f"^(?:{FORMATS[format]})$"}]}
    return found | {"pattern": f"^(?:{FORMATS[format]})$"}


def _check_shapes(found: Mapping[str, Any]) -> None:
    for key, shape in _SHAPES.items():
        if key in found and not isinstance(found[key], shape):
            raise ValueError(f"{key} is {found[key]!r}, which draft 2020-12 does not allow there; correct the schema")
    if not all(isinstance(name, str) for name in found.get("required", ())):
        raise ValueError(f"required is {found['required']!r}; it must be a list of names")
    for key in KEYWORDS_OF["number"]:
        if isinstance(found.get(key, 0), bool) or not isinstance(found.get(key, 0), int | float):
            raise ValueError(f"{key} is {found[key]!r}; it must be a number")
    if len(found.get("enum", ())) > _MOST_OPTIONS:
        raise ValueError(f"an enum has {len(found['enum'])} values; at most {_MOST_OPTIONS} are allowed")
