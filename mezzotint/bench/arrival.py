"""When tasks arrive: so many always at once, or at times that no answer can delay; nothing is sent here."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite
from random import Random
from typing import Literal

LoadKind = Literal["closed", "constant", "poisson", "trace"]


@dataclass(frozen=True, kw_only=True)
class Load:
    """How much is asked. value: tasks at once of a closed loop; tasks a second; how many times faster than a trace."""

    kind: LoadKind
    value: float

    def __post_init__(self) -> None:
        if not (isfinite(self.value) and self.value > 0):
            raise ValueError(f"load is {self.value:g}; give a number above 0")
        if self.kind == "closed" and self.value != int(self.value):
            raise ValueError(f"load is {self.value:g} at once; give a whole number, or a rate")

    @property
    def slots(self) -> int:
        """Tasks at once of a closed loop; 0 for a schedule."""
        return int(self.value) if self.kind == "closed" else 0

    def __str__(self) -> str:
        match self.kind:
            case "closed":
                return f"{self.slots} at once"
            case "trace":
                return f"trace × {self.value:g}"
            case kind:
                return f"{self.value:g}/s {kind}"


def arrival_times(load: Load, count: int, *, seed: str, trace: Sequence[float] = ()) -> list[float]:
    """When each of `count` tasks of a schedule arrives, in seconds from its start, ascending.

    trace: times of that many tasks. Of equal loads and seeds the times are equal, whoever answers.
    Raises: ValueError for a closed loop, which has no schedule, or a trace of another length.
    """
    match load.kind:
        case "closed":
            raise ValueError("a closed loop has no schedule: its tasks arrive as others end")
        case "constant":
            return [place / load.value for place in range(count)]
        case "poisson":
            random = Random(f"arrivals/{seed}/{load.value}")
            return list(accumulate(random.expovariate(load.value) for _ in range(count)))
        case "trace":
            if len(trace) != count:
                raise ValueError(f"the trace has {len(trace)} arrivals for {count} tasks; give a time for each")
            return [(time - trace[0]) / load.value for time in trace]
