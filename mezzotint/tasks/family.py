"""What a task family is: a seeded generator, an exact verifier, a hash that holds data out; no family."""

import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from mezzotint.text.parse import Reply, ToolCall

Split = Literal["train", "test"]


@dataclass(frozen=True, kw_only=True)
class Example:
    """One question with its right answer.

    answer: the content of the right reply; reasoning, calls: its thoughts and calls of tools.
    schema: the full JSON Schema of a JSON answer. tools, thinking: what the chat template is told beside messages.
    begins: what already stands in the model's turn before the answer; ends: what stands right behind it, so that
    a canvas sees both sides. variant: a part of the family that scores may be reported by, else empty.
    """

    family: str
    messages: tuple[dict[str, Any], ...]
    answer: str
    schema: dict[str, Any] | None = None
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    thinking: bool = False
    begins: str = ""
    ends: str = ""
    variant: str = ""

    @property
    def reply(self) -> Reply:
        """The right reply as a whole."""
        return Reply(self.answer, self.reasoning, self.calls)


class Family(NamedTuple):
    """A name, a generator pure in seed and split, and a verifier that is true for right answers only.

    accept_continuation: the verifier for an answer made without sight of what the example ends with.
    """

    name: str
    generate: Callable[[int, Split], Example]
    accept: Callable[[Example, Reply], bool]
    accept_continuation: Callable[[Example, Reply], bool] | None = None


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
