"""Strict reading of a checkpoint's JSON files, key by key; what a key means is said by who asks for it."""

import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Self


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded as it is; the message names file, key or tensor, and the remedy."""


class ConfigError(CheckpointError):
    """A config that cannot be honoured; the message names the key, its value and what works."""


def read_json(file: Path) -> dict[str, Any]:
    """The JSON object in `file`. Raises: CheckpointError where it is missing, unreadable or no object."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{file} does not exist; name the folder of a whole checkpoint") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} cannot be read as JSON ({error}); download it again") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{file} holds a JSON {type(value).__name__}, must be an object; download it again")
    return value


class Fields:
    """One JSON object on its way into a dataclass: keys are asked for by name, `close` refuses the others.

    null counts as absent, as in the files that Hugging Face writes. Every method raises ConfigError.
    """

    def __init__(self, raw: Mapping[str, Any], where: str) -> None:
        self._raw, self._where = raw, where
        self._asked: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._raw

    def integer(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number of at least `least`; without a default the key must be there."""
        value = self._value(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self._error(key, f"must be a whole number of at least {least}")
        return value

    def number(self, key: str, default: float, *, above: float | None = None) -> float:
        """A finite number of at least 0, or greater than `above`."""
        value = self._value(key, default)
        rule = "a number of at least 0" if above is None else f"a number greater than {above:g}"
        if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
            raise self._error(key, f"must be {rule}")
        if value < 0 or (above is not None and value <= above):
            raise self._error(key, f"must be {rule}")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._error(key, "must be true or false")
        return value

    def only(self, **fixed: object) -> None:
        """Each named key must be absent or have the given value, the only one that is supported."""
        for key, value in fixed.items():
            if self._value(key, value) != value:
                raise self._error(key, f"only {json.dumps(value)} is supported")

    def ids(self, key: str) -> tuple[int, ...] | None:
        """Token ids from a number or a list of numbers; None where the key is absent."""
        value = self._value(key, None)
        if value is None:
            return None
        ids = value if isinstance(value, list) else [value]
        if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in ids):
            raise self._error(key, "must be a token id or a list of them")
        return tuple(ids)

    def words(self, key: str) -> list[str] | None:
        """A list of strings; None where the key is absent."""
        value = self._value(key, None)
        if value is not None and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise self._error(key, "must be a list of strings")
        return value

    def section(self, key: str) -> Self | None:
        """The object under `key`; None where it is absent."""
        value = self._value(key, None)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._error(key, "must be an object")
        return type(self)(value, f"{self._where}: {key}")

    def skip(self, *keys: str) -> None:
        """Leave keys unread that mean nothing beside the others."""
        self._asked.update(keys)

    def close(self, inert: frozenset[str]) -> None:
        """Refuse every key that nobody asked for, unless it is `inert`: one that cannot change a result."""
        unknown = sorted(set(self._raw) - self._asked - inert)
        if unknown:
            raise self._error(
                unknown[0],
                f"an unknown key ({len(unknown)} in all: {', '.join(unknown)}); "
                "it may change the result, so it is not ignored: remove it if it does not",
            )

    def _value(self, key: str, default: Any) -> Any:
        self._asked.add(key)
        value = self._raw.get(key)
        return default if value is None else value

    def _error(self, key: str, rule: str) -> ConfigError:
        return ConfigError(f"{self._where}: {key} is {json.dumps(self._raw.get(key))}; {rule}")
