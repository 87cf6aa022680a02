"""Calls as a grammar: what it writes reads back without a fault and fits the declaration, and all right calls fit."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from mezzotint.tasks.call import CALL
from mezzotint.text.call import ToolCall
from mezzotint.text.call_grammar import compile_calls
from mezzotint.text.grammar import Grammar
from mezzotint.text.parse import Reply, encode_reply, parse_reply
from tests.text.walks import accepts, is_valid, lab_grammars, lab_tokenizer, walk_to_end

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "at": {"type": "string", "format": "date"},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$", "maxLength": 8},
        "word": {"type": "string", "pattern": "x|y", "minLength": 2},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "price": {"type": "number", "minimum": 0, "maximum": 99},
        "kind": {"enum": ["red", "a, {b}", 3, 2.5, None, True, {"k": ["v"]}]},
        "fixed": {"const": "always"},
        "Flag": {"type": ["boolean", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        "rows": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "none": {"type": "array", "maxItems": 0},
        "empty": {"type": "string", "maxLength": 0},
        "first name": {"type": "string", "maxLength": 5},
        "where": {"$ref": "#/$defs/place"},
        "either": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/place"}]},
    },
    "required": ["to", "count"],
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "name": {"type": "string", "maxLength": 9}, "B": {"type": "null"}},
            "required": ["x"],
        }
    },
}


def tool(name: str, parameters: Mapping[str, Any] | None = None) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name}
    return {"type": "function", "function": function | ({} if parameters is None else {"parameters": parameters})}


TOOLS = [tool("find_route", PARAMETERS), tool("ping"), tool("stop", {"type": "object", "properties": {}})]


def fits(call: ToolCall) -> bool:
    """Whether the arguments are valid, as jsonschema-rs judges, and no others."""
    declared = PARAMETERS if call.name == "find_route" else {"type": "object", "maxProperties": 0}
    return is_valid({**declared, "additionalProperties": False}, dict(call.arguments))


def answers(grammar: Grammar, count: int = 60) -> list[Reply]:
    replies = []
    for seed in range(count):
        ids = walk_to_end(grammar.start(), Random(seed), seed * 2)
        replies.append(parse_reply(ids, lab_tokenizer()))
    return replies


def test_required_is_calls_and_nothing_else_and_all_of_them_are_right() -> None:
    replies = answers(compile_calls(lab_grammars(), TOOLS, choice="required", max_calls=3))
    for reply in replies:
        assert (reply.faults, reply.content, reply.reasoning) == ((), "", "")
        assert 1 <= len(reply.calls) <= 3
        assert all(map(fits, reply.calls)), reply
    named = {call.name for reply in replies for call in reply.calls}
    assert named == {"find_route", "ping", "stop"}
    keys = {key for reply in replies for call in reply.calls for key in call.arguments}
    assert len(keys) > 12


def test_what_the_grammar_writes_is_written_again_as_the_same_call() -> None:
    for reply in answers(compile_calls(lab_grammars(), TOOLS, choice="required")):
        assert parse_reply(encode_reply(reply, lab_tokenizer()), lab_tokenizer()) == reply


def test_the_one_tool_that_is_named_is_called_once() -> None:
    grammar = compile_calls(lab_grammars(), TOOLS, choice="required", only="ping", max_calls=1)
    assert parse_reply(grammar.start().forced(), lab_tokenizer()) == Reply(calls=(ToolCall("ping", {}),))
    forced = compile_calls(lab_grammars(), TOOLS, choice="required", only="find_route", max_calls=1).start().forced()
    # Fl, at, co, … are the keys that may come first.
    assert lab_tokenizer().decode(forced, keep_control=True).startswith("<|tool_call>call:find_route{")


def test_auto_is_words_or_calls_behind_them() -> None:
    grammar, tokenizer = compile_calls(lab_grammars(), TOOLS), lab_tokenizer()
    call = ToolCall("ping", {})
    for reply in (Reply("Plain <|tool_call> words."), Reply(calls=(call,)), Reply("I look.\n", calls=(call, call))):
        assert accepts(grammar.start(), encode_reply(reply, tokenizer))
    assert not grammar.start().is_accepting
    for wrong in (
        Reply("Thus.", "I think."),
        Reply(calls=(ToolCall("pong", {}),)),
        Reply(calls=(ToolCall("ping", {"a": 1}),)),
    ):
        assert not accepts(grammar.start(), encode_reply(wrong, tokenizer))
    behind = [*encode_reply(Reply(calls=(call,)), tokenizer), *tokenizer.encode_text("words")]
    assert not accepts(grammar.start(), behind)
    for reply in answers(grammar, 30):
        assert reply.faults == ()
        assert reply.content or reply.calls


def test_no_more_calls_are_made_than_allowed() -> None:
    call = Reply(calls=(ToolCall("ping", {}),))
    ids = encode_reply(call, lab_tokenizer())
    grammar = compile_calls(lab_grammars(), TOOLS, choice="required", max_calls=2)
    assert [accepts(grammar.start(), ids * count) for count in (0, 1, 2, 3)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        ({"to": "", "count": 1}, True),
        ({"to": 'a <|"|> {b}:,', "count": 9}, True),
        ({"to": "x" * 512, "count": 9, "Flag": None, "at": "2024-02-28"}, True),
        ({"to": "x" * 513, "count": 9}, False),
        ({"to": "x"}, False),
        ({"to": "x", "count": 10}, False),
        ({"to": "x", "count": 1.5}, False),
        ({"to": "x", "count": 1, "other": 2}, False),
        ({"to": "x", "count": 1, "code": "AB-123"}, True),
        ({"to": "x", "count": 1, "code": "AB-123456"}, False),
        ({"to": "x", "count": 1, "code": "xAB-1"}, False),
        ({"to": "x", "count": 1, "word": "x"}, False),
        ({"to": "x", "count": 1, "word": "oxo"}, True),
        ({"to": "x", "count": 1, "kind": {"k": ["v"]}}, True),
        ({"to": "x", "count": 1, "kind": "blue"}, False),
        ({"to": "x", "count": 1, "tags": []}, False),
        ({"to": "x", "count": 1, "tags": ["a", "", "b"]}, True),
        ({"to": "x", "count": 1, "tags": ["a"] * 4}, False),
        ({"to": "x", "count": 1, "rows": [[], [1, 2]], "none": [], "empty": ""}, True),
        ({"to": "x", "count": 1, "where": {"x": -1.25, "name": "n", "B": None}}, True),
        ({"to": "x", "count": 1, "where": {"name": "n"}}, False),
        ({"to": "x", "count": 1, "either": {"x": 1}}, True),
        ({"to": "x", "count": 1, "first name": "Ada"}, True),
    ],
)
def test_right_arguments_are_allowed_and_wrong_ones_are_not(arguments: dict[str, Any], right: bool) -> None:
    grammar = compile_calls(lab_grammars(), TOOLS, choice="required")
    ids = encode_reply(Reply(calls=(ToolCall("find_route", arguments),)), lab_tokenizer())
    assert accepts(grammar.start(), ids) == right
    assert right == fits(ToolCall("find_route", arguments)) or len(arguments["to"]) > 512


def test_every_right_call_of_the_task_is_in_its_grammar() -> None:
    made = 0
    for seed in range(60):
        example = CALL.generate(seed, "train")
        grammar = compile_calls(lab_grammars(), example.tools)
        assert accepts(grammar.start(), encode_reply(Reply(example.answer, calls=example.calls), lab_tokenizer()))
        made += len(example.calls)
    assert made > 30


@pytest.mark.parametrize(
    ("tools", "options", "words"),
    [
        ([], {}, "declare at least one"),
        ([tool("f"), tool("f")], {}, "each under a name of its own"),
        ([tool("f")], {"only": "g"}, "the tool 'g' is not declared; declared are f"),
        ([tool("f")], {"max_calls": 0}, "max_calls is 0; use 1 to 16"),
        ([tool("a b")], {}, "a tool is called 'a b'"),
    ],
)
def test_tools_that_cannot_be_called_are_refused(tools: list[Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        compile_calls(lab_grammars(), tools, **options)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "a value of any kind cannot be written as a call; give it a type"),
        ({"type": "object"}, "members that are not described cannot be written as a call; name them"),
        ({"type": "object", "properties": {"a:b": {"type": "null"}}}, "the key 'a:b' cannot be written bare"),
        ({"type": "object", "properties": {"p": {"$ref": "#"}}, "required": ["p"]}, "a schema that holds itself"),
        ({"type": "array", "prefixItems": [{"type": "null"}]}, "prefixItems cannot be written as a call"),
        ({"allOf": [{"type": "string"}, {"minLength": 2}]}, "allOf cannot be written as a call"),
        ({"type": "string", "enum": ["a"], "pattern": "a"}, "pattern cannot be written as a call"),
        ({"type": "string", "enum": [1]}, "const, enum and type leave no value"),
        ({"type": "string", "pattern": "^a|b$"}, "put them in parentheses"),
        ({"type": "string", "format": "iri"}, "format 'iri' is not known"),
        ({"not": {}}, "the keyword not is not honoured"),
    ],
)
def test_a_parameter_that_cannot_be_honoured_is_refused_by_name(schema: dict[str, Any], words: str) -> None:
    parameters = {"type": "object", "properties": {"p": schema}}
    with pytest.raises(ValueError, match=f"tool f.*{words}"):
        compile_calls(lab_grammars(), [tool("f", parameters)])


def test_how_parameters_were_narrowed_is_told() -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    grammar = compile_calls(lab_grammars(), [tool("f", parameters)])
    assert grammar.restricted == {"maxLength": 2, "additionalProperties": 1}
