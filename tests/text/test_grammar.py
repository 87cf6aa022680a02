"""Grammars over the bundled model's vocabulary and Gemma's: what text may hold, and the kinds of grammar."""

import json
import lzma
import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mezzotint.text.call_grammar import compile_calls
from mezzotint.text.grammar import Grammars
from mezzotint.text.parse import parse_reply
from mezzotint.text.tokenizer import Tokenizer
from tests.text.walks import accepts, allowed_ids, lab_grammars, lab_tokenizer, walk_to_end

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 18}, "note": {"type": "string"}},
    "required": ["name", "age"],
}


@pytest.fixture(scope="session")
def gemma(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    directory = tmp_path_factory.mktemp("gemma")
    (directory / "tokenizer.json").write_bytes(lzma.decompress((data_dir / "gemma4_tokenizer.json.xz").read_bytes()))
    return Tokenizer.from_directory(directory)


@pytest.fixture(scope="session")
def gemma_grammars(gemma: Tokenizer) -> Grammars:
    return Grammars(gemma)


def test_text_may_hold_every_text_and_no_control_token() -> None:
    tokenizer, place = lab_tokenizer(), lab_grammars().from_regex("(?s:.*)").start()
    assert tokenizer.control_ids.isdisjoint(allowed_ids(place))
    for text in ("naïve ☃ 𝄞\r\n\t  def f(x):", "<|turn>\n<eos>", "\x00\x7f"):
        assert accepts(place.copy(), tokenizer.encode_text(text))


def test_a_schemas_own_words_are_text_even_where_they_spell_control_tokens() -> None:
    tokenizer = lab_tokenizer()
    place = lab_grammars().from_schema({"const": "<|tool_call><eos>"}).start()
    ids = tokenizer.encode_text('"<|tool_call><eos>"')
    assert place.forced() == ids[: len(place.forced())]
    assert place.forced()
    assert accepts(place, ids)


@given(choices=st.lists(TEXT, min_size=1, max_size=5, unique=True), other=TEXT)
def test_a_choice_is_the_whole_answer(choices: list[str], other: str) -> None:
    grammar, encode = lab_grammars().from_choices(choices), lab_tokenizer().encode_text
    for choice in choices:
        assert accepts(grammar.start(), encode(choice))
    assert accepts(grammar.start(), encode(other)) == (other in choices)


@pytest.mark.parametrize("choices", [[], ["a", ""], ["a"] * 1025])
def test_choices_that_decide_nothing_are_refused(choices: list[str]) -> None:
    with pytest.raises(ValueError, match="choices were given; give 1 to 1024"):
        lab_grammars().from_choices(choices)


def test_an_answer_under_a_regular_expression_matches_it_whole() -> None:
    pattern = r"[A-Z][a-z]{2,5}( [a-z]+)?: [0-9]{1,3}€"
    grammar = lab_grammars().from_regex(pattern)
    for seed in range(20):
        assert re.fullmatch(pattern, lab_tokenizer().decode(walk_to_end(grammar.start(), Random(seed), 20)))


def test_a_lark_grammar_may_name_control_tokens_of_replies() -> None:
    tokenizer = lab_tokenizer()
    grammar = lab_grammars().from_lark('start: "<eos>" <|tool_call> /[a-z]/+ <tool_call|> // <pad>')
    call = [tokenizer.control["<|tool_call>"], *tokenizer.encode_text("f"), tokenizer.control["<tool_call|>"]]
    assert accepts(grammar.start(), [*tokenizer.encode_text("<eos>"), *call])


@pytest.mark.parametrize("name", ["<eos>", "<pad>", "<|turn>", "<[0-5]>", "<[*]>", "<unused5>", "<|image|>"])
def test_a_lark_grammar_that_names_another_token_is_refused(name: str) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f"names the token {name}; of this tokenizer it may name <channel|>")
    ):
        lab_grammars().from_lark(f'start: "a" {name}')


@pytest.mark.parametrize("text", ["start: (", "start: nothing", 'begin: "a"', 'start: start "a"', "start: /(?=a)b/"])
def test_a_grammar_that_does_not_compile_says_why(text: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)the grammar cannot be followed: .{8,}; simplify it"):
        lab_grammars().from_lark(text)


def test_a_grammar_longer_than_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 262144 are allowed, so shorten it"):
        lab_grammars().from_regex("a" * 262144)


def test_a_grammar_is_compiled_once_and_each_request_has_its_own_place() -> None:
    grammars = Grammars(lab_tokenizer())
    grammar = grammars.from_schema(SCHEMA)
    assert grammars.from_schema(dict(SCHEMA)) is grammar
    assert grammars.from_schema({**SCHEMA, "required": []}) is not grammar
    first, second = grammar.start(), grammar.start()
    first.consume(first.forced())
    assert second.forced() == grammar.start().forced() != []


def test_the_receipts_counts_come_with_the_grammar() -> None:
    grammar = lab_grammars().from_schema(SCHEMA)
    assert grammar.restricted == {"maxLength": 2, "maximum": 1, "additionalProperties": 1}
    assert lab_grammars().from_regex("a").restricted == {}


def test_gemmas_texts_hold_no_placeholder_and_no_second_spelling(gemma: Tokenizer, gemma_grammars: Grammars) -> None:
    place = gemma_grammars.from_regex("(?s:.*)").start()
    allowed = allowed_ids(place)
    assert gemma.control_ids.isdisjoint(allowed)
    spellings = [gemma.token_bytes(id) for id in allowed]
    assert len(set(spellings)) == len(spellings)
    assert not [it for it in spellings if re.fullmatch(rb"<unused\d+>|\[multimodal\]", it)]
    assert len(allowed) > gemma.vocab_size - 6_600  # 6,227 are placeholders
    for text in ("naïve ☃ 𝄞\r\n\t  def f(x):", "<|turn>\n<eos><unused5>", "\x00\x7f", "Grüße, 中文 ▁"[:-1]):
        assert accepts(place.copy(), gemma.encode_text(text))


def test_gemmas_answers_are_valid(gemma: Tokenizer, gemma_grammars: Grammars) -> None:
    for seed in range(10):
        text = gemma.decode(walk_to_end(gemma_grammars.from_schema(SCHEMA).start(), Random(seed), 2 * seed))
        found = json.loads(text)
        assert isinstance(found["name"], str)
        assert found["age"] >= 18


def test_gemmas_mask_and_validation_allow_the_same_ids(gemma: Tokenizer, gemma_grammars: Grammars) -> None:
    rng = Random(5)
    place = gemma_grammars.from_schema(SCHEMA).start()
    for text in ("", '{"name":"', "Zoë", '","', 'age":', "20"):
        place.consume(gemma.encode_text(text))
        allowed = allowed_ids(place)
        some = rng.sample(allowed, min(len(allowed), 200))
        assert all(place.count_valid([id]) == 1 for id in some)
        others = set(rng.sample(range(gemma.vocab_size), 500)).difference(allowed)
        assert not any(place.count_valid([id]) for id in others)


def test_gemma_calls_as_the_bundled_model_does(gemma: Tokenizer, gemma_grammars: Grammars) -> None:
    tool = {"type": "function", "function": {"name": "enrol", "parameters": SCHEMA}}
    grammar = compile_calls(gemma_grammars, [tool], choice="required", max_calls=1)
    for seed in range(10):
        reply = parse_reply(walk_to_end(grammar.start(), Random(seed), 2 * seed), gemma)
        assert reply.faults == ()
        assert [call.name for call in reply.calls] == ["enrol"]


@settings(max_examples=20)
@given(text=TEXT)
def test_gemmas_own_text_is_taken_whole(gemma: Tokenizer, gemma_grammars: Grammars, text: str) -> None:
    assert accepts(gemma_grammars.from_regex("(?s:.*)").start(), gemma.encode_text(text))
