"""A tokenizer of the bundled kind: its corpus and the layout of its ids, which the shipped file shares."""

import argparse
import ast
import random
import shutil
import sysconfig
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

import mezzotint
from mezzotint.tasks import FAMILIES, Example
from mezzotint.tasks.values import draw_word
from mezzotint.train.bpe import (
    CONTROL_TOKENS,
    MAX_PIECE_BYTES,
    VOCABULARY_SIZE,
    library_functions,
    train_tokenizer,
    training_texts,
    write_tokenizer,
)

SHIPPED = Path(mezzotint.__file__).parent / "checkpoints" / "lab" / "tokenizer.json"


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A standard library of a few modules in place of the whole one, which takes seconds to parse."""
    root = tmp_path_factory.mktemp("library")
    for module in (argparse, ast, textwrap):
        shutil.copy(str(module.__file__), root)
    (root / "test").mkdir()
    (root / "test" / "skipped.py").write_text("def skipped():\n    pass\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sysconfig, "get_path", {"stdlib": str(root)}.__getitem__)
        yield root


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return training_texts(1, 200_000)


@pytest.fixture(scope="module")
def trained(texts: list[str]) -> Tokenizer:
    return train_tokenizer(texts, 600)


@pytest.fixture(scope="module")
def shipped() -> Tokenizer:
    return Tokenizer.from_file(str(SHIPPED))


def test_ids_are_control_tokens_then_bytes_then_merges(trained: Tokenizer) -> None:
    count = len(CONTROL_TOKENS)
    assert [trained.id_to_token(id) for id in range(count)] == list(CONTROL_TOKENS)
    assert {trained.id_to_token(id) for id in range(count, count + 256)} == set(ByteLevel.alphabet())
    merges = [str(trained.id_to_token(id)) for id in range(count + 256, 600)]
    assert all(2 <= len(merge) <= MAX_PIECE_BYTES for merge in merges)
    assert trained.get_vocab_size() == 600


def test_control_tokens_are_special_and_nothing_else_is(trained: Tokenizer) -> None:
    special = {token.content for token in trained.get_added_tokens_decoder().values() if token.special}
    assert special == set(CONTROL_TOKENS)


def test_the_same_texts_give_the_same_tokenizer(texts: list[str], trained: Tokenizer) -> None:
    assert train_tokenizer(iter(texts), 600).to_str() == trained.to_str()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("ab12 cd", ["ab", "1", "2", "Ġ", "cd"]),
        ("x_y  (z)", ["x", "_", "y", "ĠĠ", "(", "z", ")"]),
        ("a\n\n    b\n  \n", ["a", "ĊĊĠĠĠĠ", "b", "ĊĠĠ", "Ċ"]),
        ('{"k":"v"}\t\r\n', ['{"', "k", '":"', "v", '"}', "ĉč", "Ċ"]),
    ],
)
def test_white_space_digits_words_and_punctuation_never_join(trained: Tokenizer, text: str, pieces: list[str]) -> None:
    assert trained.pre_tokenizer is not None
    assert [piece for piece, _ in trained.pre_tokenizer.pre_tokenize_str(text)] == pieces


@pytest.mark.parametrize("which", ["trained", "shipped"])
def test_no_merge_joins_white_space_with_a_word_or_two_digits(which: str, request: pytest.FixtureRequest) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(which)
    for token, id in tokenizer.get_vocab().items():
        text = "" if token in CONTROL_TOKENS else tokenizer.decode([id])
        assert not text or text.isspace() or not any(character.isspace() for character in text)
        assert sum(character.isdigit() for character in text) <= 1


@pytest.mark.parametrize("which", ["trained", "shipped"])
def test_what_is_encoded_decodes_to_the_same_text(which: str, request: pytest.FixtureRequest) -> None:
    tokenizer: Tokenizer = request.getfixturevalue(which)
    examples = [family.generate(seed, "test") for family in FAMILIES.values() for seed in range(20)]
    asked = [example.messages[0]["content"] for example in examples]
    for text in [*asked, *(example.answer for example in examples), "a\n\n  \tß 😀\r\n\x00 9 "]:
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_too_little_text_for_the_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the texts gave \d+ of 600 ids; add text or ask for fewer ids"):
        train_tokenizer(["too little, too little"], 600)


def test_the_corpus_is_seeded_and_of_the_asked_size(texts: list[str]) -> None:
    assert training_texts(1, 200_000) == texts
    assert training_texts(2, 200_000) != texts
    assert sum(len(text.encode()) for text in texts) == pytest.approx(200_000, rel=0.05)


def written(example: Example) -> str:
    return "\n".join([*(message.get("content", "") for message in example.messages), example.answer])


def test_the_corpus_holds_library_code_and_examples_of_train_alone(texts: list[str]) -> None:
    known = set(texts)
    assert sum(len(text.encode()) for text in known.intersection(library_functions(1))) > 60_000
    for name, family in FAMILIES.items():
        assert written(family.generate(1, "train")) in known, name
        held_out = written(family.generate(1, "test"))
        assert not any(held_out in text for text in texts), name


def test_the_library_gives_each_function_and_method_once_in_a_seeded_order() -> None:
    functions = library_functions(0)
    assert functions != library_functions(1)
    assert sorted(functions) == sorted(library_functions(1))
    assert len(functions) == len(set(functions)) > 100
    names = [function.split("(")[0] for function in functions]
    assert names.count("def dedent") == names.count("def add_subparsers") == 1
    assert "def skipped" not in names


def test_the_written_file_is_a_tokenizer_of_the_full_size(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    written = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert written.get_vocab_size() == VOCABULARY_SIZE


def test_the_shipped_tokenizer_is_laid_out_as_a_trained_one(trained: Tokenizer, shipped: Tokenizer) -> None:
    assert shipped.get_vocab_size() == VOCABULARY_SIZE
    below = range(len(CONTROL_TOKENS) + 256)
    assert [shipped.id_to_token(id) for id in below] == [trained.id_to_token(id) for id in below]
    assert shipped.get_added_tokens_decoder().keys() == trained.get_added_tokens_decoder().keys()
    for part in ("pre_tokenizer", "post_processor", "decoder", "normalizer"):
        assert str(getattr(shipped, part)) == str(getattr(trained, part))


def test_the_shipped_tokenizer_holds_no_invented_word_of_the_test_split(shipped: Tokenizer) -> None:
    rng = random.Random(0)
    words = {draw_word(rng, "test") for _ in range(2000)}
    assert not words.intersection(shipped.get_vocab())
