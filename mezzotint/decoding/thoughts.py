"""How long one answer may think: whether its channel is open, and where it has to close; who closes it lives elsewhere.

… <open> thought thought thought ─► budget spent, or the answer's reserve reached ─► <close> answer …
"""

from collections.abc import Sequence
from copy import copy
from math import inf

from mezzotint.decoding.limits import Limits
from mezzotint.decoding.params import SamplingParams


class Thoughts:
    """The thinking of one answer that is bounded.

    closing: the id that closes a channel. forced: how often `settle` wrote it because it had to.
    What one channel spent counts for the next: where nothing is left, it has no more than its closing token. An end of
    turn, or whatever else the checkpoint writes outside of channels only, closes one too.
    """

    def __init__(self, prompt: Sequence[int], params: SamplingParams, limits: Limits) -> None:
        """Begin an answer behind a prompt, which may have opened a channel."""
        assert limits.channel is not None  # check_conflicts saw to it
        opening, self.closing, leaving = limits.channel
        self._opening, self._outside = opening, {self.closing, *leaving, *limits.end_ids}
        self._left = inf if params.thinking_budget is None else params.thinking_budget
        self._reserve = params.answer_reserve
        self.forced = 0
        self._is_open = bool(open_thoughts(prompt, limits))

    @property
    def left(self) -> float:
        """Tokens that thoughts may yet have, below 0 where they had more; infinite where none were counted."""
        return self._left

    def must_close(self, room: int) -> bool:
        """Whether the closing token has to come next, where `room` tokens may yet come."""
        is_reserved = self._reserve > 0 and room <= self._reserve + 1
        return self._is_open and room > 0 and (self._left <= 0 or is_reserved)

    def take(self, id: int) -> None:
        """Go on behind a token of the answer."""
        if id in self._outside:
            self._is_open = False
        elif self._is_open:
            self._left -= 1
        elif id == self._opening:
            self._is_open = True

    def settle(self, id: int, room: int) -> int:
        """Go on behind a token, or behind the closing one where that has to come. Returns: which of them it is."""
        if self.must_close(room):
            self.forced, id = self.forced + 1, self.closing
        self.take(id)
        return id

    def count_free(self, ids: Sequence[int], room: int) -> int:
        """How many of `ids`, from the first on, may come before the closing token has to; it may be among them."""
        ahead = copy(self)
        for index, id in enumerate(ids):
            if ahead.must_close(room - index) and id != self.closing:
                return index
            ahead.take(id)
        return len(ids)


def open_thoughts(prompt: Sequence[int], limits: Limits) -> list[int]:
    """The thoughts that a prompt has opened and not closed, from their opening token on; nothing without any."""
    if limits.channel is None:
        return []
    marks = {*limits.channel[:2], *limits.channel.leaving, *limits.end_ids}
    last = next((index for index in reversed(range(len(prompt))) if prompt[index] in marks), None)
    return [] if last is None or prompt[last] != limits.channel.opening else list(prompt[last:])


def bound_thoughts(prompt: Sequence[int], params: SamplingParams, limits: Limits) -> Thoughts | None:
    """The thinking of an answer behind a prompt; None where nothing bounds it."""
    return Thoughts(prompt, params, limits) if params.bounds_thinking else None
