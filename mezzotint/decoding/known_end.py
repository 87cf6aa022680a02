"""An end within reach of an unfinished answer under a grammar, found from the one that was known before if possible."""

from mezzotint.types import Constraint

_DROPPED = 3  # beginnings of the known end that are left out before one is searched: a new token stands for its first


def find_end(place: Constraint, known: list[int], limit: int) -> list[int] | None:
    """At most `limit` ids that complete the answer: the known ones, or the last of them, where they still do.

    Returns: ids that `consume` takes and that end in a whole answer; None where the search finds none.
    """
    for dropped in range(min(_DROPPED, len(known) + 1)):
        if len(known) - dropped <= limit and _completes(place, known[dropped:]):
            return known[dropped:]
    return place.closure(limit) if limit >= 0 else None


def _completes(place: Constraint, ids: list[int]) -> bool:
    whole = place.copy()
    try:
        whole.consume(ids)
    except ValueError:  # not allowed there
        return False
    return whole.is_accepting
