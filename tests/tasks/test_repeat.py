"""`repeat`: the answer stands in the prompt in the order asked, values are held out, near misses refused."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mezzotint.tasks import Split
from mezzotint.tasks.family import Example
from mezzotint.tasks.repeat import accept, generate
from mezzotint.text.parse import Reply

SPLITS: tuple[Split, ...] = ("train", "test")
SEEDS = st.integers(0, 2**40)
KEYS = {"name", "place", "email", "badge", "price", "date", "time"}
LANDMARKS = {"Bay", "Cross", "Hill", "Mill", "Park", "Quay"}
OPEN_VALUE = re.compile(r"[A-Z]{2}-\d{4}|\d{4}-\d\d-\d\d|\d\d:\d\d|\d+\.\d\d")


def read_line(example: Example) -> str | None:
    instruction, *lines = example.messages[0]["content"].split("\n")
    if instruction != "Repeat the line.":
        return None
    (line,) = lines
    return line


def read_lookup(example: Example) -> tuple[list[str], dict[str, str]] | None:
    instruction, *lines = example.messages[0]["content"].split("\n")
    asked = re.fullmatch(r"Repeat the values of (.+)\.", instruction)
    if asked is None:
        return None
    values = dict(line.split(": ") for line in lines)
    assert len(values) == len(lines)
    return asked[1].split(", "), values


def is_lookup(seed: int) -> bool:
    return read_lookup(generate(seed, "test")) is not None


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_an_example_is_a_pure_function_of_seed_and_split(seed: int, split: Split) -> None:
    first = generate(seed, split)
    generate(seed + 1, split)
    assert generate(seed, split) == first
    assert generate(seed + 1, split) != first


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_the_answer_is_the_line_or_the_asked_values_in_the_order_asked(seed: int, split: Split) -> None:
    example = generate(seed, split)
    line, lookup = read_line(example), read_lookup(example)
    assert (line is None) != (lookup is None)
    if lookup is None:
        assert example.answer == line
        return
    asked, values = lookup
    assert 2 <= len(set(asked)) == len(asked) <= 4 <= len(values) <= 6
    assert set(asked) <= values.keys() <= KEYS
    assert example.answer == "; ".join(values[key] for key in asked)


def test_lines_have_two_to_five_values_behind_each_of_three_marks() -> None:
    lines = [line for seed in range(2000) if (line := read_line(generate(seed, "train")))]
    for mark in (", ", "; "):
        assert {len(line.split(mark)) for line in lines if mark in line} == {2, 3, 4, 5}
    plain = [line for line in lines if not re.search("[,;]", line)]
    assert all(1 <= line.count(" ") <= 9 for line in plain)
    assert len(plain) > 200


def test_both_kinds_of_question_are_frequent_and_every_key_is_asked_in_any_order() -> None:
    lookups = [lookup for seed in range(2000) if (lookup := read_lookup(generate(seed, "train")))]
    assert 900 < len(lookups) < 1100
    assert {key for asked, _ in lookups for key in asked} == KEYS
    assert {len(asked) for asked, _ in lookups} == {2, 3, 4}
    assert {len(values) for _, values in lookups} == {4, 5, 6}
    reordered = sum(asked != [key for key in values if key in asked] for asked, values in lookups)
    assert reordered > 500


def test_no_invented_word_and_no_open_value_of_train_is_in_test() -> None:
    prose = {split: " ".join(generate(seed, split).messages[0]["content"] for seed in range(3000)) for split in SPLITS}
    words = {split: set(re.findall(r"[A-Z][a-z]+", prose[split])) - LANDMARKS - {"Repeat"} for split in SPLITS}
    assert min(len(words[split]) for split in SPLITS) > 2000
    assert not words["train"] & words["test"]
    mailboxes = {split: set(re.findall(r"[a-z]+(?=@)|(?<=@)[a-z]+", prose[split])) for split in SPLITS}
    assert min(len(mailboxes[split]) for split in SPLITS) > 1000
    assert not mailboxes["train"] & mailboxes["test"]
    values = {split: set(OPEN_VALUE.findall(prose[split])) for split in SPLITS}
    assert min(len(values[split]) for split in SPLITS) > 1000
    assert not values["train"] & values["test"]


@pytest.mark.parametrize("split", SPLITS)
def test_questions_and_answers_stay_short(split: Split) -> None:
    for seed in range(2000):
        example = generate(seed, split)
        assert 25 <= len(example.messages[0]["content"]) <= 200
        assert 9 <= len(example.answer) <= 120


@given(seed=SEEDS, data=st.data())
def test_one_changed_or_lost_character_is_refused(seed: int, data: st.DataObject) -> None:
    example = generate(seed, "test")
    right = example.answer
    place = data.draw(st.integers(0, len(right) - 1))
    other = data.draw(st.characters(codec="ascii", categories=["L", "N"]))
    assume(other != right[place])
    assert not accept(example, Reply(right[:place] + other + right[place + 1 :]))
    assert not accept(example, Reply(right[:place] + right[place + 1 :]))


@given(seed=SEEDS.filter(is_lookup))
def test_another_order_another_mark_and_a_value_too_few_or_too_many_are_refused(seed: int) -> None:
    example = generate(seed, "test")
    lookup = read_lookup(example)
    assert lookup is not None
    asked, values = lookup
    right = [values[key] for key in asked]
    spare = next(value for key, value in values.items() if key not in asked[:1])
    for wrong in (right[::-1], right[:-1], right[1:], [*right, spare], [spare, *right[1:]]):
        assert (wrong == right) is accept(example, Reply("; ".join(wrong)))
    for mark in (", ", ";", "\n", " "):
        assert not accept(example, Reply(mark.join(right)))


@pytest.mark.parametrize("wrap", ["{0}.", '"{0}"', "{0}\n{0}", "Answer: {0}", "{0};", "{0} ok"])
@pytest.mark.parametrize("seed", [0, 1])
def test_text_around_the_line_is_refused(seed: int, wrap: str) -> None:
    example = generate(seed, "test")
    assert not accept(example, Reply(wrap.format(example.answer)))


@given(seed=SEEDS)
def test_another_case_is_refused_and_white_space_around_is_not(seed: int) -> None:
    example = generate(seed, "test")
    assert accept(example, Reply(f"\n {example.answer} \t\n"))
    assert (example.answer.upper() == example.answer) is accept(example, Reply(example.answer.upper()))
