"""JSON Schemas made ready for a grammar: what cannot be honoured is refused by name, what is endless is bounded.

What comes out accepts nothing that the schema refuses: a keyword is kept, made narrower, or refused. It is written in
draft 2020-12 without addresses; whether any answer is left is for the grammar to say.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from llguidance import LLMatcher

from mezzotint.text.schema_bounds import COMPACT, JsonForm, bound_array, bound_number, bound_string
from mezzotint.text.schema_choices import check_choices
from mezzotint.text.schema_document import Document, Place
from mezzotint.text.schema_keywords import BRANCHES, KEYWORDS_OF, OWN, read_keywords
from mezzotint.text.schema_members import Named, close_object, count_members

__all__ = ["COMPACT", "JsonForm", "Narrowed", "narrow_schema"]

_SCALARS = ["null", "boolean", "number", "string"]
_NOTHING_NAMED = Named((), describes_others=False)


class Narrowed(NamedTuple):
    """A schema as a grammar takes it; `restricted` says by which keywords it was narrowed, and in how many places."""

    schema: dict[str, Any] | bool
    restricted: dict[str, int]


def narrow_schema(schema: Mapping[str, Any] | bool, form: JsonForm = COMPACT) -> Narrowed:
    """Check a JSON Schema and narrow it to what can be written and ends by itself.

    Strings, numbers, arrays and objects without bounds get those of `form`. An object that names properties and does
    not describe others has no others. A schema without a type has the types that its keywords speak of.
    Returns: a schema in draft 2020-12 whose references all lead to its own $defs.
    Raises: ValueError for a keyword that is not honoured, naming it, and for a reference that leads elsewhere.
    Source: contract 12.
    """
    document = Document(schema)
    narrower = _Narrower(document, form)
    narrowed = narrower.narrow(Place(document.root, "", ""), frozenset(), alone=True)
    check_choices(narrowed, narrower.definitions)
    if narrower.definitions and isinstance(narrowed, dict):
        narrowed["$defs"] = narrower.definitions
    return Narrowed(narrowed, dict(narrower.restricted))


class _Narrower:
    """A walk through one document: the definitions that it made, and what it narrowed.

    `alone` says that nothing else describes the same value: only there may an object be closed. `seen` holds the
    schemas that led here for the same value. Without a form nothing is narrowed, only rewritten.
    """

    def __init__(self, document: Document, form: JsonForm | None) -> None:
        self._document, self._form = document, form
        self._names: dict[tuple[int, bool], str] = {}
        self._named: dict[int, Named] = {}
        self._plain: _Narrower | None = None
        self.definitions: dict[str, Any] = {}
        self.restricted: Counter[str] = Counter()

    def narrow(self, place: Place, seen: frozenset[int] = frozenset(), *, alone: bool) -> dict[str, Any] | bool:
        schema = place.schema
        if schema is False or (schema is True and not alone):
            return bool(schema)
        found, base = self._read(place, seen)
        if not found:
            return self._narrow_anything() if alone else True
        branches = [key for key in BRANCHES if key in found]
        merges = len(branches) != 1 or len(found) > 1 or len(found.get("allOf", ())) > 1
        inner = alone and not (branches and merges)
        own = self._narrow_own(found, base, inner=inner)
        if self._form and alone and merges:
            named = self._find_named(found, base, seen)
            if named.names or "object" in own.get("type", ()):
                own |= close_object(own, named, self._narrow_anything, self._form, self.restricted)
        if self._form and own:
            own = count_members(own, self.restricted)
        narrowed: dict[str, Any] = {}
        for key in found:  # their order is that of the properties
            if key in BRANCHES:
                self._add_branches(narrowed, key, found[key], base, seen | {id(schema)}, alone=inner)
            elif key in own:
                narrowed[key] = own[key]
        return narrowed | own

    def _read(self, place: Place, seen: frozenset[int]) -> tuple[dict[str, Any], str]:
        """A schema's keywords, and where its references start from."""
        if place.schema is True:
            return {}, place.base
        if not isinstance(place.schema, dict):
            raise ValueError(f"a schema is {place.schema!r}; it must be an object, true or false")
        _check_new(place, seen)
        return read_keywords(place.schema, self._document.draft), self._document.base_of(place.schema, place.base)

    def _add_branches(
        self, narrowed: dict[str, Any], key: str, value: Any, base: str, seen: frozenset[int], *, alone: bool
    ) -> None:
        if key == "$ref":
            narrowed["$ref"] = self._refer(self._document.find(value, base), seen, alone=alone)
            return
        if key == "oneOf" and self._form and len(value) > 1:
            self._check_told_apart(value, base)
        branches = [self.narrow(Place(each, base, ""), seen, alone=alone) for each in value]
        if key == "oneOf" and self._form:  # no value fits two of them
            narrowed.setdefault("allOf", []).append({"anyOf": branches})
        elif key == "allOf":
            narrowed.setdefault("allOf", []).extend(branches)
        else:
            narrowed[key] = branches

    def _refer(self, place: Place, seen: frozenset[int], *, alone: bool) -> str:
        """The address of a definition of what a reference names, made on first use."""
        _check_new(place, seen)
        key = (id(place.schema), alone)
        if key not in self._names:
            self._names[key] = name = f"d{len(self._names)}"
            self.definitions[name] = self.narrow(place, seen, alone=alone)
        return f"#/$defs/{self._names[key]}"

    def _check_told_apart(self, options: list[Any], base: str) -> None:
        """Refuse options of which a value may fit two; bounds would hide it."""
        plain = self._plain = self._plain or _Narrower(self._document, None)
        branches = [plain.narrow(Place(option, base, ""), alone=False) for option in options]
        grammar = LLMatcher.grammar_from_json_schema(json.dumps({"oneOf": branches, "$defs": plain.definitions}))
        if error := LLMatcher.validate_grammar(grammar):
            raise ValueError(
                f"the schemas of a oneOf cannot be told apart ({error.splitlines()[0]}); use anyOf, or require in each "
                "a property whose const is another string"
            )

    def _narrow_own(self, found: dict[str, Any], base: str, *, inner: bool) -> dict[str, Any]:
        """The keywords that are no branches, with bounds for what they leave endless."""
        own = {key: value for key, value in found.items() if key in OWN}
        if self._form and own and not own.keys() & {"enum", "const"}:
            if "type" not in own:
                own["type"] = [name for name, keywords in KEYWORDS_OF.items() if not own.keys().isdisjoint(keywords)]
                self.restricted["type"] += 1
            bounds = _bound(own, own["type"], self._form)
            self.restricted.update(bounds.keys())
            own |= bounds
            if "array" in own["type"] and inner:
                own.setdefault("items", True)
        for key in ("items", "additionalProperties"):
            if key in own and not (key == "additionalProperties" and own[key] in (True, {})):
                own[key] = self.narrow(Place(own[key], base, ""), alone=inner)
        if "prefixItems" in own:
            own["prefixItems"] = [self.narrow(Place(value, base, ""), alone=inner) for value in own["prefixItems"]]
        for key in ("properties", "patternProperties"):
            if key in own:
                values = own[key].items()
                own[key] = {name: self.narrow(Place(value, base, ""), alone=inner) for name, value in values}
        return own

    def _find_named(self, found: dict[str, Any], base: str, seen: frozenset[int]) -> Named:
        """What the branches of a schema, and theirs, say of members."""
        places = [Place(each, base, "") for key in BRANCHES[1:] for each in found.get(key, ())]
        if "$ref" in found:
            places.append(self._document.find(found["$ref"], base))
        below = [self._find_named_below(place, seen) for place in places]
        names = dict.fromkeys(name for named in below for name in named.names)
        return Named(tuple(names), describes_others=any(named.describes_others for named in below))

    def _find_named_below(self, place: Place, seen: frozenset[int]) -> Named:
        if isinstance(place.schema, bool):
            return _NOTHING_NAMED
        if id(place.schema) not in self._named:
            found, base = self._read(place, seen)
            below = self._find_named(found, base, seen | {id(place.schema)})
            names = (*found.get("properties", ()), *found.get("required", ()), *below.names)
            is_silent = found.get("additionalProperties", True) in (True, {}) and "patternProperties" not in found
            self._named[id(place.schema)] = Named(names, below.describes_others or not is_silent)
        return self._named[id(place.schema)]

    def _narrow_anything(self, depth: int | None = None) -> dict[str, Any] | bool:
        """A value of any type, so many values deep."""
        if not self._form:
            return True
        if depth is None:
            self.restricted["anything"] += 1
            depth = self._form.max_depth
        name = f"any{depth}"
        if name not in self.definitions:
            scalar = {"type": _SCALARS, **_bound({}, _SCALARS, self._form)}
            self.definitions[name] = scalar
            if depth:
                inner = self._narrow_anything(depth - 1)
                array = {"type": "array", "items": inner, **bound_array({}, self._form)}
                members = close_object({"additionalProperties": inner}, _NOTHING_NAMED, dict, self._form, Counter())
                self.definitions[name] = {"anyOf": [scalar, array, {"type": "object", **members}]}
        return {"$ref": f"#/$defs/{name}"}


def _check_new(place: Place, seen: frozenset[int]) -> None:
    if id(place.schema) in seen:
        raise ValueError("a $ref leads back to itself before it says anything; give the schema in between a type")


def _bound(own: Mapping[str, Any], types: list[str], form: JsonForm) -> dict[str, Any]:
    bounds: dict[str, Any] = {}
    if "string" in types:
        bounds |= bound_string(own, form)
    if "number" in types or "integer" in types:
        bounds |= bound_number(own, form, integer="number" not in types)
    if "array" in types:
        bounds |= bound_array(own, form)
    return bounds
