"""How a canvas with blanks is denoised, and one row of it; which row is best and what came out live beside it."""

from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

from mezzotint.decoding.canvas import Pins
from mezzotint.decoding.gap import Slot, lay_slots
from mezzotint.decoding.generate import denoise_canvas, tell_draft
from mezzotint.decoding.limits import Limits
from mezzotint.decoding.program import Denoise, Draft
from mezzotint.decoding.random import CanvasRandomness
from mezzotint.decoding.sampler import CanvasState, Sampler
from mezzotint.decoding.shape import Shape
from mezzotint.types import Reading

Lengths = Literal["surplus", "candidates"]


@dataclass(frozen=True, kw_only=True)
class Filling:
    """How a canvas with blanks is denoised.

    randomness: of each attempt at it. surplus: ids that are never part of a middle. fill_id: of places behind all text,
    None where a blank follows there that has to wait.
    """

    lengths: Lengths
    sampler: Sampler
    temperature: float
    randomness: Callable[[int], CanvasRandomness]
    limits: Limits
    shape: Shape | None
    surplus: Collection[int]
    fill_id: int | None


class Row(NamedTuple):
    """Slots with the tokens of their canvas, and the steps that these took."""

    slots: list[Slot]
    tokens: list[int]
    steps: int

    def inside(self, index: int, how: Filling) -> list[int]:
        """What stands in the open places of one slot, surplus too."""
        start = lay_slots(self.slots, how.limits.canvas_length, how.fill_id).starts[index]
        return self.tokens[start : start + self.slots[index].size]

    def middle(self, index: int, how: Filling) -> list[int]:
        """What fills one slot."""
        return [token for token in self.inside(index, how) if token not in how.surplus]


def denoise_row(
    slots: Sequence[Slot], at: int, how: Filling, sampler: Sampler, attempt: int
) -> Generator[Denoise | Draft, Reading, Row]:
    """The program that denoises a canvas of slots behind `at` tokens to its end. Returns: its row."""
    pins = lay_slots(slots, how.limits.canvas_length, how.fill_id).pins
    if bool(pins.mask.all()):
        return Row(list(slots), pins.tokens.tolist(), 0)
    state = yield from denoise_open(pins, at, how, sampler, attempt)
    return Row(list(slots), state.output[0].tolist(), state.step)


def denoise_open(
    pins: Pins, at: int, how: Filling, sampler: Sampler, attempt: int
) -> Generator[Denoise | Draft, Reading, CanvasState]:
    """The same for a canvas of which something is open. Returns: its last state."""
    randomness = how.randomness(attempt)
    state: Any = yield from denoise_canvas(
        at,
        sampler,
        randomness,
        pins,
        how.limits,
        temperature=how.temperature,
        window=None,
        shape=how.shape,
        tell=partial(tell_draft, attempt),
    )
    assert isinstance(state, CanvasState)
    return state
