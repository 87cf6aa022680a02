"""The text of a call: what is written reads back, each known mistake is understood and named, the rest is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.text.call import QUOTE, ToolCall, read_call, write_call

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    TEXT | FLOATS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{}()[]:,\"'"), min_size=1).filter(
    lambda name: not any(map(str.isspace, name))
)


def quoted(text: str) -> str:
    """`text` with @ for the control token that delimits strings."""
    return text.replace("@", QUOTE)


def read(text: str) -> ToolCall:
    understood = read_call(quoted(text))
    assert understood is not None
    return understood.call


def spelled(value: Any) -> str:
    """A spelling that tells 1, 1.0 and true apart."""
    return json.dumps(value, sort_keys=True)


@given(name=NAMES, arguments=st.dictionaries(TEXT, VALUES, max_size=4))
def test_what_is_written_reads_back_without_a_fault(name: str, arguments: dict[str, Any]) -> None:
    understood = read_call(write_call(ToolCall(name, arguments)))
    assert understood is not None
    assert understood.faults == ()
    assert understood.call.name == name
    assert spelled(understood.call.arguments) == spelled(arguments)


def test_a_call_is_written_with_bare_sorted_keys_and_delimited_strings() -> None:
    arguments = {
        "to": "Tor, {Vel}",
        "at": [1, 2.5, {"b": True, "a": None}],
        "Z": "",
        "first name": 1e16,
        "a:b": -0.0,
        "": False,
    }
    written = write_call(ToolCall("find_route", arguments))
    assert written == quoted(
        "call:find_route{@@:false,Z:@@,@a:b@:-0.0,at:[1,2.5,{a:null,b:true}],first name:1e+16,to:@Tor, {Vel}@}"
    )


@pytest.mark.parametrize("name", ["", "a b", "a{", "a:b", "a,b", 'a"', "a(", f"a{QUOTE}"])
def test_a_name_that_would_not_read_back_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a tool is called"):
        write_call(ToolCall(name, {}))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), {1: 2}, {1, 2}, b"x"])
def test_a_value_that_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="give strings, finite numbers"):
        write_call(ToolCall("f", {"a": [value]}))


@pytest.mark.parametrize("arguments", [{"a": QUOTE}, {QUOTE: 1}, {"a": {"b\udfff": 1, QUOTE: 2}}])
def test_half_a_surrogate_pair_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="half a surrogate pair"):
        write_call(ToolCall("f", arguments))


def nested(levels: int) -> list[Any]:
    return [] if levels == 1 else [nested(levels - 1)]


def test_what_nests_as_deep_as_can_be_read_is_written_and_no_deeper() -> None:
    deepest = ToolCall("f", {"a": nested(32)})
    understood = read_call(write_call(deepest))
    assert understood is not None
    assert understood.call == deepest
    with pytest.raises(ValueError, match="deeper than 32 values"):
        write_call(ToolCall("f", {"a": nested(33)}))
    assert read_call(f"call:f{{a:{'[' * 33}{']' * 33}}}") is None
    assert read_call("call:f{a:" + "[" * 100_000) is None


@pytest.mark.parametrize(
    ("text", "arguments", "fault"),
    [
        ("f{a:1}", {"a": 1}, "A call does not begin with call:."),
        ("call:f{a:1,}", {"a": 1}, "A comma stands before a closing bracket."),
        ("call:f{a:[1,]}", {"a": [1]}, "A comma stands before a closing bracket."),
        ('call:f{a:"x\\n\\"\\u00e9,}"}', {"a": 'x\n"é,}'}, "A string is not between the control tokens for it."),
        ("call:f{a:'x,\"}'}", {"a": 'x,"}'}, "A string is not between the control tokens for it."),
        ('call:f{"a":1}', {"a": 1}, "A string is not between the control tokens for it."),
        ("call:f{a:True,b:[False,None]}", {"a": True, "b": [False, None]}, "False is Python's spelling."),
        ("call:f{ a : 1 , b:\n2 }", {"a": 1, "b": 2}, "A call has white space between its parts."),
        (" call: f {a:1}\n", {"a": 1}, "A call has white space between its parts."),
        ("call:f(a:1)", {"a": 1}, "A call has its arguments in parentheses."),
        ("call:f(a=@x@)", {"a": "x"}, "An argument has = behind its key."),
        ("call:f({a:1})", {"a": 1}, "A call has its arguments in parentheses."),
        ("call:f()", {}, "A call has its arguments in parentheses."),
        ("call:f{a:Tor Vel ,b:12:30}", {"a": "Tor Vel", "b": "12:30"}, "A call has white space between its parts."),
        ("call:f{a:007}", {"a": "007"}, "A string is not between the control tokens for it."),
        ("call:f{a:NaN}", {"a": "NaN"}, "A string is not between the control tokens for it."),
        ("call:f{a:1e999}", {"a": "1e999"}, "A string is not between the control tokens for it."),
        ("call:f{a:1,a:2}", {"a": 2}, "The key a occurs twice; the last one counts."),
    ],
)
def test_a_known_mistake_is_understood_and_named(text: str, arguments: dict[str, Any], fault: str) -> None:
    understood = read_call(quoted(text))
    assert understood is not None
    assert understood.call.name == "f"
    assert spelled(understood.call.arguments) == spelled(arguments)
    assert fault in understood.faults


def test_each_mistake_is_named_once_in_order() -> None:
    understood = read_call("f{a:'x',b:'y',c:True,}")
    assert understood is not None
    assert understood.faults == (
        "A call does not begin with call:.",
        "A string is not between the control tokens for it.",
        "True is Python's spelling.",
        "A comma stands before a closing bracket.",
    )


def test_an_integer_of_more_digits_than_python_reads_is_kept_as_text() -> None:
    assert read(f"call:f{{a:{'9' * 5000}}}").arguments == {"a": "9" * 5000}
    assert read(f"call:f{{a:{'9' * 400}}}").arguments == {"a": int("9" * 400)}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "call:",
        "call:f",
        "call:{a:1}",
        "call:f{",
        "call:f{a:1",
        "call:f{a:@x}",
        "call:f{a:@x@@y@}",
        "call:f{a:1}}",
        "call:f{a:1} and more",
        "call:f{a:1}call:g{}",
        "call:f{a}",
        "call:f{:1}",
        "call:f{a:}",
        "call:f{a:,b:1}",
        "call:f{,}",
        "call:f{a:1,,b:2}",
        "call:f{a:[1}",
        "call:f{a:(1)}",
        "call:f({a:1}",
        "call:f(a:1}",
        "call:f{a:it's}",
        'call:f{a:"x}',
        'call:f{a:"\\ud800"}',
        'call:f{a:"\\x"}',
        '{"name":"f","arguments":{}}',
    ],
)
def test_what_cannot_be_understood_is_no_call(text: str) -> None:
    assert read_call(quoted(text)) is None


@given(st.text(st.sampled_from("call:f{}[](),=\"'@ \n\\a1.-eTrueé")))
def test_no_text_is_an_error(text: str) -> None:
    read_call(quoted(text))


@given(st.text(st.sampled_from("{}[](),=\"'@ \\a1:"), max_size=30))
def test_what_is_understood_can_be_written_again(text: str) -> None:
    understood = read_call(quoted("call:f{a:" + text))
    if understood:
        assert read_call(write_call(understood.call)) == (understood.call, ())
