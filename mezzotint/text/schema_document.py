"""One JSON Schema as a document: its draft, its limits, and where a reference within it leads; `schema` narrows it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

_LONGEST = 1 << 17  # characters
_DEEPEST = 64  # values in values
# The year of a draft orders it; "v1" goes on from 2020-12, and nothing that is honoured here differs.
_DRAFTS = {
    "http://json-schema.org/draft-04/schema": 4,
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-07/schema": 7,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    "https://json-schema.org/draft/2020-12/schema": 2020,
    "https://json-schema.org/v1": 2020,
}
_SCHEMA_OF_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SCHEMA = (
    "items additionalItems unevaluatedItems contains additionalProperties unevaluatedProperties propertyNames "
    "not if then else"
).split()


class Place(NamedTuple):
    """A schema within the document, the address that its references start from, and its own address."""

    schema: Any
    base: str
    address: str


class Document:
    """A whole schema; `draft` is 4, 6, 7, 2019 or 2020, and 2020 where it does not say."""

    def __init__(self, schema: Mapping[str, Any] | bool) -> None:
        """Check the size and draft of a schema, and find what its references can name.

        Raises: ValueError for one that is not JSON, too long, too deep, or of a draft that is not known.
        """
        self.root: dict[str, Any] | bool = json.loads(write_json(schema))
        if (depth := _depth(self.root)) > _DEEPEST:
            raise ValueError(f"the schema is nested {depth} values deep; at most {_DEEPEST} are allowed, so use $defs")
        named = self.root.get("$schema") if isinstance(self.root, dict) else None
        self.draft = _DRAFTS["https://json-schema.org/draft/2020-12/schema"]
        if named is not None:
            if not isinstance(named, str) or named.rstrip("#") not in _DRAFTS:
                raise ValueError(f"$schema is {named!r}; use one of {', '.join(_DRAFTS)}, or leave it out")
            self.draft = _DRAFTS[named.rstrip("#")]
        self._places = {"": Place(self.root, "", "")}
        self._index(self.root, "")

    def base_of(self, schema: Any, base: str) -> str:
        """The address that references in `schema` start from, which stands where they start from `base`."""
        name = _id_of(schema, self.draft)
        return urldefrag(_join(base, name)).url if name and not name.startswith("#") else base

    def find(self, reference: Any, base: str) -> Place:
        """Follow a reference from a schema whose references start from `base`.

        Returns: where it leads.
        Raises: ValueError for one that leads out of the document, or to nothing in it.
        """
        if not isinstance(reference, str):
            raise ValueError(f"$ref is {reference!r}; it must be a string")
        address, fragment = urldefrag(_join(base, reference))
        if not fragment.startswith("/"):
            found = self._places.get(f"{address}#{fragment}" if fragment else address)
        else:
            found = self._follow(self._places.get(address), unquote(fragment))
        if found is None:
            raise ValueError(
                f"$ref {reference!r} leads to nothing in this schema, and nothing is fetched; put it into $defs"
            )
        return found

    def _index(self, schema: Any, base: str) -> None:
        if not isinstance(schema, dict):
            return
        inner = self.base_of(schema, base)
        if inner != base:
            self._places.setdefault(inner, Place(schema, base, inner))
        for anchor in _anchors_of(schema, self.draft):
            self._places.setdefault(f"{inner}#{anchor}", Place(schema, base, f"{inner}#{anchor}"))
        for child in children(schema):
            self._index(child, inner)

    def _follow(self, start: Place | None, pointer: str) -> Place | None:
        if start is None:
            return None
        schema, base = start.schema, start.base
        for step in pointer.split("/")[1:]:
            base = self.base_of(schema, base)
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(schema, dict) and step in schema:
                schema = schema[step]
            elif isinstance(schema, list) and step.isdecimal() and int(step) < len(schema):
                schema = schema[int(step)]
            else:
                return None
        return Place(schema, base, f"{start.address}#{pointer}")


def write_json(schema: Mapping[str, Any] | bool) -> str:
    """Write a schema as JSON, properties in their order.

    Returns: the text.
    Raises: ValueError for what is no JSON or no schema, and for more than 131,072 characters.
    """
    if not isinstance(schema, Mapping | bool):
        raise ValueError(f"a schema is {schema!r}; give a JSON object, or true or false")
    try:
        text = json.dumps(schema if isinstance(schema, bool) else dict(schema), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the schema is not JSON: {error}; give what json.loads returns") from error
    if len(text) > _LONGEST:
        raise ValueError(f"the schema has {len(text)} characters of JSON; at most {_LONGEST} are allowed, so split it")
    return text


def children(schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that stand directly in a schema."""
    for keyword in _SCHEMA_OF_NAME:
        if isinstance(schema.get(keyword), dict):
            yield from schema[keyword].values()
    for keyword in _SCHEMAS:
        if isinstance(schema.get(keyword), list):
            yield from schema[keyword]
    for keyword in _SCHEMA:
        if isinstance(schema.get(keyword), dict):
            yield schema[keyword]


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level:
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level, depth = [value for values in inner for value in values], depth + 1
    return depth


def _id_of(schema: Any, draft: int) -> str | None:
    if not isinstance(schema, dict) or (draft < 2019 and "$ref" in schema):
        return None
    name = schema.get("id" if draft == 4 else "$id")
    return name if isinstance(name, str) else None


def _anchors_of(schema: Mapping[str, Any], draft: int) -> list[str]:
    if draft < 2019:
        name = _id_of(schema, draft)
        return [name[1:]] if name and name.startswith("#") else []
    return [name for key in ("$anchor", "$dynamicAnchor") if isinstance(name := schema.get(key), str)]


def _join(base: str, reference: str) -> str:
    return base + reference if reference.startswith("#") else urljoin(base, reference)
