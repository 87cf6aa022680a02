"""Bit rules against a slow reading of the prompt, the held-out tables, and near misses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import FAMILIES, Split
from mezzotint.tasks.rule import BITS, apply_parallel, apply_sequential, tables
from mezzotint.text.parse import Reply

NAMES = ("parallel_rule", "sequential_rule")
SPLITS: tuple[Split, ...] = ("train", "test")
BIT_LISTS = st.lists(st.integers(0, 1), min_size=1, max_size=40)


def read_prompt(prompt: str) -> tuple[str, dict[str, str], str]:
    sentence, entries, bits = prompt.split("\n")
    table = dict(entry.split(":") for entry in entries.split(" "))
    return sentence, table, bits


def solve_from_the_prompt_alone(prompt: str) -> str:
    sentence, table, bits = read_prompt(prompt)
    out = ""
    for i in range(len(bits)):
        source = bits if sentence.startswith("Parallel") else out
        left = source[i - 1] if i > 0 else "0"
        right = bits[i + 1] if i + 1 < len(bits) else "0"
        out += table[left + bits[i] + right]
    return out


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**40), split=st.sampled_from(SPLITS))
def test_the_answer_follows_from_the_prompt_alone(name: str, seed: int, split: Split) -> None:
    example = FAMILIES[name].generate(seed, split)
    assert solve_from_the_prompt_alone(example.messages[0]["content"]) == example.answer


@given(bits=BIT_LISTS)
def test_known_rules_do_what_their_names_say(bits: list[int]) -> None:
    own, left, parity_of_left_and_own = 0b11001100, 0b11110000, 0b00111100
    assert apply_parallel(own, bits) == apply_sequential(own, bits) == bits
    assert apply_parallel(left, bits) == [0, *bits[:-1]]
    assert apply_sequential(left, bits) == [0] * len(bits)
    assert apply_parallel(parity_of_left_and_own, bits) == [a ^ b for a, b in zip([0, *bits[:-1]], bits, strict=True)]
    assert apply_sequential(parity_of_left_and_own, bits) == [sum(bits[: i + 1]) % 2 for i in range(len(bits))]


@given(table=st.integers(0, 15), bits=BIT_LISTS)
def test_the_two_rules_agree_where_the_table_ignores_its_left_bit(table: int, bits: list[int]) -> None:
    both_halves = table | table << 4
    assert apply_parallel(both_halves, bits) == apply_sequential(both_halves, bits)


def test_a_tenth_of_the_tables_is_held_out_and_every_table_is_in_one_split() -> None:
    assert sorted(tables("train") + tables("test")) == list(range(256))
    assert 20 <= len(tables("test")) <= 31


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", SPLITS)
def test_each_split_shows_all_of_its_own_tables_and_no_other(name: str, split: Split) -> None:
    shown = set()
    for seed in range(3000):
        _, table, _ = read_prompt(FAMILIES[name].generate(seed, split).messages[0]["content"])
        assert list(table) == [f"{entry:03b}" for entry in range(8)]
        shown.add(sum(int(bit) << int(entry, 2) for entry, bit in table.items()))
    assert shown == set(tables(split))


@pytest.mark.parametrize("name", NAMES)
def test_questions_and_answers_keep_their_length(name: str) -> None:
    for seed in range(2000):
        example = FAMILIES[name].generate(seed, "train")
        assert len(example.messages[0]["content"]) <= 170
        assert len(example.answer) == BITS
        assert set(example.answer) <= {"0", "1"}


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**40), position=st.integers(0, BITS - 1))
def test_one_wrong_bit_is_refused(name: str, seed: int, position: int) -> None:
    example = FAMILIES[name].generate(seed, "test")
    flipped = "10"[int(example.answer[position])]
    assert not FAMILIES[name].accept(
        example, Reply(example.answer[:position] + flipped + example.answer[position + 1 :])
    )


@pytest.mark.parametrize("name", NAMES)
def test_missing_spaced_and_trailing_bits_are_refused(name: str) -> None:
    example = FAMILIES[name].generate(5, "train")
    for text in (
        example.answer[:-1],
        example.answer + "0",
        " ".join(example.answer),
        f"{example.answer} done",
    ):
        assert not FAMILIES[name].accept(example, Reply(text))
