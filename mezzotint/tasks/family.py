"""What a task family is: a seeded generator, an exact verifier, a hash that holds data out; no family."""

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Split = Literal["train", "test"]


@dataclass(frozen=True, kw_only=True)
class Example:
    """One question with its right answer; `schema` is the full JSON Schema of a JSON answer."""

    family: str
    messages: tuple[dict[str, str], ...]
    answer: str
    schema: dict[str, Any] | None = None


class Family(NamedTuple):
    """A name, a generator pure in seed and split, and a verifier that is true for right answers only."""

    name: str
    generate: Callable[[int, Split], Example]
    accept: Callable[[Example, str], bool]


def example_random(family: str, split: Split, seed: int) -> random.Random:
    """Start the one stream of randomness that example `seed` of `split` is drawn from.

    Returns: a generator that depends on the three arguments only, the same on every platform.
    Raises: ValueError for an unknown split.
    """
    if split not in ("train", "test"):
        raise ValueError(f"split is {split!r}; use 'train' or 'test'")
    return random.Random(f"{family}/{split}/{seed}")


def is_held_out(text: str, one_in: int) -> bool:
    """Decide by a hash of its spelling whether a value is kept for the test split.

    Returns: true for about one text in `one_in`, always the same ones.
    """
    return zlib.crc32(text.encode()) % one_in == 0
