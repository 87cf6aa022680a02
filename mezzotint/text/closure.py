"""How an unfinished answer is brought to an end in few tokens: a bounded walk to some end, not to the nearest one.

Nothing is promised but what was walked: each id was allowed where it stands, and the last one made the answer whole.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random
from typing import NamedTuple

from mezzotint.types import Constraint

# What ends the most comes first.
_CLOSERS = '"}}} }}} }]} ]}} "}} "]} }} ]} }] ]] "} "] } ] "'.split()
_TEXT_BYTES = 64  # where more single bytes are allowed the place is within a text, and brackets close nothing
_OPENERS = frozenset(b"{[(<-")
_RANDOM_WALKS = 2


class Preferences(NamedTuple):
    """Which ids of a vocabulary bring an end near.

    barred_ids: control ids that no answer holds, ends of turn among them. closers: ids that close something, the best
    first; text_closers are those that end a text. byte_ids: texts of one byte, those that open something last. longer:
    the texts of two bytes, and of more, each set an integer with bit i for id i. hints: texts that one grammar insists
    on, as ids.
    """

    barred_ids: frozenset[int]
    closers: tuple[int, ...]
    text_closers: tuple[int, ...]
    byte_ids: tuple[int, ...]
    longer: tuple[int, int]
    hints: tuple[tuple[int, ...], ...] = ()


def prefer(spellings: Mapping[int, bytes], barred_ids: frozenset[int], closing_ids: tuple[int, ...]) -> Preferences:
    """Sort the text ids of a vocabulary, given with their bytes; `closing_ids` are control ids that close something.

    Returns: the preferences.
    """
    ids = {spelling: id for id, spelling in spellings.items()}
    closers = [*closing_ids, *(ids[closer.encode()] for closer in _CLOSERS if closer.encode() in ids)]
    text_closers = [id for id in closers if id in closing_ids or spellings[id].startswith(b'"')]
    one = [id for id, spelling in spellings.items() if len(spelling) == 1]
    one.sort(key=lambda id: (spellings[id][0] in _OPENERS, id))
    two = [id for id, spelling in spellings.items() if len(spelling) == 2]
    more = [id for id, spelling in spellings.items() if len(spelling) > 2]
    return Preferences(barred_ids, tuple(closers), tuple(text_closers), tuple(one), (_set_of(two), _set_of(more)))


def find_closure(start: Constraint, limit: int, preferences: Preferences) -> list[int] | None:
    """Walk from `start` until the answer is whole: close what is open, else take a hint, else what is newly possible.

    Where that leads nowhere within `limit` ids, another kind of walk and two seeded random ones follow; so at most
    4 × limit ids are tried.
    Returns: at most `limit` ids; None if no walk came to an end.
    """
    walks = [_Walk(preferences, closes=True), _Walk(preferences, closes=False)]
    walks += [_Walk(preferences, closes=seed % 2 == 0, rng=Random(seed)) for seed in range(_RANDOM_WALKS)]
    return next((ids for walk in walks if (ids := walk.run(start.copy(), limit)) is not None), None)


class _Walk:
    """One way of choosing, and what it has seen on its way."""

    def __init__(self, preferences: Preferences, *, closes: bool, rng: Random | None = None) -> None:
        self._preferences = preferences
        self._closes, self._rng = closes, rng
        self._uses: Counter[int] = Counter()
        self._before: frozenset[int] = frozenset()  # single bytes that were allowed at the last choice
        self._taken: set[tuple[int, ...]] = set()  # hints since something was closed

    def run(self, place: Constraint, limit: int) -> list[int] | None:
        ids: list[int] = []
        while not place.is_accepting:
            try:
                step = place.forced() or self._choose(place)
                if not step or len(ids) + len(step) > limit:
                    return None
                place.consume(step)
            except ValueError:  # too complex to go on there
                return None
            ids += step
        return ids

    def _choose(self, place: Constraint) -> list[int]:
        """What to write here, nothing where nothing may follow."""
        allowed, preferences = place.allowed(), self._preferences
        single = [id for id in preferences.byte_ids if allowed[id // 8] >> id % 8 & 1]
        closers = preferences.text_closers if len(single) > _TEXT_BYTES else preferences.closers
        closer = next((id for id in closers if allowed[id // 8] >> id % 8 & 1), None)
        if self._closes and closer is not None:
            self._taken.clear()
            return [closer]
        return self._take_hint(place) or self._try(single, allowed)

    def _take_hint(self, place: Constraint) -> list[int]:
        """A hint, or the end of one whose beginning stands already, each once for a text."""
        for hint in self._preferences.hints:
            if hint not in self._taken:
                for ids in (hint[start:] for start in range(len(hint))):
                    if place.count_valid(ids) == len(ids):
                        self._taken.add(hint)
                        return list(ids)
        return []

    def _try(self, single: list[int], allowed: bytes) -> list[int]:
        """The byte that was not possible before and was used least; where there is none, a short token."""
        if not single:
            mask = int.from_bytes(allowed, "little")
            shortest = next((found for ids in self._preferences.longer if (found := mask & ids)), mask)
            return [(shortest & -shortest).bit_length() - 1] if shortest else []
        if self._rng:
            return [self._rng.choice(single)]
        best = min(single, key=lambda id: (id in self._before, self._uses[id]))
        self._uses[best] += 1
        self._before = frozenset(single)
        return [best]


def _set_of(ids: Iterable[int]) -> int:
    found = list(ids)
    packed = bytearray(max(found, default=0) // 8 + 1)
    for id in found:
        packed[id // 8] |= 1 << id % 8
    return int.from_bytes(packed, "little")
