"""A grammar of the tests: a finite automaton over ids, with all that decoders ask of one; no test lives here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from tests.decoding.network import END, V

_LONGEST = 40  # forced ids told at once


class Machine:
    """A place in an automaton: per state, ids and the states they lead to. It implements `types.Constraint`."""

    def __init__(self, moves: Sequence[Mapping[int, int]], whole: frozenset[int], path: tuple[int, ...] = (0,)) -> None:
        self.moves, self.whole, self.path = moves, whole, path

    @property
    def here(self) -> Mapping[int, int]:
        return self.moves[self.path[-1]]

    def allowed(self) -> bytes:
        mask = bytearray((V + 31) // 32 * 4)
        for id in self.here:
            mask[id // 8] |= 1 << id % 8
        return bytes(mask)

    def count_valid(self, ids: Sequence[int]) -> int:
        place = self.copy()
        for index, id in enumerate(ids):
            if id not in place.here:
                return index
            place.consume([id])
        return len(ids)

    def forced(self) -> list[int]:
        place, ids = self.copy(), list[int]()
        while len(place.here) == 1 and not place.is_accepting and len(ids) < _LONGEST:
            ids += place.here
            place.consume(ids[-1:])
        return ids

    def consume(self, ids: Sequence[int]) -> None:
        path = list(self.path)
        for id in ids:
            if id not in self.moves[path[-1]]:
                raise ValueError(f"{id} is not allowed")
            path.append(self.moves[path[-1]][id])
        self.path = tuple(path)

    def rollback(self, count: int) -> None:
        assert count < len(self.path)
        self.path = self.path[: len(self.path) - count]

    def copy(self) -> Machine:
        return Machine(self.moves, self.whole, self.path)

    def closure(self, limit: int) -> list[int] | None:
        """The shortest completion, if it is short enough."""
        ways: list[tuple[int, list[int]]] = [(self.path[-1], [])]
        seen = {self.path[-1]}
        for state, ids in ways:
            if state in self.whole:
                return ids if len(ids) <= limit else None
            for id, after in self.moves[state].items():
                if after not in seen:
                    seen.add(after)
                    ways.append((after, [*ids, id]))
        return None

    @property
    def is_accepting(self) -> bool:
        return self.path[-1] in self.whole

    @property
    def is_stopped(self) -> bool:
        return self.is_accepting and not self.here


def spelling(*words: Sequence[int]) -> Machine:
    """The grammar of a list of words."""
    moves: list[dict[int, int]] = [{}]
    whole = set[int]()
    for word in words:
        state = 0
        for id in word:
            if id not in moves[state]:
                moves.append({})
                moves[state][id] = len(moves) - 1
            state = moves[state][id]
        whole.add(state)
    return Machine(moves, frozenset(whole))


def anything() -> Machine:
    """The grammar of every text."""
    return Machine([{id: 0 for id in range(V) if id != END}], frozenset([0]))


def drawn(seed: int) -> Machine:
    """A grammar at random, with loops, forced stretches and choices, whose every place leads to a whole answer."""
    rng = Random(seed)
    size = rng.randint(3, 9)
    moves: list[dict[int, int]] = []
    for state in range(size - 1):
        ids = rng.sample([id for id in range(V) if id != END], rng.choice([1, 1, 2, 5]))
        targets = [state + 1, *(rng.randrange(size) for _ in ids[1:])]  # the first leads on, the others anywhere
        moves.append(dict(zip(ids, targets, strict=True)))
    moves.append({} if rng.random() < 0.5 else {rng.randrange(END): rng.randrange(size)})
    return Machine(moves, frozenset({size - 1, *(rng.randrange(1, size) for _ in range(rng.randint(0, 2)))}))
