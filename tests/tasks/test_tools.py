"""Invented tools: declarations as clients send them, arguments that fit, and names that train never declares."""

import json
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import Split
from mezzotint.tasks.family import is_held_out
from mezzotint.tasks.tools import (
    BASES,
    CHOICES,
    FLAGS,
    NOUNS,
    QUALIFIERS,
    VERBS,
    Tool,
    base_parameter,
    declare,
    draw_tools,
)

SPLITS: tuple[Split, ...] = ("train", "test")
SIZES = st.lists(st.integers(1, 3), min_size=2, max_size=4)
TYPES = {"string": str, "integer": int, "number": float, "boolean": bool}


def many(split: Split, sizes: tuple[int, ...] = (3, 2, 1)) -> list[list[Tool]]:
    return [draw_tools(Random(seed), split, sizes) for seed in range(1500)]


@given(seed=st.integers(0, 2**40), split=st.sampled_from(SPLITS), sizes=SIZES)
def test_tools_have_different_names_and_as_many_parameters_as_asked(seed: int, split: Split, sizes: list[int]) -> None:
    tools = draw_tools(Random(seed), split, sizes)
    assert len({tool.name for tool in tools}) == len(sizes)
    assert [len({parameter.key for parameter in tool.parameters}) for tool in tools] == sizes


@given(seed=st.integers(0, 2**40), handed=st.sampled_from(sorted(BASES)))
def test_what_is_handed_on_is_a_parameter_of_the_second_tool_only(seed: int, handed: str) -> None:
    first, second = draw_tools(Random(seed), "train", (2, 1), handed)
    assert handed not in [parameter.key for parameter in first.parameters]
    assert handed in [parameter.key for parameter in second.parameters]


def test_names_of_train_and_test_share_nothing_but_their_words() -> None:
    names = {split: {tool.name for tools in many(split) for tool in tools} for split in SPLITS}
    assert not names["train"] & names["test"]
    assert len(names["train"]) > 180
    assert len(names["test"]) > 50
    assert {word for name in names["train"] for word in name.split("_")} == {*VERBS, *NOUNS}


def test_qualified_keys_of_train_and_test_share_nothing_but_their_words() -> None:
    keys = {
        split: {parameter.key for tools in many(split) for tool in tools for parameter in tool.parameters}
        for split in SPLITS
    }
    plain = {*BASES, *CHOICES, *FLAGS}
    assert keys["train"] & keys["test"] == plain
    pairs = [f"{qualifier}_{base}" for qualifier, base in product(QUALIFIERS, BASES)]
    held_out = {key for key in keys["test"] - plain if is_held_out(key, 4)}
    assert held_out == keys["test"] - plain
    assert held_out <= set(pairs)
    words = {word for key in keys["train"] - plain for word in key.split("_")}
    assert {word for key in held_out for word in key.split("_")} <= words


def test_half_a_name_often_fits_another_tool() -> None:
    alike = sum(first.verb == second.verb or first.noun == second.noun for first, second, _ in many("train", (1, 1, 1)))
    assert 700 < alike < 1000


@pytest.mark.parametrize("split", SPLITS)
def test_values_have_the_type_and_the_choices_that_are_declared(split: Split) -> None:
    rng = Random(1)
    parameters = [parameter for tools in many(split) for tool in tools for parameter in tool.parameters]
    for parameter in parameters:
        value = parameter.draw(rng, split)
        assert type(value) is TYPES[parameter.schema["type"]]
        assert value in parameter.schema.get("enum", [value])
    assert {parameter.schema["type"] for parameter in parameters} == set(TYPES)


def test_a_number_is_spelled_in_a_request_as_in_a_call() -> None:
    rng = Random(2)
    for key in BASES:
        for _ in range(100):
            value = base_parameter(key).draw(rng, "train")
            assert str(value) == (value if isinstance(value, str) else json.dumps(value))


def test_a_declaration_is_what_openai_clients_send() -> None:
    tool = Tool("book", "table", (base_parameter("city"), base_parameter("price")))
    properties = {"city": {"type": "string"}, "price": {"type": "number"}}
    assert declare(tool, described=False, required=()) == {
        "type": "function",
        "function": {"name": "book_table", "parameters": {"type": "object", "properties": properties}},
    }
    assert declare(tool, described=True, required=["city"])["function"] == {
        "name": "book_table",
        "description": "Book a table.",
        "parameters": {"type": "object", "properties": properties, "required": ["city"]},
    }
