"""Bringing an answer to its end: what comes out was walked, it is short, and looking for it ends."""

import re
from collections.abc import Sequence
from random import Random
from typing import Any, Self

import pytest

from mezzotint.text.closure import find_closure, prefer
from mezzotint.types import Constraint
from tests.text.walks import lab_grammars, lab_tokenizer, walk

NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a_note": {"type": "string"},
        "b_list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}},
        "c_kind": {"enum": ["longest of all", "short"]},
        "d_day": {"type": "string", "format": "date"},
        "z_last": {"type": "object", "properties": {"k": {"type": "number", "minimum": 250}}, "required": ["k"]},
    },
    "required": ["c_kind", "z_last"],
}


class Endless:
    """A grammar of any number of `a`, never whole; it counts what is consumed."""

    consumed = 0
    is_accepting = is_stopped = False

    def allowed(self) -> bytes:
        return bytes([2])

    def count_valid(self, ids: Sequence[int]) -> int:
        return len(ids)

    def forced(self) -> list[int]:
        return []

    def consume(self, ids: Sequence[int]) -> None:
        Endless.consumed += len(ids)

    def rollback(self, count: int) -> None:
        raise NotImplementedError

    def copy(self) -> Self:
        return self

    def closure(self, limit: int) -> list[int] | None:
        raise NotImplementedError


def text_of(ids: list[int] | None) -> str:
    assert ids is not None
    return lab_tokenizer().decode(ids)


def test_a_closure_is_allowed_where_it_stands_and_makes_the_answer_whole() -> None:
    grammar = lab_grammars().from_schema(NESTED)
    for seed in range(60):
        place = grammar.start()
        walk(place, Random(seed), seed)
        closure = place.closure(200)
        assert closure is not None
        assert place.count_valid(closure) == len(closure)
        place.consume(closure)
        assert place.is_accepting


def test_members_that_may_be_left_out_are_left_out() -> None:
    closure = lab_grammars().from_schema(NESTED).start().closure(100)
    assert re.fullmatch(r'{"c_kind":"short","z_last":{"k":\d{3}}}', text_of(closure))


def test_an_open_text_is_closed_at_once() -> None:
    place = lab_grammars().from_schema(NESTED).start()
    place.consume(lab_tokenizer().encode_text('{"a_note":"The {quick} [brown]'))
    assert re.fullmatch(r'","c_kind":"short","z_last":{"k":\d{3}}}', text_of(place.closure(100)))


@pytest.mark.parametrize(
    "pattern", ["cole", "[a-z]cole$", "^x.*needle.*y$", "a.+z", r"\d{3}-\d{4}", "^[^@]+@[^@]+\\.org$"]
)
def test_what_a_pattern_insists_on_is_found_behind_any_beginning(pattern: str) -> None:
    grammar = lab_grammars().from_schema({"type": "string", "pattern": pattern})
    for seed in range(6):
        place = grammar.start()
        walk(place, Random(seed), seed)
        assert place.closure(200) is not None


def test_a_closure_longer_than_the_limit_is_none() -> None:
    place = lab_grammars().from_schema({"const": "Berlin"}).start()
    closure = place.closure(100)
    assert closure is not None
    assert place.closure(len(closure)) == closure
    assert place.closure(len(closure) - 1) is None


def test_a_whole_answer_needs_nothing() -> None:
    place = lab_grammars().from_regex("a*").start()
    assert place.closure(0) == []


def test_the_search_ends_where_no_answer_does() -> None:
    place: Constraint = Endless()
    preferences = prefer({0: b"b", 1: b"a"}, frozenset(), ())
    assert find_closure(place, 25, preferences) is None
    assert Endless.consumed == 4 * 25
