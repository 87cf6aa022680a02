"""Faults: each is one small edit of its kind, and the text that it leaves allows one correction only."""

import ast
import keyword
import re
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import Split
from mezzotint.tasks.faults import KINDS, is_one_edit, misspellings, put_in
from mezzotint.tasks.library import functions, parse_code

SPLITS: tuple[Split, ...] = ("train", "test")

CODE = """def count(items, limit):
    if limit and items:
        total = len(items)
        return min(total, limit)
    items = None
    return items"""


def faults(kind: str, code: str, split: Split, tries: int = 500) -> set[str]:
    """All faults of a kind that many draws put into one code."""
    found = {put_in(Random(seed), kind, code, split) for seed in range(tries)}
    return {faulty for faulty in found if faulty is not None}


def changed(code: str, faulty: str) -> tuple[str, str]:
    """The shortest pieces of both texts that differ."""
    while code and faulty and code[0] == faulty[0]:
        code, faulty = code[1:], faulty[1:]
    while code and faulty and code[-1] == faulty[-1]:
        code, faulty = code[:-1], faulty[:-1]
    return code, faulty


def changed_word(code: str, faulty: str) -> tuple[str, str]:
    """The one word that differs, and what became of it."""
    pairs = zip(re.findall(r"\w+|\W+", code), re.findall(r"\w+|\W+", faulty), strict=True)
    [pair] = [(one, other) for one, other in pairs if one != other]
    return pair


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[tuple[str, str]]]:
    """Real functions and the faults put into them, by kind."""
    rng = Random(0)
    codes = rng.sample(functions("train"), 600)
    tried = {kind: [(code, put_in(rng, kind, code, "train")) for code in codes] for kind in KINDS}
    return {kind: [(code, faulty) for code, faulty in pairs if faulty is not None] for kind, pairs in tried.items()}


def test_every_kind_finds_a_fault_in_many_functions(drawn: dict[str, list[tuple[str, str]]]) -> None:
    assert min(len(pairs) for pairs in drawn.values()) > 60


@pytest.mark.parametrize("kind", ["punctuation", "indentation"])
def test_a_fault_of_punctuation_or_indentation_is_no_longer_python(
    drawn: dict[str, list[tuple[str, str]]], kind: str
) -> None:
    assert all(parse_code(faulty) is None for _, faulty in drawn[kind])


def test_punctuation_is_one_mark_lost_written_twice_or_made_a_semicolon(
    drawn: dict[str, list[tuple[str, str]]],
) -> None:
    ways = set()
    for code, faulty in drawn["punctuation"]:
        old, new = changed(code, faulty)
        if new == "":
            assert old in tuple("()[]{},:")
            ways.add("lost")
        elif new == " ":
            assert old in tuple("([{,:")
            ways.add("lost, leaving a space")
        elif new == ";":
            assert old in (",", ":")
            ways.add("semicolon")
        else:
            assert old == ""
            assert new in (",", ":", ".")
            assert new * 2 in faulty
            ways.add("twice")
    assert len(ways) == 4


def test_indentation_moves_one_line(drawn: dict[str, list[tuple[str, str]]]) -> None:
    for code, faulty in drawn["indentation"]:
        lines = zip(code.split("\n"), faulty.split("\n"), strict=True)
        [(old, new)] = [(one, other) for one, other in lines if one != other]
        assert old.lstrip(" ") == new.lstrip(" ")


def test_a_misspelt_keyword_is_one_edit_from_a_keyword(drawn: dict[str, list[tuple[str, str]]]) -> None:
    for code, faulty in drawn["keyword"]:
        word, typo = changed_word(code, faulty)
        assert keyword.iskeyword(word)
        assert typo in misspellings(word)
        assert typo not in re.findall(r"\w+", code)


def test_a_misspelt_name_is_a_use_of_a_local_that_occurs_twice_elsewhere(
    drawn: dict[str, list[tuple[str, str]]],
) -> None:
    for code, faulty in drawn["name"]:
        word, typo = changed_word(code, faulty)
        nodes = list(ast.walk(ast.parse(faulty)))
        names = [(node.id, type(node.ctx)) for node in nodes if isinstance(node, ast.Name)]
        assert (typo, ast.Load) in names
        assert [name for name, _ in names].count(typo) == 1
        local = [node.arg for node in nodes if isinstance(node, ast.arg)]
        assert word in local or (word, ast.Store) in names
        assert [*local, *(name for name, _ in names)].count(word) >= 2


def test_a_line_moves_only_where_its_block_is_known() -> None:
    found = {line for faulty in faults("indentation", CODE, "train") for line in faulty.split("\n")}
    moved = {(line.strip(), len(line) - len(line.lstrip())) for line in found - set(CODE.split("\n"))}
    # Each could stand at 4 or at 8, or nothing in the text says that it does not.
    assert not {line for line, _ in moved} & {"return min(total, limit)", "items = None"}
    assert {width for line, width in moved if line == "total = len(items)"} >= {0, 4, 5, 6, 7, 9, 10, 11, 12}
    assert {width for line, width in moved if line == "return items"} >= {1, 2, 3, 5, 6, 7, 8}


def test_a_bracket_is_lost_only_where_one_place_can_take_it() -> None:
    found = faults("punctuation", CODE, "train")
    assert CODE.replace("len(items)", "len(items") in found
    assert CODE.replace("len(items)", "len items)") in found
    assert CODE.replace("(total, limit)", "(total, limit") not in found  # `min(total), limit` is code too
    assert CODE.replace("total, limit", "total limit") in found
    assert CODE.replace("items:", "items") in found
    assert CODE.replace("items:", "items;") in found


def test_a_comma_is_not_lost_where_a_colon_could_be_meant() -> None:
    found = faults("punctuation", "def f(x):\n    return x[a, g(b, c)]", "train")
    assert "def f(x):\n    return x[a, g(b c)]" in found
    assert "def f(x):\n    return x[a, g(b; c)]" in found
    assert "def f(x):\n    return x[a g(b, c)]" not in found
    assert "def f(x):\n    return x[a; g(b, c)]" not in found


def test_no_mark_within_a_string_is_touched() -> None:
    code = "def f(name):\n    return g('a, (b): c', \"[it's]\", name)"
    found = faults("punctuation", code, "train")
    assert found
    assert all("'a, (b): c'" in faulty and '"[it\'s]"' in faulty for faulty in found)


@pytest.mark.parametrize("split", SPLITS)
def test_no_misspelling_is_as_near_to_another_word_of_the_text(split: Split) -> None:
    code = "def f(item, items):\n    items = item, items, item\n    return items, item"
    found = faults("name", code, split)
    words = {changed_word(code, faulty)[1] for faulty in found}
    assert words
    assert not {"itemm", "item", "items"} & words
    assert all(is_one_edit(word, "item") != is_one_edit(word, "items") for word in words)


def test_a_keyword_is_not_misspelt_into_what_could_be_a_name_of_the_text() -> None:
    for name, near in (("pan", True), ("other", False)):
        code = f"def f({name}):\n    {name}({name})\n    pass"
        found = faults("keyword", code, "train") | faults("keyword", code, "test")
        words = {changed_word(code, faulty)[1] for faulty in found}
        assert {"pss", "apss", "psas", "ppass", "paass"} <= words
        assert ("pas" in words) is not near


def test_names_too_short_too_rare_or_not_local_are_left_alone() -> None:
    code = "def f(ab, once):\n    glob(ab, ab, once)\n    glob(glob)\n    return ab"
    assert not faults("name", code, "train") | faults("name", code, "test")


def test_train_and_test_share_no_misspelling() -> None:
    kinds = ("keyword", "name")
    train, test = (
        {(kind, *changed_word(CODE, faulty)) for kind in kinds for faulty in faults(kind, CODE, split)}
        for split in SPLITS
    )
    assert not train & test
    assert len(train) > 3 * len(test) / 2 > 10


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32))
def test_a_fault_depends_on_its_arguments_only(kind: str, seed: int) -> None:
    assert put_in(Random(seed), kind, CODE, "train") == put_in(Random(seed), kind, CODE, "train")


def test_misspellings_are_swaps_drops_and_doubles() -> None:
    assert misspellings("for") == {"ofr", "fro", "or", "fr", "fo", "ffor", "foor", "forr"}
    assert misspellings("if") == {"fi", "iif", "iff"}
    assert misspellings("x1") == {"xx1"}


def test_one_edit_is_one_character_or_one_swap() -> None:
    words = ["".join(letters) for length in range(4) for letters in product("abc", repeat=length)]
    for word in words:
        near = {word[:i] + letter + word[i:] for i in range(len(word) + 1) for letter in "abc"}
        near |= {word[:i] + word[i + 1 :] for i in range(len(word))}
        near |= {word[:i] + letter + word[i + 1 :] for i in range(len(word)) for letter in "abc"}
        near |= {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)}
        assert {other for other in words if is_one_edit(word, other)} == (near - {word}) & set(words)
