"""A place in a compiled grammar, as decoders use it (`types.Constraint`); what grammars say lives in `grammar`.

llguidance does the work. What is ours: ends of turn are never part of a grammar, forced bytes are written as the
tokenizer writes them, and an error leaves the place as it was.
"""

from collections.abc import Sequence
from typing import NoReturn, Self

from llguidance import LLMatcher

from mezzotint.text.closure import Preferences, find_closure

_KEPT_ENDS = 64  # of the beginning of a grammar, which every request asks for


class Matcher:
    """The prefix of one answer under one grammar; it implements `types.Constraint`."""

    def __init__(self, matcher: LLMatcher, preferences: Preferences) -> None:
        """Take over a matcher of llguidance, which must not be used elsewhere."""
        self._matcher = matcher
        self._preferences = preferences
        self._length = 0
        self._first_ends: dict[int, list[int] | None] = {}  # closures of the beginning, by limit; copies share them

    def allowed(self) -> bytes:
        """The ids that may come next, ends of turn not among them: id i is bit i % 8 of byte i // 8.

        Returns: (V + 31) // 32 * 4 bytes, V being the tokenizer's vocabulary; all zero once nothing may follow.
        Raises: ValueError when the grammar has become too complex here.
        """
        before = self._matcher.deep_copy()
        mask = bytearray(self._matcher.compute_bitmask())
        self._check(before)
        for id in self._preferences.barred_ids:
            mask[id // 8] &= ~(1 << id % 8)
        return bytes(mask)

    def count_valid(self, ids: Sequence[int]) -> int:
        """How many of `ids`, from the first on, are allowed one behind the other; the place stays as it is.

        Raises: ValueError when the grammar becomes too complex on the way.
        Source: contract 13.
        """
        count = self._advance(ids)
        self.rollback(count)
        return count

    def forced(self) -> list[int]:
        """The ids that must come next: those that no longer token could begin.

        Raises: ValueError when the grammar has become too complex here.
        """
        before = self._matcher.deep_copy()
        ids = self._matcher.compute_ff_tokens()
        self._check(before)
        return list(ids)

    def consume(self, ids: Sequence[int]) -> None:
        """Make `ids` part of the prefix.

        Raises: ValueError naming the first that is not allowed, or when the grammar becomes too complex there; nothing
        is consumed then.
        """
        count = self._advance(ids)
        if count < len(ids):
            self.rollback(count)
            raise ValueError(
                f"token id {ids[count]}, number {count} of {len(ids)}, is not allowed here; ask count_valid before"
            )

    def rollback(self, count: int) -> None:
        """Take the last `count` ids off the prefix.

        Raises: ValueError for more ids than were consumed.
        """
        if not 0 <= count <= self._length:
            raise ValueError(f"{count} ids cannot be taken back; {self._length} were consumed")
        if count:
            self._matcher.rollback(count)
        self._length -= count

    def copy(self) -> Self:
        """The same place, to go on from independently."""
        twin = type(self)(self._matcher.deep_copy(), self._preferences)
        twin._length, twin._first_ends = self._length, self._first_ends
        return twin

    def closure(self, limit: int) -> list[int] | None:
        """At most `limit` ids that complete the prefix, few rather than many, found by walking a copy to an end.

        Returns: ids that `consume` takes and that end in a whole answer, none if the prefix is one; None where the
        search finds no such end, though there may be one.
        """
        if self._length:
            return find_closure(self, limit, self._preferences)
        known = self._first_ends
        found = known[limit] if limit in known else find_closure(self, limit, self._preferences)
        if len(known) < _KEPT_ENDS:
            known[limit] = found
        return None if found is None else list(found)

    @property
    def is_accepting(self) -> bool:
        """Whether the prefix is a whole answer."""
        return self._matcher.is_accepting()

    @property
    def is_stopped(self) -> bool:
        """Whether the prefix is a whole answer and nothing more may follow."""
        return self._matcher.is_stopped() and self._matcher.is_accepting()

    def _advance(self, ids: Sequence[int]) -> int:
        """Consume the longest allowed beginning of `ids`; returns its length."""
        before, taken, ahead = self._matcher.deep_copy(), 0, list[int]()
        for id in ids[: self._matcher.validate_tokens(list(ids))]:
            if ahead[:1] != [id]:
                # What is forced is in the mask as the tokenizer writes it: one question for a stretch, not one an id.
                ahead = self._matcher.compute_ff_tokens() if self._matcher.compute_ff_bytes() else []
            if id in self._preferences.barred_ids or (ahead[:1] != [id] and not self._may_follow(id)):
                break
            self._matcher.consume_token(id)
            ahead = ahead[1:]
            taken += 1
        self._check(before)
        self._length += taken
        return taken

    def _may_follow(self, id: int) -> bool:
        """Whether a valid id may stand here: where bytes are forced, only if it is in the mask."""
        if not self._matcher.compute_ff_bytes():
            return True
        return bool(self._matcher.compute_bitmask()[id // 8] >> id % 8 & 1)

    def _check(self, before: LLMatcher) -> None:
        """Go back to `before` and raise if llguidance has met an error, which it never leaves."""
        if self._matcher.is_error():
            failed, self._matcher = self._matcher, before
            refuse(failed.get_error())


def refuse(error: str) -> NoReturn:
    """Raise: ValueError with what llguidance said, without the dump of its state."""
    said = error.split("\n<state>")[0].strip()
    raise ValueError(f"the grammar cannot be followed: {said}; simplify it, or bound what it repeats")
