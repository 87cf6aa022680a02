"""What a measurement is told: arms, loads, how many tasks, and what its figures are counted by; nothing runs here."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from mezzotint import __version__
from mezzotint.bench.arm import Arm, Way
from mezzotint.bench.arrival import Load
from mezzotint.bench.play import PlayConfig

GOALS = ("ttfc", "e2e", "tta", "itl", "tpot")  # what a goal can be set for, in seconds
_FOR_FIGURES = ("prices", "goals")  # fields that change figures, and nothing that is measured


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Dollars: a million tokens read, a million written, and a second in which a server worked."""

    input: float = 0.0
    output: float = 0.0
    busy: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} price is {value:g}; it must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """One measurement: `tasks` tasks for every arm at every load, in `rounds` parts whose order of arms turns around.

    target: what answers, in words that do not change between two starts. warm_up: tasks before each part that do not
    count; None: one a slot. max_in_flight: unfinished tasks of a schedule; one that finds so many is dropped.
    goals: seconds that a good task keeps to, by figure.
    Raises: ValueError naming field, value and remedy.
    """

    target: str
    arms: tuple[Arm, ...]
    loads: tuple[Load, ...]
    tasks: int = 48
    rounds: int = 2
    seed: int = 0
    warm_up: int | None = None
    max_in_flight: int = 256
    play: PlayConfig = field(default_factory=PlayConfig)
    prices: Prices = field(default_factory=Prices)
    goals: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.arms or not self.loads:
            raise ValueError("arms or loads is empty; name at least one of each")
        for what, names in (("arm", [arm.name for arm in self.arms]), ("load", [str(load) for load in self.loads])):
            if repeated := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"{what} {repeated[0]!r} is named twice; once is enough")
        if not 1 <= self.rounds <= self.tasks:
            raise ValueError(f"rounds is {self.rounds} of {self.tasks} tasks; give 1 to as many rounds as tasks")
        if self.warm_up is not None and self.warm_up < 0:
            raise ValueError(f"warm_up is {self.warm_up}; give 0 or more tasks")
        if self.max_in_flight < 1:
            raise ValueError(f"max_in_flight is {self.max_in_flight}; give at least 1")
        for name, seconds in self.goals.items():
            if name not in GOALS or not 0 < seconds < float("inf"):
                raise ValueError(f"goal is {name}={seconds:g}; give positive seconds to some of {', '.join(GOALS)}")

    def warm_up_at(self, load: Load) -> int:
        """Tasks before each part at a load that do not count."""
        return max(1, load.slots) if self.warm_up is None else self.warm_up

    def identity(self, workload: str) -> dict[str, Any]:
        """All that what is measured depends on, as JSON has it. workload: its digest."""
        told = {name: value for name, value in asdict(self).items() if name not in _FOR_FIGURES}
        return {**json.loads(json.dumps(told)), "workload": workload, "version": __version__}


def digest(identity: Mapping[str, Any]) -> str:
    """Sixteen hexadecimal digits, equal for equal identities."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def restore(told: Mapping[str, Any]) -> BenchConfig:
    """A configuration from what `asdict` made of it, and JSON of that."""
    arms = [_restore_arm(arm) for arm in told["arms"]]
    kept = {name: value for name, value in told.items() if name not in ("arms", "loads", "play", "prices")}
    loads = tuple(Load(**load) for load in told["loads"])
    play, prices = PlayConfig(**told["play"]), Prices(**told["prices"])
    return BenchConfig(arms=tuple(arms), loads=loads, play=play, prices=prices, **kept)


def _restore_arm(told: Mapping[str, Any]) -> Arm:
    ways = {name: Way(*way) for name, way in told.items() if name != "name" and way is not None}
    return Arm(name=told["name"], **ways)
