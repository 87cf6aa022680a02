"""The settled beginning of one canvas under a grammar: how it grows, and what is taken back of it and why.

What is taken back is the model's own choice, never what had no alternative; that token is barred from its place then.
"""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from mezzotint.decoding.guide import Guide, Mark
from mezzotint.types import Reading

_TINY = 1e-3  # of what the model believes, so little that something behind the border must be wrong
_SURE = 0.325  # nats: the entropy of nine to one
_MOST_DEAD_ENDS, _MOST_REVISIONS = 8, 4  # of a canvas, so that it comes to an end


class _Run(NamedTuple):
    """Tokens settled at once: the offset of the first, the guide's place before it, whether it was overridden."""

    start: int
    mark: Mark
    is_overridden: bool


class Prefix:
    """Settled tokens at the left of a canvas, all of them in the guide's answer too.

    tokens: they, and doubts: how unsure the model was of each, in nats. waited: steps in a row that settled none.
    barred: ids by offset that were taken back from there.
    """

    def __init__(self, guide: Guide, width: int) -> None:
        """Begin a canvas with what is due."""
        self._guide, self._first = guide, guide.length
        self.tokens = guide.due(width)
        self.doubts = [0.0] * len(self.tokens)
        self.waited = 0
        self.barred: dict[int, set[int]] = {}
        self._runs: list[_Run] = []
        self._dead_ends = self._revisions = 0

    def settle(self, ids: Sequence[int], entropies: Sequence[float], *, is_overridden: bool) -> None:
        """Settle proposals that count_valid has counted, the first of them perhaps against the model's likeliest."""
        self._runs.append(_Run(len(self.tokens), self._guide.mark(), is_overridden))
        run = self._guide.settle(ids)
        self._guide.overridden += bool(run) and is_overridden
        self.tokens += run
        self.doubts += entropies[: len(run)]
        self.waited = 0 if run else self.waited + 1

    def settle_due(self, limit: int) -> list[int]:
        """Settle at most `limit` tokens that have no alternative. Returns: them."""
        due = self._guide.due(limit)
        self.tokens += due
        self.doubts += [0.0] * len(due)
        return due

    def find_mistake(self, mass: float, reading: Reading, before: Tensor) -> int | None:
        """The offset of a choice that is to be taken back; None where all may stay.

        Where the model believes less than a thousandth of all that is allowed next, the last choice; the next times in
        this canvas the last two, four and so on. Else the first choice in whose place it is sure of another token for
        the second time. mass: what it believes of what is allowed next. before: [C] argmax of the step before.
        """
        chosen = [at - self._first for at in self._guide.chosen if at >= self._first]
        if not chosen:
            return None
        if mass < _TINY and self._dead_ends < _MOST_DEAD_ENDS:
            self._dead_ends += 1
            return chosen[-min(len(chosen), 1 << (self._dead_ends - 1))]
        if self._revisions == _MOST_REVISIONS:
            return None
        now, then, entropies = reading.argmax.tolist(), before.tolist(), reading.entropy.tolist()
        for at in chosen:
            if now[at] != self.tokens[at] and now[at] == then[at] and entropies[at] <= _SURE:
                self._revisions += 1
                return at
        return None

    def take_back(self, offset: int) -> None:
        """Take back all from `offset` on, which the model chose, and bar that choice from there."""
        self.barred.setdefault(offset, set()).add(self.tokens[offset])
        while self._runs[-1].start > offset:
            self._runs.pop()
        start, mark, is_overridden = self._runs.pop()
        kept, doubts = self.tokens[start:offset], self.doubts[start:offset]
        del self.tokens[start:], self.doubts[start:]
        self._guide.take_back(mark)
        if kept:
            self.settle(kept, doubts, is_overridden=is_overridden)
        self.waited = 0
