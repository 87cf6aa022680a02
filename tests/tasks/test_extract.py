"""`extract`: answers valid and found in the text, splits apart, and every kind of near miss refused."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import Example, Split, extract
from mezzotint.tasks.extract import ASIDES, UNSEEN_ASIDES, accept, generate
from mezzotint.tasks.records import RECORDS
from mezzotint.tasks.values import Kind
from mezzotint.text.parse import Reply
from tests.tasks.templates import natural_sentences, templates

SPLITS: tuple[Split, ...] = ("train", "test")
SEEDS = st.integers(0, 2**40)
TYPES = {"string": str, "integer": int, "number": float}
OPEN_VALUE = re.compile(r"[A-Z]{2}-\d{4}|\d{4}-\d\d-\d\d|\d\d:\d\d|\d+\.\d\d")


def parts(example: Example) -> tuple[dict[str, Any], str]:
    _, properties, text = example.messages[0]["content"].split("\n")
    return json.loads(properties), text


def dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def spellings(example: Example) -> list[str]:
    return [value if isinstance(value, str) else dump(value) for value in json.loads(example.answer).values()]


@pytest.fixture
def blank_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every value is drawn as its own blank, so that a text shows the wording it was made from."""

    def blank(key: str) -> Kind:
        return Kind("string", lambda rng, split: f"{{{key}}}")

    records = tuple(
        record._replace(fields={key: field._replace(kind=blank(key)) for key, field in record.fields.items()})
        for record in RECORDS
    )
    monkeypatch.setattr(extract, "RECORDS", records)
    monkeypatch.setattr(extract, "draw_word", lambda rng, split: "{word}")


def wording_of(example: Example) -> list[str]:
    _, text = parts(example)
    return re.split(r"(?<=\.) ", re.sub(r"\b\d+\b", "{count}", text))


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_the_answer_is_valid_under_the_schema_and_in_its_order(seed: int, split: Split) -> None:
    example = generate(seed, split)
    properties, _ = parts(example)
    assert example.schema == {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    answer = json.loads(example.answer)
    assert list(answer) == list(properties)
    assert 3 <= len(answer) <= 5
    assert all(type(answer[key]) is TYPES[properties[key]["type"]] for key in answer)
    assert example.answer == dump(answer)


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_every_value_stands_in_the_text_as_json_spells_it(seed: int, split: Split) -> None:
    example = generate(seed, split)
    _, text = parts(example)
    for spelling in spellings(example):
        assert re.search(rf"(?<![\w.-]){re.escape(spelling)}(?![\w-])", text)
    assert "{" not in text
    assert "}" not in text


@pytest.mark.parametrize("split", SPLITS)
def test_questions_and_answers_stay_short(split: Split) -> None:
    for seed in range(2000):
        example = generate(seed, split)
        _, text = parts(example)
        assert 15 <= len(text.split()) <= 45
        assert len(example.messages[0]["content"]) <= 420
        assert 30 <= len(example.answer) <= 150


def test_fields_are_told_in_another_order_than_asked_beside_others_that_are_not_asked() -> None:
    reordered = distracted = 0
    for seed in range(1000):
        example = generate(seed, "train")
        _, text = parts(example)
        values = spellings(example)
        places = [text.index(value) for value in values]
        reordered += places != sorted(places)
        distracted += len(OPEN_VALUE.findall(text)) > sum(bool(OPEN_VALUE.fullmatch(value)) for value in values)
    assert reordered > 700
    assert distracted > 300


def test_every_field_of_every_record_is_asked() -> None:
    asked = {key for seed in range(1000) for key in json.loads(generate(seed, "train").answer)}
    assert asked == {key for record in RECORDS for key in record.fields}


def test_no_invented_word_and_no_open_value_of_train_is_in_test() -> None:
    wordings = templates("train") | templates("test") | natural_sentences() | {*ASIDES, *UNSEEN_ASIDES}
    explained = set(re.findall(r"[A-Z][a-z]+", " ".join(wordings)))
    landmarks = {"Bay", "Cross", "Hill", "Mill", "Park", "Quay"}
    prose = {split: " ".join(parts(generate(seed, split))[1] for seed in range(4000)) for split in SPLITS}
    words = {split: set(re.findall(r"[A-Z][a-z]+", prose[split])) - explained - landmarks for split in SPLITS}
    assert min(len(words[split]) for split in SPLITS) > 2000
    assert not words["train"] & words["test"]
    mailboxes = {split: set(re.findall(r"[a-z]+(?=@)|(?<=@)[a-z]+", prose[split])) for split in SPLITS}
    assert not mailboxes["train"] & mailboxes["test"]
    values = {split: set(OPEN_VALUE.findall(prose[split])) for split in SPLITS}
    assert not values["train"] & values["test"]


@pytest.mark.usefixtures("blank_values")
def test_odd_test_seeds_use_held_out_templates_and_asides_only() -> None:
    allowed = templates("test") | set(UNSEEN_ASIDES)
    used = {sentence for seed in range(1, 4000, 2) for sentence in wording_of(generate(seed, "test"))}
    assert used <= allowed
    assert used >= set(UNSEEN_ASIDES)
    assert len(used) > 1000


@pytest.mark.usefixtures("blank_values")
@pytest.mark.parametrize(("split", "step"), [("train", 1), ("test", 2)])
def test_train_and_even_test_seeds_mix_natural_sentences_with_templates_of_train(split: Split, step: int) -> None:
    used = {sentence for seed in range(0, 4000, step) for sentence in wording_of(generate(seed, split))}
    assert used <= templates("train") | natural_sentences() | set(ASIDES)
    assert used >= natural_sentences() | set(ASIDES)
    assert len(used - natural_sentences()) > 1000


@pytest.mark.usefixtures("blank_values")
@pytest.mark.parametrize("split", SPLITS)
def test_a_text_tells_every_asked_field_once(split: Split) -> None:
    for seed in range(1000):
        example = generate(seed, split)
        told = re.findall(r"\{(\w+)\}", parts(example)[1])
        assert all(told.count(key) == 1 for key in json.loads(example.answer))
        assert len(told) == len(set(told))


@given(seed=SEEDS, data=st.data())
def test_key_order_and_white_space_do_not_matter(seed: int, data: st.DataObject) -> None:
    example = generate(seed, "test")
    pairs = list(json.loads(example.answer).items())
    shuffled = dict(data.draw(st.permutations(pairs)))
    assert accept(example, Reply(f" {json.dumps(shuffled, indent=2)}\n"))


@given(seed=SEEDS, data=st.data())
def test_one_changed_value_is_refused(seed: int, data: st.DataObject) -> None:
    example = generate(seed, "test")
    answer = json.loads(example.answer)
    key = data.draw(st.sampled_from(sorted(answer)))
    value = answer[key]
    for wrong in [value[:-1], value + "s", value.swapcase() + "."] if isinstance(value, str) else [value + 1, -value]:
        assert not accept(example, Reply(dump({**answer, key: wrong})))


@given(seed=SEEDS, data=st.data())
def test_a_value_of_the_wrong_type_is_refused(seed: int, data: st.DataObject) -> None:
    example = generate(seed, "test")
    answer = json.loads(example.answer)
    key = data.draw(st.sampled_from(sorted(answer)))
    value = answer[key]
    wrong: list[Any] = [None, True, [value], {"value": value}]
    if not isinstance(value, str):
        wrong.append(dump(value))
    if isinstance(value, int):
        wrong.append(float(value))
    for other in wrong:
        assert not accept(example, Reply(dump({**answer, key: other})))


@given(seed=SEEDS, data=st.data())
def test_a_missing_and_an_extra_key_are_refused(seed: int, data: st.DataObject) -> None:
    example = generate(seed, "test")
    answer = json.loads(example.answer)
    key = data.draw(st.sampled_from(sorted(answer)))
    assert not accept(example, Reply(dump({other: value for other, value in answer.items() if other != key})))
    assert not accept(example, Reply(dump({**answer, "extra": 1})))
    assert not accept(example, Reply(dump({**{k: v for k, v in answer.items() if k != key}, f"{key}s": answer[key]})))


def test_a_repeated_key_is_refused_even_with_the_right_value() -> None:
    example = generate(4, "test")
    key, value = next(iter(json.loads(example.answer).items()))
    assert not accept(example, Reply(example.answer[:-1] + f",{json.dumps(key)}:{json.dumps(value)}}}"))


@pytest.mark.parametrize(
    "wrap",
    [
        "{0} ok",
        "ok {0}",
        "{0}{0}",
        "[{0}]",
        "```json\n{0}\n```",
        '{{"answer":{0}}}',
        "{0},",
    ],
)
def test_text_around_the_object_is_refused(wrap: str) -> None:
    example = generate(7, "test")
    assert not accept(example, Reply(wrap.format(example.answer)))


@pytest.mark.parametrize(
    "text",
    ["null", "[]", "{}", "1", '"text"', "{", "NaN", "[" * 100_000, "9" * 5_000, "{'name':'x'}"],
    ids=lambda text: text[:12],
)
def test_what_is_not_the_object_is_refused_without_an_error(text: str) -> None:
    assert not accept(generate(0, "train"), Reply(text))


def priced_example() -> Example:
    return Example(family="extract", messages=(), answer='{"price":12.5,"nights":3}')


@pytest.mark.parametrize("text", ['{"price":12.50,"nights":3}', '{"price":1.25e1,"nights":3}'])
def test_a_number_counts_by_value(text: str) -> None:
    assert accept(priced_example(), Reply(text))


@pytest.mark.parametrize(
    "text",
    [
        '{"price":12.5,"nights":3.0}',
        '{"price":12.5,"nights":03}',
        '{"price":NaN,"nights":3}',
        '{"price":Infinity,"nights":3}',
        '{"price":12,"nights":3}',
        '{"price":"12.5","nights":3}',
        '{"price":12.5,"nights":3,}',
    ],
)
def test_numbers_that_differ_or_are_not_json_are_refused(text: str) -> None:
    assert not accept(priced_example(), Reply(text))


def test_true_is_not_the_number_one() -> None:
    example = Example(family="extract", messages=(), answer='{"price":1.0,"nights":1}')
    assert accept(example, Reply('{"price":1,"nights":1}'))
    assert not accept(example, Reply('{"price":true,"nights":1}'))
    assert not accept(example, Reply('{"price":1.0,"nights":true}'))
