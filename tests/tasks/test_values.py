"""Values: the two splits share none that is held out, and text and JSON spell each alike."""

import json
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import Split
from mezzotint.tasks.values import (
    DATE,
    EMAIL,
    IDENTIFIER,
    NAME,
    PLACE,
    PRICE,
    TIME,
    Kind,
    count,
    draw_word,
    one_of,
)

SPLITS: tuple[Split, ...] = ("train", "test")
LANDMARKS = {"bay", "cross", "hill", "mill", "park", "quay"}


def draw_many(kind: Kind, split: Split) -> set[str]:
    rng = Random(1)
    return {kind.draw(rng, split) for _ in range(3000)}


def invented_words(split: Split) -> set[str]:
    values = " ".join(value for kind in (NAME, PLACE, EMAIL) for value in draw_many(kind, split))
    return {word.lower() for word in re.findall(r"[A-Za-z]+", re.sub(r"\.\w+", "", values))} - LANDMARKS


def test_no_invented_word_is_in_both_splits_whatever_it_is_used_for() -> None:
    train, test = (invented_words(split) for split in SPLITS)
    assert len(train) > len(test) > 3000
    assert not train & test


@pytest.mark.parametrize("kind", [IDENTIFIER, PRICE, DATE, TIME], ids=["identifier", "price", "date", "time"])
def test_no_open_value_is_in_both_splits(kind: Kind) -> None:
    train, test = (draw_many(kind, split) for split in SPLITS)
    assert len(train) > len(test) > 100
    assert not train & test


@given(seed=st.integers(0, 2**32), split=st.sampled_from(SPLITS))
def test_json_spells_a_price_as_the_text_does(seed: int, split: Split) -> None:
    spelling = PRICE.draw(Random(seed), split)
    assert json.dumps(float(spelling)) == spelling


@given(seed=st.integers(0, 2**32), split=st.sampled_from(SPLITS))
def test_values_look_like_what_they_are(seed: int, split: Split) -> None:
    rng = Random(seed)
    assert re.fullmatch(r"[A-Z][a-z]{3,13}", draw_word(rng, split))
    assert re.fullmatch(r"[A-Z][a-z]+ [A-Z][a-z]+", NAME.draw(rng, split))
    assert re.fullmatch(r"[A-Z][a-z]+( [A-Z][a-z]+)?", PLACE.draw(rng, split))
    assert re.fullmatch(r"[a-z]+@[a-z]+\.(com|net|org)", EMAIL.draw(rng, split))
    assert re.fullmatch(r"[A-Z]{2}-[1-9]\d{3}", IDENTIFIER.draw(rng, split))
    assert re.fullmatch(r"20[2-5]\d-(0[1-9]|1[0-2])-([01]\d|2[0-8])", DATE.draw(rng, split))
    assert re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", TIME.draw(rng, split))


def test_counts_and_listed_words_cover_their_range_in_both_splits() -> None:
    for split in SPLITS:
        assert draw_many(count(2, 5), split) == {"2", "3", "4", "5"}
        assert draw_many(one_of("cash card"), split) == {"cash", "card"}
