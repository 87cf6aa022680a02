"""A stopper of the tests: every id spells a letter or two, and some strings end an answer; no test lives here."""

from collections.abc import Sequence

from tests.decoding.network import V

# Three letters and their pairs, so that strings cross tokens and begin within one; END's is no exception.
SPELLED = [*"abc", *(first + second for first in "abc" for second in "abc")]


def spell(ids: Sequence[int]) -> str:
    """The text of ids; half of them spell nothing, as control tokens do."""
    return "".join(SPELLED[id] if id < len(SPELLED) else "" for id in ids)


class Letters:
    """Ends an answer where one of `stops` is complete in its text. It implements `types.Stopper`."""

    def __init__(self, *stops: str) -> None:
        assert len(SPELLED) < V
        self.stops = stops
        self.ids: list[int] = []

    def count_kept(self, ids: Sequence[int]) -> int | None:
        assert not self._is_complete(), "nothing follows a stop string"
        for index, id in enumerate(ids):
            self.ids.append(id)
            if self._is_complete():
                return index + 1
        return None

    def restart(self) -> "Letters":
        return Letters(*self.stops)

    def _is_complete(self) -> bool:
        return any(stop in spell(self.ids) for stop in self.stops)


def keep(tokens: Sequence[int], stops: Sequence[str]) -> list[int]:
    """The first of tokens, up to the one with which a stop string is complete; all of them without one."""
    ends = [end for end in range(1, len(tokens) + 1) if any(stop in spell(tokens[:end]) for stop in stops)]
    return list(tokens[: min(ends, default=len(tokens))])
