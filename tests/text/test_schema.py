"""Schemas made narrower: what is added, what is refused, and that every answer is valid as jsonschema-rs judges."""

import json
from collections import Counter
from itertools import product
from operator import attrgetter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from llguidance import LLMatcher

from mezzotint.text.grammar import Grammar
from mezzotint.text.schema import JsonForm, narrow_schema
from tests.text.walks import DRAFTS, Group, accepts, is_valid, lab_grammars, lab_tokenizer, read_suite, walk_to_end

WIDEST = 2**53 - 1


@pytest.fixture(scope="module")
def suite(data_dir: Path) -> list[Group]:
    return read_suite(data_dir)


@pytest.fixture(scope="module")
def compiled(suite: list[Group]) -> list[tuple[Group, Grammar]]:
    """The groups of the suite that are accepted."""
    accepted = []
    for group in suite:
        try:
            accepted.append((group, lab_grammars().from_schema(group.declared)))
        except ValueError:
            continue
    return accepted


def takes(schema: Any, value: Any) -> bool:
    """Whether the grammar of a schema has the value, written compactly."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return accepts(lab_grammars().from_schema(schema).start(), lab_tokenizer().encode_text(text))


def narrowed(schema: Any) -> Any:
    return narrow_schema(schema).schema


def test_of_the_public_suite_no_fewer_schemas_are_accepted_than_by_llguidance_alone(
    suite: list[Group], compiled: list[tuple[Group, Grammar]]
) -> None:
    schemas = [group for group in suite if isinstance(group.schema, dict)]
    plain, declared = (
        Counter(
            group.draft
            for group in schemas
            if not LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(json.dumps(read(group))))
        )
        for read in (attrgetter("schema"), attrgetter("declared"))
    )
    ours = Counter(group.draft for group, _ in compiled)
    assert ours.total() > 1.2 * max(plain.total(), declared.total()) > 1_000
    for draft in ours:
        assert ours[draft] >= max(plain[draft], declared[draft])
    assert set(DRAFTS) - set(ours) == {"draft3"}  # refused: llguidance reads it as if it were a later one


def test_no_invalid_instance_of_the_public_suite_is_in_its_grammar(compiled: list[tuple[Group, Grammar]]) -> None:
    valid: Counter[bool] = Counter()
    for group, grammar in compiled:
        for test in group.tests:
            text = json.dumps(test["data"], separators=(",", ":"), ensure_ascii=False)
            taken = accepts(grammar.start(), lab_tokenizer().encode_text(text))
            assert test["valid"] or not taken, (group, text)
            if test["valid"]:
                valid[taken] += 1
    assert valid[True] / valid.total() > 0.6  # the others are not the shape that a narrowed schema writes


def test_random_answers_under_schemas_of_the_public_suite_are_valid(compiled: list[tuple[Group, Grammar]]) -> None:
    chosen = compiled[::3]
    assert len(chosen) >= 300
    for seed, (group, grammar) in enumerate(chosen):
        text = lab_tokenizer().decode(walk_to_end(grammar.start(), Random(seed), seed % 40))
        assert is_valid(group.schema, json.loads(text), group.draft), (group, text)


def test_random_answers_under_random_nested_schemas_are_valid() -> None:
    written = 0
    for seed in range(150):
        rng = Random(seed)
        schema = draw_schema(rng, 3)
        grammar = lab_grammars().from_schema(schema)
        for steps in (0, 4, 30):
            text = lab_tokenizer().decode(walk_to_end(grammar.start(), rng, steps))
            assert is_valid(schema, json.loads(text)), (schema, text)
            written += 1
    assert written == 450


def draw_schema(rng: Random, depth: int) -> dict[str, Any]:
    kinds = ["string", "integer", "number", "enum", "format", "pattern", "null"]
    kind = rng.choice(kinds + ["object", "object", "array", "anyOf", "allOf", "oneOf", "$ref", "map"] * (depth > 0))
    low, high = sorted(rng.sample(range(-500, 500), 2))
    match kind:
        case "string":
            return {"type": "string", "minLength": rng.randrange(3), "maxLength": rng.randint(3, 20)}
        case "integer":
            return {"type": "integer", "minimum": low, "exclusiveMaximum": high + 1}
        case "number":
            return {
                "type": ["number", "null"],
                "minimum": low / 8,
                **({"multipleOf": 0.25} if rng.random() < 0.5 else {}),
            }
        case "enum":
            return {"enum": rng.sample(["a", "ab", 'q"\\', "é", 1, 2.5, None, True, [1], {"k": "v"}], 3)}
        case "format":
            return {
                "type": "string",
                "format": rng.choice(["date", "time", "date-time", "email", "uuid", "ipv4", "uri"]),
            }
        case "pattern":
            return {"type": "string", "pattern": rng.choice([r"^[a-z]{2,4}$", r"\d", r"^\S+\s", "^(ab|c)*$", "x.y"])}
        case "null":
            return {"type": ["null", "boolean"]}
        case "array":
            least = rng.randrange(3)
            return {"type": "array", "items": draw_schema(rng, depth - 1), "minItems": least, "maxItems": least + 2}
        case "anyOf":
            return {"anyOf": [draw_schema(rng, depth - 1) for _ in range(2)]}
        case "map":
            return {"type": "object", "additionalProperties": draw_schema(rng, depth - 1), "maxProperties": 2}
        case "allOf":
            parts = [draw_object(rng, depth - 1, prefix) for prefix in "xy"]
            return {"allOf": parts, "properties": {"own": draw_schema(rng, 0)}}
        case "oneOf":
            tagged = [draw_object(rng, depth - 1, "") for _ in range(2)]
            for index, option in enumerate(tagged):
                option["properties"]["kind"] = {"const": f"kind {index}"}
                option["required"] = [*option["required"], "kind"]
            return {"oneOf": tagged}
        case "$ref":
            leaf = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": []}
            return {"$defs": {"node": leaf}, **draw_object(rng, depth - 1, "")} if depth == 3 else leaf_of(rng)
        case _:
            return draw_object(rng, depth - 1, "")


def leaf_of(rng: Random) -> dict[str, Any]:
    return {"type": "string", "maxLength": rng.randint(1, 9)}


def draw_object(rng: Random, depth: int, prefix: str) -> dict[str, Any]:
    names = rng.sample(["a", "ab", "b c", "é", "z", 'q"'], rng.randint(1, 4))
    properties = {prefix + name: draw_schema(rng, depth) for name in names}
    required = [name for name in properties if rng.random() < 0.5]
    return {"type": "object", "properties": properties, "required": required}


@pytest.mark.parametrize(
    ("schema", "added"),
    [
        ({"type": "string"}, {"maxLength": 512}),
        ({"type": "string", "minLength": 600}, {"maxLength": 600}),
        ({"type": "string", "maxLength": 9000}, {}),
        ({"type": "integer"}, {"minimum": -WIDEST, "maximum": WIDEST}),
        ({"type": "integer", "minimum": 0, "maximum": 1e300}, {"maximum": WIDEST}),
        ({"type": "number", "minimum": -1, "exclusiveMaximum": 1}, {"multipleOf": 1e-6}),
        ({"type": "number", "minimum": 0, "maximum": 1e-5}, {"multipleOf": 1e-6}),
        ({"type": "number", "minimum": 0, "maximum": 1e-6}, {"multipleOf": 1e-7}),
        ({"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5}, {}),
        ({"type": "number", "exclusiveMinimum": 2**60}, {"maximum": 2**61, "multipleOf": 1e-6}),
        ({"type": "array", "items": {"type": "null"}}, {"maxItems": 64}),
        ({"type": "array", "items": {"type": "null"}, "minItems": 99}, {"maxItems": 99}),
        ({"type": "array", "prefixItems": [{"type": "null"}], "items": False}, {}),
    ],
)
def test_what_has_no_bound_gets_one(schema: dict[str, Any], added: dict[str, Any]) -> None:
    found = narrow_schema(schema)
    assert isinstance(found.schema, dict)
    assert {key: value for key, value in found.schema.items() if schema.get(key) != value} | added == {
        **added,
        "type": [schema["type"]],
        **({"items": {"type": ["null"]}} if schema.get("items") else {}),
        **({"prefixItems": [{"type": ["null"]}]} if "prefixItems" in schema else {}),
    }
    assert found.restricted == dict.fromkeys((key for key in added if schema.get(key) != added[key]), 1)


def test_bounds_and_separators_are_the_callers() -> None:
    form = JsonForm(item_separator=", ", key_separator=": ", max_string=3, max_items=2, max_number=50, decimals=1)
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array"}}, "required": ["a", "b"]}
    encode = lab_tokenizer().encode_text
    for text, allowed in (
        ('{"a": "xyz", "b": [1.5, 50]}', True),
        ('{"a":"xyz","b":[]}', False),
        ('{"a": "xyzw", "b": []}', False),
        ('{"a": "", "b": [1, 2, 3]}', False),
        ('{"a": "", "b": [1.55]}', False),
        ('{"a": "", "b": [51]}', False),
    ):
        assert accepts(lab_grammars().from_schema(schema, form).start(), encode(text)) == allowed, text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("item_separator", ";"),
        ("item_separator", "," + 9 * " "),
        ("key_separator", ":\n"),
        ("max_string", 0),
        ("decimals", -1),
    ],
)
def test_a_form_that_is_no_json_or_no_bound_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{field} is "):
        JsonForm(**{field: value})


def test_an_object_that_is_silent_about_other_members_has_none() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]}
    assert takes(schema, {"a": 1, "b": [2, {"c": None}]})
    assert not takes(schema, {"a": 1, "b": 2, "c": 3})
    assert not takes({**schema, "additionalProperties": True}, {"b": 2, "c": 3})
    assert takes({**schema, "additionalProperties": {"type": "integer"}}, {"b": 2, "c": 3})
    assert narrow_schema(schema).restricted["additionalProperties"] == 1


def test_an_object_of_any_members_is_bounded_in_their_number_and_keys() -> None:
    schema = {"type": "object"}
    assert takes(schema, {f"k{index}": 0 for index in range(16)})
    assert not takes(schema, {f"k{index}": 0 for index in range(17)})
    assert not takes(schema, {"k" * 65: 0})
    assert takes({**schema, "maxProperties": 20}, {f"k{index}": 0 for index in range(20)})


def test_a_value_of_any_kind_ends_by_itself() -> None:
    assert takes({}, {"a": [{"b": "deep enough"}]})
    assert takes({"description": "anything"}, [[[1]]])
    assert not takes({}, [[[[1]]]])
    assert narrow_schema({}) == narrow_schema(schema=True)


def test_parts_that_describe_one_object_together_are_closed_together() -> None:
    schema = {
        "$defs": {"base": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"name": {"type": "string"}}}],
        "properties": {"own": {"type": "boolean"}},
    }
    assert takes(schema, {"id": 1, "name": "x", "own": True})
    assert not takes(schema, {"id": 1, "other": 2})
    assert not takes(schema, {"name": "x"})
    described = {"allOf": [{"properties": {"a": {"type": "null"}}}, {"additionalProperties": {"type": "integer"}}]}
    assert takes({"type": "object", **described}, {"b": 1}) is True


def test_one_part_alone_is_closed_as_if_it_stood_there_itself() -> None:
    base = {"type": "object", "properties": {"id": {"type": "integer"}}}
    for schema in ({"allOf": [base]}, {"$defs": {"b": base}, "$ref": "#/$defs/b", "title": "B"}, {"anyOf": [base]}):
        assert takes(schema, {"id": 1})
        assert not takes(schema, {"id": 1, "other": 2})


def test_schemas_of_a_one_of_are_told_apart_before_they_are_narrowed() -> None:
    first = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    second = {"type": "object", "properties": {"b": {"type": "integer"}}}
    with pytest.raises(ValueError, match="oneOf cannot be told apart"):
        narrow_schema({"oneOf": [first, second]})
    tagged = [
        {**each, "properties": {"k": {"const": k}}, "required": ["k"]}
        for k, each in zip("xy", (first, second), strict=True)
    ]
    assert takes({"oneOf": tagged}, {"k": "y"})
    assert takes({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "x")


def test_members_are_counted_by_their_names() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"]}
    values = [
        dict.fromkeys(name for name, is_in in zip("abc", here, strict=True) if is_in)
        for here in product((0, 1), repeat=3)
    ]
    for bound in ({"minProperties": 2}, {"maxProperties": 1}, {"minProperties": 3, "maxProperties": 3}):
        taken = [value for value in values if takes({**schema, **bound}, value)]
        assert taken
        assert all(is_valid({**schema, **bound}, value) for value in taken)
    assert narrow_schema({**schema, "minProperties": 2}).restricted["minProperties"] == 1
    assert narrow_schema({**schema, "maxProperties": 1}).restricted["maxProperties"] == 1
    with pytest.raises(ValueError, match="minProperties is 2, and 0 members have names; name more"):
        narrow_schema({"type": "object", "minProperties": 2})
    assert takes({"type": "object", "minProperties": 1}, {"a": 1})
    assert not takes({"type": "object", "minProperties": 1}, {})


def test_a_schema_without_a_type_has_those_that_its_keywords_speak_of() -> None:
    assert takes({"minLength": 2}, "ab")
    assert not takes({"minLength": 2}, 7)
    assert takes({"minimum": 3, "properties": {"a": {"type": "null"}}}, {"a": None})
    assert narrow_schema({"minLength": 2}).restricted["type"] == 1
    assert takes({"enum": [7, "abc"], "minLength": 2}, 7)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"not": {"type": "string"}}, "keyword not is not honoured; say what is allowed"),
        ({"uniqueItems": True}, "keyword uniqueItems is not honoured; leave it out"),
        ({"properties": {"a": {"if": {}, "then": {}}}}, "keyword if is not honoured; use anyOf"),
        ({"items": {"contains": {}}}, "keyword contains is not honoured"),
        ({"dependentRequired": {"a": ["b"]}}, "keyword dependentRequired is not honoured"),
        ({"unevaluatedProperties": False}, "keyword unevaluatedProperties is not honoured; use additionalProperties"),
        ({"propertyNames": {"maxLength": 3}}, "keyword propertyNames is not honoured; use patternProperties"),
        ({"$dynamicRef": "#a"}, "keyword \\$dynamicRef is not honoured; use \\$ref"),
        ({"type": "string", "format": "iri"}, "format 'iri' is not known; use one of date, time"),
        (
            {"$ref": "https://example.com/s.json"},
            "'https://example.com/s.json' leads to nothing in this schema, and nothing",
        ),
        ({"$ref": "#/$defs/gone"}, "'#/\\$defs/gone' leads to nothing"),
        ({"$ref": 5}, "\\$ref is 5; it must be a string"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "leads back to itself before it says anything"),
        ({"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "leads back to itself before it says anything"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "use one of http://json-schema.org/draft-04/schema"),
        ({"type": "strnig"}, "type is 'strnig'; use null, boolean"),
        ({"minLength": -1}, "minLength is -1; it must be a whole number"),
        ({"maxItems": 2.5}, "maxItems is 2.5; it must be a whole number"),
        ({"minimum": "3"}, "minimum is '3'; it must be a number"),
        ({"required": True}, "required is True, which draft 2020-12 does not allow"),
        ({"required": [1]}, "it must be a list of names"),
        ({"items": [{}]}, "items is \\[{}\\], which draft 2020-12 does not allow"),
        ({"enum": list(range(1025))}, "an enum has 1025 values; at most 1024"),
        ({"properties": {"a": 5}}, "a schema is 5; it must be an object, true or false"),
        ({"allOf": [{"anyOf": [{"minLength": 1}] * 30}] * 2}, "multiply to 900 cases; at most 512"),
        ([], "a schema is \\[\\]; give a JSON object"),
        ({"const": float("nan")}, "the schema is not JSON"),
        ({"const": {1, 2}}, "the schema is not JSON"),
        ({"const": "x" * 2**17}, "at most 131072 are allowed, so split it"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(schema: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        narrow_schema(schema)


def test_a_schema_nested_deeper_than_the_limit_is_refused() -> None:
    deep: dict[str, Any] = {"type": "null"}
    for _ in range(62):
        deep = {"items": deep}
    assert narrow_schema(deep)
    with pytest.raises(ValueError, match="nested 65 values deep; at most 64"):
        narrow_schema({"items": deep})


@pytest.mark.parametrize("schema", [False, {"allOf": [{"type": "string"}, {"type": "integer"}]}, {"enum": []}])
def test_a_schema_without_a_value_is_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match=r"allows no value|Unsatisfiable"):
        lab_grammars().from_schema(schema)


@pytest.mark.parametrize(
    "neutral",
    [
        {"uniqueItems": False},
        {"not": False},
        {"then": {"type": "null"}},
        {"minContains": 2},
        {"unevaluatedProperties": True},
        {"propertyNames": {}},
        {"dependencies": {}},
        {"title": "T", "description": "D", "default": 7, "examples": [1], "$comment": "C", "deprecated": True},
        {"x-unknown": 5},
    ],
)
def test_what_says_nothing_changes_nothing(neutral: dict[str, Any]) -> None:
    plain = {"type": "array", "items": {"type": "integer"}}
    assert narrow_schema({**plain, **neutral}) == narrow_schema(plain)


def test_old_drafts_are_read_as_they_are_meant() -> None:
    draft4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
    assert not takes({**draft4, "type": "integer", "minimum": 3, "exclusiveMinimum": True}, 3)
    assert takes({**draft4, "type": "integer", "minimum": 3, "exclusiveMinimum": False}, 3)
    pair = {**draft7, "type": "array", "items": [{"type": "integer"}, {"type": "null"}], "additionalItems": False}
    assert takes(pair, [1, None])
    assert not takes(pair, [1, None, 2])
    ignored = {**draft7, "definitions": {"s": {"type": "string"}}, "properties": {}, "$ref": "#/definitions/s"}
    assert takes(ignored, "text")
    with pytest.raises(ValueError, match="keyword contentEncoding is not honoured"):
        narrow_schema({**draft7, "type": "string", "contentEncoding": "base64"})


def test_references_are_followed_by_pointer_anchor_and_address() -> None:
    schema = {
        "$id": "https://example.com/root",
        "$defs": {
            "a/b~c": {"type": "integer"},
            "named": {"$anchor": "here", "type": "null"},
            "inner": {
                "$id": "inner",
                "type": "object",
                "properties": {"v": {"$ref": "#/$defs/v"}},
                "$defs": {"v": {"const": 5}},
            },
        },
        "type": "array",
        "prefixItems": [
            {"$ref": "#/$defs/a~1b~0c"},
            {"$ref": "#here"},
            {"$ref": "https://example.com/inner"},
            {"$ref": "inner#/$defs/v"},
        ],
        "items": False,
    }
    assert takes(schema, [3, None, {"v": 5}, 5])
    assert not takes(schema, [3, None, {"v": 6}])
    assert not takes(schema, ["3"])


def test_a_schema_that_holds_itself_is_written_to_any_depth() -> None:
    tree = {
        "$defs": {
            "node": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
        },
        "$ref": "#/$defs/node",
    }
    assert takes(tree, {"kids": [{"kids": [{}, {"kids": [{}]}]}]})
    assert not takes(tree, {"kids": [{"kids": 1}]})


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("a", "xax", True),
        ("^a|b$", "xxb", True),
        ("^a|b$", "xax", False),
        (r"^\s$", "\ufeff", True),
        (r"^\s$", "\x85", False),
        (r"^\S$", "\ufeff", False),
        (r"^[\s,]+$", ",\u3000", True),
        (r"^[^\S]$", "x", False),
        ("^.$", "\r", False),
        (r"^\.$", ".", True),
        (r"^[.]$", "x", False),
        (r"^\d$", "٣", False),
        (r"^\w$", "é", False),
        (r"^\u00e9\u{1D11E}$", "é𝄞", True),
        (r"^\\s$", "\\s", True),
    ],
)
def test_patterns_mean_what_ecma_262_says(pattern: str, text: str, fits: bool) -> None:
    assert takes({"type": "string", "pattern": pattern}, text) == fits


def test_a_format_and_a_pattern_both_hold() -> None:
    schema = {"type": "string", "format": "date", "pattern": "^20"}
    assert takes(schema, "2024-12-31")
    assert not takes(schema, "1999-12-31")
    assert not takes(schema, "20")


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("date", "2024-12-31", "2024-02-30"),
        ("time", "23:59:59.5Z", "24:00:00Z"),
        ("date-time", "2024-01-01T00:00:00+01:00", "2024-01-01 00:00:00"),
        ("duration", "P1Y2M3DT4H", "P1D2M"),
        ("email", "a.b-c@ex-ample.org", "a@b"),
        ("hostname", "www.ex-ample.org", "-a.org"),
        ("ipv4", "192.168.0.255", "256.1.1.1"),
        ("ipv6", "0:0:0:0:0:ffff:102:304", "1:2:3"),
        ("uuid", "01234567-89ab-cdef-0123-456789abcdef", "01234567"),
        ("uri", "https://example.org:80/a/b?q=1#f"[:26], "no address"),
    ],
)
def test_formats_are_patterns_narrower_than_the_standards(format: str, good: str, bad: str) -> None:
    schema = {"type": "string", "format": format}
    assert takes(schema, good)
    assert not takes(schema, bad)
    grammar = lab_grammars().from_schema(schema)
    for seed in range(12):
        text = json.loads(lab_tokenizer().decode(walk_to_end(grammar.start(), Random(seed), seed)))
        assert is_valid(schema, text), text
    assert takes({"type": "integer", "format": "int32"}, 5)
