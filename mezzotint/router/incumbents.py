"""Which arm a class of task has at a load, and when another one takes its place; no estimate is made here."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mezzotint.router.policy_file import PolicyConfig

_MOST = 8192
Place = tuple[str, str, int]


@dataclass
class _Seat:
    arm: str
    streak: int = 0


class Incumbents:
    """One arm a class, goal and load, so that decisions at a crossover do not flap."""

    def __init__(self, config: PolicyConfig) -> None:
        """Nobody sits anywhere."""
        self._margin, self._patience, self._confidence = config.margin, config.patience, config.confidence
        self._seats: OrderedDict[Place, _Seat] = OrderedDict()

    def choose(self, place: Place, objectives: Mapping[str, float], is_better: Callable[[str, str], float]) -> str:
        """Take the arm of least objective, or the incumbent while the other is not clearly better.

        objectives: of the best plan that begins with each feasible arm. is_better(new, old): how probable that is.
        """
        best = min(objectives, key=lambda arm: objectives[arm])
        seat = self._seats.get(place)
        if seat is None:
            self._seats[place] = _Seat(best)
            if len(self._seats) > _MOST:
                self._seats.popitem(last=False)
            return best
        if seat.arm == best:
            seat.streak = 0
            return best
        if seat.arm not in objectives:
            return best  # for as long as the incumbent cannot be had
        is_clear = objectives[best] < (1.0 - self._margin) * objectives[seat.arm]
        seat.streak = seat.streak + 1 if is_clear else 0
        if seat.streak >= self._patience or is_better(best, seat.arm) > self._confidence:
            seat.arm, seat.streak = best, 0
        return seat.arm

    def unseat(self, arm: str) -> None:
        """Free all seats of an arm that has changed."""
        for place in [place for place, seat in self._seats.items() if seat.arm == arm]:
            del self._seats[place]
