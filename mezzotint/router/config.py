"""What a fleet is made of, as fleet.toml says it: arms, prices, limits, files; nothing runs here."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from mezzotint.types import DecoderName

_NAME = re.compile(r"[\w.:/+-]{1,64}")
_KEYS = ("key", "api_key", "token", "secret", "password")
_ABILITIES = frozenset("tools schema grammar logprobs seed thinking".split())


@dataclass(frozen=True, kw_only=True)
class LocalArmConfig:
    """A decoder and budget of the model that is served: `decoder` with `steps` of a block, or a `preset`.

    temperature: of requests that name none.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    name: str
    decoder: DecoderName = "diffusion"
    steps: int | None = None
    preset: str | None = None
    temperature: float | None = None


@dataclass(frozen=True, kw_only=True)
class RemoteArmConfig:
    """A model of another server that speaks as OpenAI's do.

    url: up to and with /v1. key_env: the environment variable that holds its key. engine: what arms of the same
    machine have in common; the url unless given. decoder, canvas_length, step_budget: how it writes, as far as that is
    known. context: most tokens of prompt and answer. prices: dollars a million tokens.
    most_in_flight: requests of ours at once. connect_s, first_s, between_s, whole_s: that a connection, the first
    chunk, the next chunk and the whole answer may take. connect_attempts: of a connection, before anything is sent.
    health: an address that answers with 200 while the arm can be asked, probed every probe_s.
    failures: one after another, from which it is left alone for pause_s; then one request tries it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    name: str
    url: str
    model: str
    context: int
    key_env: str | None = None
    engine: str | None = None
    decoder: DecoderName | None = None
    canvas_length: int | None = None
    step_budget: int | None = None
    abilities: frozenset[str] = frozenset()
    input_price: float = 0.0
    output_price: float = 0.0
    most_in_flight: int = 64
    connect_s: float = 5.0
    first_s: float = 60.0
    between_s: float = 30.0
    whole_s: float = 600.0
    connect_attempts: int = 2
    health: str | None = None
    probe_s: float = 5.0
    failures: int = 3
    pause_s: float = 10.0

    def __post_init__(self) -> None:
        for name in ("context", "most_in_flight", "connect_attempts", "failures"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("connect_s", "first_s", "between_s", "whole_s", "probe_s", "pause_s"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")
        if min(self.input_price, self.output_price) < 0:
            raise ValueError(f"a price is {min(self.input_price, self.output_price)}; it must not be negative")
        if strange := self.abilities - _ABILITIES:
            raise ValueError(f"abilities has {min(strange)!r}; known are {', '.join(sorted(_ABILITIES))}")
        for name in ("url", "health"):
            value = getattr(self, name)
            if value is not None and not value.startswith(("http://", "https://")):
                raise ValueError(f"{name} is {value!r}; it begins with http:// or https://")

    @property
    def key(self) -> str | None:
        """The key, from the environment. Raises: ValueError where the variable is not set."""
        return _find_key(f"arm {self.name!r}", self.key_env)


@dataclass(frozen=True, kw_only=True)
class JudgeConfig:
    """The model that verifiers of type `judge` ask: its server, its name, the variable that holds its key."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    url: str
    model: str
    key_env: str | None = None

    @property
    def key(self) -> str | None:
        """The key, from the environment. Raises: ValueError where the variable is not set."""
        return _find_key("the judge", self.key_env)


@dataclass(frozen=True, kw_only=True)
class FleetConfig:
    """A fleet. busy_price: dollars a second of work of the engine here.

    ledger: the SQLite file of what was measured. policy: the file that says how arms are chosen, the built-in policy
    unless given. commands: what verifiers may run, argv by name. Paths are relative to the fleet's own file.
    Raises: ValueError naming option, value and remedy.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    local: tuple[LocalArmConfig, ...] = ()
    remote: tuple[RemoteArmConfig, ...] = ()
    busy_price: float = 0.0
    ledger: Path = Path("ledger.sqlite")
    policy: Path | None = None
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    judge: JudgeConfig | None = None

    def __post_init__(self) -> None:
        names = self.names
        if not names:
            raise ValueError("there is no arm; write [[local]] or [[remote]]")
        for name in names:
            if not _NAME.fullmatch(name) or name.partition(":")[0] == "auto":
                raise ValueError(f"name is {name!r}; use letters, digits and ._:/+-, and not 'auto'")
            if names.count(name) > 1:
                raise ValueError(f"name {name!r} is of several arms; give each its own")
        if self.busy_price < 0:
            raise ValueError(f"busy_price is {self.busy_price}; it must not be negative")

    @property
    def names(self) -> tuple[str, ...]:
        """Of its arms."""
        return (*(arm.name for arm in self.local), *(arm.name for arm in self.remote))

    def check_keys(self) -> None:
        """Raise ValueError for a key that the environment does not hold."""
        keys = [arm.key for arm in self.remote]
        keys += [] if self.judge is None else [self.judge.key]


_FLEET = TypeAdapter(FleetConfig)


def read_fleet(path: Path) -> FleetConfig:
    """Read a fleet's file. Raises: ValueError naming the file, the key and the remedy; OSError."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
        _refuse_keys(told, "")
        read = _FLEET.validate_python(told)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        message = (
            "no such key is known; leave it out" if first["type"] == "unexpected_keyword_argument" else first["msg"]
        )
        raise ValueError(f"{path}: {place or 'the file'}: {message.removeprefix('Value error, ')}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    beside = {name: path.parent / value for name in ("ledger", "policy") if (value := getattr(read, name)) is not None}
    return _replace(read, beside)


def _find_key(who: str, variable: str | None) -> str | None:
    if variable is None:
        return None
    if not (found := os.environ.get(variable)):
        raise ValueError(f"{who} takes a key from {variable}, which is not set; export it")
    return found


def _replace(config: FleetConfig, changes: Mapping[str, Any]) -> FleetConfig:
    return FleetConfig(**{**vars(config), **changes})


def _refuse_keys(told: Any, place: str) -> None:
    """A file is read by many; what opens a door stays in the environment."""
    for name, value in told.items() if isinstance(told, dict) else ():
        where = f"{place}.{name}" if place else name
        if name in _KEYS and isinstance(value, str):
            raise ValueError(f"{where} holds a key, which belongs in the environment; name its variable: key_env = ...")
        for each in value if isinstance(value, list) else (value,):
            _refuse_keys(each, where)
