"""Draws the values that records hold, as spelled in text and JSON alike; knows no record.

Names, places, addresses, ids, prices, dates and times of train never occur in test, and the reverse: a hash
of the spelling (for names, places and addresses, of each invented word) gives a fifth of them to test.
Counts and words from short lists are shared, being too few to hold out.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Literal, NamedTuple

from mezzotint.tasks.family import Split, is_held_out

_CLUSTERS = ("br", "dr", "fl", "gr", "kl", "pr", "qu", "sk", "st", "th", "tr")
_ONSETS: tuple[str, ...] = (*"bcdfghjklmnprstvwyz", *_CLUSTERS)
_VOWELS: tuple[str, ...] = (*"aaeeiioouu", "ai", "ea", "ou")
_ENDINGS: tuple[str, ...] = ("", "", *"nrlsmktx", "nd", "rt", "sh")
_LANDMARKS = ("Bay", "Cross", "Hill", "Mill", "Park", "Quay")
_DOMAINS = ("com", "net", "org")
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"


class Kind(NamedTuple):
    """One kind of value: its type in JSON, and `draw(rng, split)`, which returns a spelling."""

    json_type: Literal["string", "integer", "number"]
    draw: Callable[[Random, Split], str]


def draw_word(rng: Random, split: Split) -> str:
    """Invent a capitalised word of two or three syllables.

    Returns: a word that the other split never holds.
    """
    return _draw_for_split(_spell_word, rng, split)


def count(low: int, high: int) -> Kind:
    """Describe an integer from `low` to `high`, both included.

    Returns: the kind.
    """
    return Kind("integer", lambda rng, split: str(rng.randint(low, high)))


def one_of(words: str) -> Kind:
    """Describe a choice among the words of a space-separated list.

    Returns: the kind.
    """
    choices = tuple(words.split())
    return Kind("string", lambda rng, split: rng.choice(choices))


def _draw_for_split(spell: Callable[[Random], str], rng: Random, split: Split) -> str:
    while is_held_out(value := spell(rng), 5) != (split == "test"):
        pass
    return value


def _spell_word(rng: Random) -> str:
    syllables = [rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(2 if rng.random() < 0.7 else 3)]
    return ("".join(syllables) + rng.choice(_ENDINGS)).capitalize()


def _draw_name(rng: Random, split: Split) -> str:
    return f"{draw_word(rng, split)} {draw_word(rng, split)}"


def _draw_place(rng: Random, split: Split) -> str:
    word = draw_word(rng, split)
    return word if rng.random() < 0.7 else f"{word} {rng.choice(_LANDMARKS)}"


def _draw_email(rng: Random, split: Split) -> str:
    return f"{draw_word(rng, split)}@{draw_word(rng, split)}.{rng.choice(_DOMAINS)}".lower()


def _spell_identifier(rng: Random) -> str:
    return f"{rng.choice(_LETTERS)}{rng.choice(_LETTERS)}-{rng.randint(1000, 9999)}"


def _spell_price(rng: Random) -> str:
    # The last digit is never 0, so that JSON spells the number as the text does.
    return f"{rng.randint(2, 999)}.{rng.randint(0, 9)}{rng.randint(1, 9)}"


def _spell_date(rng: Random) -> str:
    return f"20{rng.randint(20, 59)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _spell_time(rng: Random) -> str:
    return f"{rng.randint(6, 23):02}:{rng.randint(0, 59):02}"


NAME = Kind("string", _draw_name)
PLACE = Kind("string", _draw_place)
EMAIL = Kind("string", _draw_email)
IDENTIFIER = Kind("string", partial(_draw_for_split, _spell_identifier))
PRICE = Kind("number", partial(_draw_for_split, _spell_price))
DATE = Kind("string", partial(_draw_for_split, _spell_date))
TIME = Kind("string", partial(_draw_for_split, _spell_time))
