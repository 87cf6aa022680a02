"""A place in a grammar: what the mask allows is what validation allows, and any way to a place is the same place."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mezzotint.text.call_grammar import compile_calls
from mezzotint.text.grammar import Grammar, Grammars
from tests.text.walks import allowed_ids, lab_grammars, lab_tokenizer, walk

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"const": "Berlin"},
        "note": {"type": "string"},
        "price": {"type": "number"},
        "tags": {"type": "array", "items": {"enum": ["red", "reddish", "blue"]}},
    },
    "required": ["city", "price"],
}
TOOL = {"type": "function", "function": {"name": "find_city", "parameters": SCHEMA}}
GRAMMARS = {
    "schema": lambda: lab_grammars().from_schema(SCHEMA),
    "anything": lambda: lab_grammars().from_schema({}),
    "regex": lambda: lab_grammars().from_regex("(ab|a)*c[0-9]{2}é?"),
    "choices": lambda: lab_grammars().from_choices(["a", "ab", 'abc\n"x\\', "<|tool_call>", "é𝄞"]),
    "calls": lambda: compile_calls(lab_grammars(), [TOOL], choice="required"),
    "words or calls": lambda: compile_calls(lab_grammars(), [TOOL]),
}


@pytest.fixture(params=GRAMMARS)
def grammar(request: pytest.FixtureRequest) -> Grammar:
    return GRAMMARS[request.param]()


def test_the_mask_and_validation_allow_the_same_ids(grammar: Grammar) -> None:
    for seed in range(12):
        place = grammar.start()
        walk(place, Random(seed), seed * 2)
        allowed = set(allowed_ids(place))
        assert {id for id in range(lab_tokenizer().vocab_size) if place.count_valid([id])} == allowed


def test_what_is_forced_is_allowed_and_the_only_way_on(grammar: Grammar) -> None:
    for seed in range(40):
        place = grammar.start()
        walk(place, Random(seed), seed)
        if forced := place.forced():
            assert place.count_valid(forced) == len(forced)
            assert allowed_ids(place) == forced[:1]


def test_many_ids_are_counted_as_one_behind_the_other_would_be(grammar: Grammar) -> None:
    encode, stretches = lab_tokenizer().encode_text, 0
    for seed in range(30):
        rng, place = Random(seed), grammar.start()
        walk(place, rng, seed % 7)
        ids = [*place.forced(), *walk(place.copy(), rng, 6), *place.forced()]
        if seed % 3 == 0:
            ids = [*place.forced()[:1], *encode("er")[:1], *ids]
        one_by_one, twin = 0, place.copy()
        while one_by_one < len(ids) and twin.count_valid(ids[one_by_one : one_by_one + 1]):
            assert ids[one_by_one] in allowed_ids(twin)
            twin.consume(ids[one_by_one : one_by_one + 1])
            one_by_one += 1
        assert place.count_valid(ids) == one_by_one
        stretches += one_by_one > 1
    assert stretches > 3


def test_a_known_beginning_of_an_end_is_found_again_within_each_limit(grammar: Grammar) -> None:
    shortest = grammar.start().closure(300)
    assert shortest is not None
    again = grammar.start().copy().closure(300)
    assert again == shortest
    again.append(0)  # what is given out is the caller's own
    assert grammar.start().closure(300) == shortest
    closer = grammar.start().closure(max(0, len(shortest) - 1))
    assert closer is None or len(closer) < len(shortest)


def test_a_forced_beginning_is_known_before_anything_is_written() -> None:
    for name, beginning in (("schema", '{"city":"Berlin"'), ("calls", "<|tool_call>call:find_city{city:")):
        forced = GRAMMARS[name]().start().forced()
        assert lab_tokenizer().decode(forced, keep_control=True).startswith(beginning)


@settings(max_examples=30)
@given(moves=st.lists(st.integers(-4, 12), max_size=8), seed=st.integers(0, 2**32))
@pytest.mark.parametrize("name", GRAMMARS)
def test_a_place_is_what_its_prefix_says_however_it_was_reached(name: str, moves: list[int], seed: int) -> None:
    grammar, rng = GRAMMARS[name](), Random(seed)
    place, kept = grammar.start(), list[int]()
    for move in moves:
        if move >= 0:
            kept += walk(place, rng, move)
        else:
            back = min(-move, len(kept))
            place.rollback(back)
            kept = kept[: len(kept) - back]
    fresh = grammar.start()
    fresh.consume(kept)
    for other in (fresh, place.copy()):
        assert other.allowed() == place.allowed()
        assert other.forced() == place.forced()
        assert (other.is_accepting, other.is_stopped) == (place.is_accepting, place.is_stopped)


def test_asking_changes_nothing(grammar: Grammar) -> None:
    place = grammar.start()
    taken = walk(place, Random(3), 6)
    before = (place.allowed(), place.forced(), place.is_accepting)
    place.count_valid([*place.forced(), 5, 6, 7])
    place.closure(100)
    place.copy().rollback(len(taken))
    assert (place.allowed(), place.forced(), place.is_accepting) == before


def test_where_bytes_are_forced_only_the_tokenizers_own_split_is_allowed() -> None:
    encode = lab_tokenizer().encode_text
    place = lab_grammars().from_schema({"const": "Berlin"}).start()
    place.consume(encode('"B'))
    assert encode("Berlin") == [*encode("B"), *encode("er"), *encode("lin")]
    assert place.forced() == [*encode("er"), *encode("lin"), *encode('"')]
    assert place.count_valid(encode("er")) == 1
    assert place.count_valid(encode("e")) == 0


def test_no_end_of_turn_is_allowed_even_where_the_answer_is_whole() -> None:
    tokenizer = lab_tokenizer()
    place = lab_grammars().from_regex("[a-z]+").start()
    place.consume(tokenizer.encode_text("hello"))
    assert place.is_accepting
    assert not place.is_stopped
    for end in (tokenizer.eos_id, tokenizer.control["<turn|>"], tokenizer.pad_id):
        assert end not in allowed_ids(place)
        assert place.count_valid([end]) == 0


def test_behind_a_whole_answer_nothing_is_allowed_until_it_is_taken_back() -> None:
    ids = lab_tokenizer().encode_text('{"city":"Berlin","price":1}')
    place = lab_grammars().from_schema(SCHEMA).start()
    place.consume(ids)
    assert place.is_stopped
    assert place.is_accepting
    assert not any(place.allowed())
    assert place.forced() == place.closure(0) == []
    place.rollback(1)
    assert not place.is_stopped
    assert not place.is_accepting
    assert place.count_valid(ids[-1:]) == 1


def test_ids_that_are_not_allowed_are_refused_and_none_is_consumed() -> None:
    encode = lab_tokenizer().encode_text
    place = lab_grammars().from_regex("[ax][by]+c").start()
    ids = [*encode("a"), *encode("b"), *encode("d")]
    before = place.allowed()
    with pytest.raises(ValueError, match=f"token id {ids[2]}, number 2 of 3, is not allowed here"):
        place.consume(ids)
    assert place.allowed() == before
    place.consume([*encode("a"), *encode("b"), *encode("c")])
    assert place.is_accepting


def test_no_more_is_taken_back_than_was_consumed() -> None:
    place = lab_grammars().from_regex("a*").start()
    place.consume(lab_tokenizer().encode_text("a"))
    for count in (2, -1):
        with pytest.raises(ValueError, match="1 were consumed"):
            place.rollback(count)
    place.rollback(1)


def test_a_place_where_the_grammar_becomes_too_complex_is_an_error_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mezzotint.text.grammar._MOST_ITEMS", 20)
    members = {f"p{index}": {"type": "string"} for index in range(30)}
    inner = {"type": "object", "properties": members, "required": []}
    outer = {"type": "object", "properties": {"a": {"type": "string"}, "b": inner}, "required": ["a", "b"]}
    place = Grammars(lab_tokenizer()).from_schema(outer).start()
    place.consume(lab_tokenizer().encode_text('{"a":"x'))
    before = place.allowed()
    with pytest.raises(ValueError, match=r"(?s)cannot be followed: .*simplify it"):
        place.consume(lab_tokenizer().encode_text('y","b":{'))
    assert place.allowed() == before
    assert place.count_valid(lab_tokenizer().encode_text("yz")) == 2
