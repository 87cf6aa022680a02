"""A planted fault is one fault, and a right answer without one is left as it is."""

from random import Random

import pytest

from benchmarks.gate import MUTATIONS, mutate
from mezzotint.text.tokenizer import Tokenizer
from tests.llm.tiny import LAB


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_directory(LAB)


@pytest.mark.parametrize("seed", range(20))
def test_each_mutation_changes_one_thing_and_never_the_end(tokenizer: Tokenizer, seed: int) -> None:
    end = tokenizer.control["<turn|>"]
    answer = [*tokenizer.encode_text('{"day": 12, "month": 7, "name": "Ada"}'), end]
    made = {name: mutate(answer, name, Random(seed), tokenizer) for name in MUTATIONS}
    assert made["none"] == answer
    for name, size in (("swap", 0), ("duplicate", 1), ("drop", -1), ("digit", 0), ("control", 1)):
        ids = made[name]
        if ids is None:
            assert name in ("swap", "digit")
            continue
        assert len(ids) == len(answer) + size
        assert ids != answer
        assert ids[-1] == end
    assert made["digit"] is not None
    assert sorted(made["digit"]) == sorted(answer)


def test_a_fault_that_finds_no_place_is_none(tokenizer: Tokenizer) -> None:
    answer = [*tokenizer.encode_text("Yes."), tokenizer.control["<turn|>"]]
    assert mutate(answer, "digit", Random(0), tokenizer) is None
