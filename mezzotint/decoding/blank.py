"""A blank in a canvas with given text behind it: where it lies, and which of its tokens fill it."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mezzotint.decoding.canvas import Pins, pin_positions


class Blank(NamedTuple):
    """The first `capacity` positions of a canvas, open; `pins` give all that stands behind them.

    open open open open | behind … end fill fill
    """

    capacity: int
    pins: Pins

    def places(self, tokens: Sequence[int], surplus: Collection[int]) -> list[int]:
        """Where in a finished canvas stands what fills the blank: tokens of it that are no `surplus` id."""
        return [place for place, token in enumerate(tokens[: self.capacity]) if token not in surplus]


def lay_blank(behind: Sequence[int], most: int, width: int, fill_id: int) -> Blank:
    """A blank of at most `most` tokens in a canvas of `width`, `behind` it the given tokens, then fill_id.

    Raises: ValueError where `behind` leaves no room.
    """
    room = width - len(behind)
    if room < 1:
        raise ValueError(
            f"the text behind the blank has {len(behind)} tokens with its end, and a canvas {width}; "
            f"give at most {width - 1} and put the rest into the prompt"
        )
    capacity = min(most, room)
    given = [*behind, *[fill_id] * (room - capacity)]
    return Blank(capacity, pin_positions({capacity + place: token for place, token in enumerate(given)}, width))
