"""What a team may say about routing, and the TOML file it says it in; no arm and no estimate."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mezzotint.router.record import Goal

GOALS: tuple[Goal, ...] = get_args(Goal)


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What a goal minimises: time × expected seconds + money × expected dollars, until an answer is accepted.

    miss_s: seconds that an answer which is never accepted counts as, at most what is left until the deadline.
    """

    time: float = 1.0
    money: float = 0.0
    miss_s: float = 60.0


_WEIGHTS: dict[Goal, Weights] = {
    "balanced": Weights(time=1.0, money=1_000.0, miss_s=60.0),
    "fast": Weights(time=1.0, money=0.0, miss_s=20.0),
    "cheap": Weights(time=0.01, money=10_000.0, miss_s=60.0),
    "best": Weights(time=1.0, money=0.0, miss_s=600.0),
}


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """How arms are chosen.

    exploration: share of decisions that are spent on the arm known least. margin, patience: a class's arm changes where
    another one is better by this share for so many decisions running, or where it is better with the probability
    `confidence`, by what is believed. crossover: requests at an engine from which a canvas no longer
    pays, believed until it is measured. least_measured: attempts from which an arm counts as measured.
    remeasure: share of decisions that are explored after something changed.
    pins: a class of task (a pattern such as `schema-*`) or a model name (`auto:fast`) and the arm that answers it.
    forbidden: arms that are never taken.
    Raises: ValueError naming option, value and remedy.
    """

    exploration: float = 0.02
    margin: float = 0.05
    patience: int = 5
    confidence: float = 0.8
    crossover: int = 4
    least_measured: int = 3
    remeasure: float = 0.25
    forbidden: tuple[str, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[Goal, Weights] = field(default_factory=lambda: dict(_WEIGHTS))

    def __post_init__(self) -> None:
        for name, low, high in (
            ("exploration", 0.0, 0.5),
            ("margin", 0.0, 1.0),
            ("confidence", 0.5, 1.0),
            ("remeasure", 0.0, 0.5),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name} is {value}; it must lie between {low:g} and {high:g}")
        for name in ("patience", "crossover", "least_measured"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for pattern, arm in self.pins.items():
            if arm in self.forbidden:
                raise ValueError(f"pins sends {pattern!r} to {arm!r}, which forbidden names; drop one of the two")
        for goal, weights in self.weights.items():
            if min(asdict(weights).values()) < 0 or weights.time + weights.money == 0:
                raise ValueError(f"weights.{goal} is {weights}; none may be negative, and time or money is above 0")

    def check_arms(self, names: frozenset[str]) -> None:
        """Hold the arms that are spoken of against those there are.

        Raises: ValueError for one that is not there.
        """
        for name in (*self.pins.values(), *self.forbidden):
            if name not in names:
                there = ", ".join(sorted(names))
                raise ValueError(f"the policy names an arm {name!r}, which is not there; there are {there}")


_Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _WeightsTable(BaseModel):
    model_config = ConfigDict(extra="forbid")
    time: _Weight | None = None
    money: _Weight | None = None
    miss_s: _Weight | None = None


class _PolicyTable(BaseModel):
    """The file: what it leaves out keeps its default."""

    model_config = ConfigDict(extra="forbid")
    exploration: float | None = None
    margin: float | None = None
    patience: int | None = None
    confidence: float | None = None
    crossover: int | None = None
    least_measured: int | None = None
    remeasure: float | None = None
    forbidden: list[str] | None = None
    pins: dict[str, str] | None = None
    weights: dict[Goal, _WeightsTable] | None = None


def load_policy(path: Path) -> PolicyConfig:
    """Read a policy from a TOML file.

    Raises: ValueError naming the file and the key; OSError.
    """
    try:
        return read_policy(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def read_policy(text: str) -> PolicyConfig:
    """Read a policy from TOML; what the text leaves out keeps its default.

    Raises: ValueError naming the key, its value and what is allowed.
    """
    try:
        table = _PolicyTable.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"no TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        known = ", ".join(field.name for field in fields(PolicyConfig))
        raise ValueError(f"{key} is {first['input']!r}: {first['msg']}; keys are {known}") from error
    given = table.model_dump(exclude_none=True)
    told = given.pop("weights", {})
    weights = {goal: Weights(**{**asdict(_WEIGHTS[goal]), **told.get(goal, {})}) for goal in GOALS}
    if "forbidden" in given:
        given["forbidden"] = tuple(given["forbidden"])
    return PolicyConfig(**given, weights=weights)


def dump_policy(config: PolicyConfig) -> str:
    """Write a policy as TOML that `read_policy` reads back to an equal one, each key with what it means."""
    lines = [f"{name} = {_value(getattr(config, name))}{comment}" for name, comment in _COMMENTS.items()]
    lines += ["", "[pins]  # a class of task, or a model name such as auto:fast, and the arm that answers it"]
    lines += [f"{_value(pattern)} = {_value(arm)}" for pattern, arm in config.pins.items()]
    for goal in GOALS:
        lines += ["", f"[weights.{goal}]"]
        lines += [f"{name} = {_value(value)}" for name, value in asdict(config.weights[goal]).items()]
    return "\n".join(lines) + "\n"


_COMMENTS = {
    "exploration": "  # share of requests spent on the arm known least",
    "margin": "  # another arm must be better by this share",
    "patience": "  # for so many decisions running,",
    "confidence": "  # or with this probability, before a class changes its arm",
    "crossover": "  # requests at an engine from which a canvas no longer pays, until that is measured",
    "least_measured": "  # attempts from which an arm counts as measured",
    "remeasure": "  # share of requests explored after something changed",
    "forbidden": "  # arms that are never taken",
}


def _value(value: object) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)
