"""Reads the options of one object by name and refuses those that nobody asks for; what they mean is said elsewhere."""

from collections.abc import Mapping, Sequence
from typing import Any

_LONGEST_TEXT = 1_000_000
_MISSING = object()


class Spec:
    """An object of options that is read name by name; `end` refuses names that were not."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raises: ValueError for what is no object."""
        if not isinstance(options, Mapping):
            raise ValueError(f"options are {options!r}; give a JSON object")
        self._options, self._read = dict(options), set[str]()

    def value(self, name: str, default: Any = _MISSING) -> Any:
        """What stands there. Raises: ValueError where nothing does and there is no default."""
        self._read.add(name)
        found = self._options.get(name, default)
        if found is _MISSING:
            kind = f" of type {self._options['type']!r}" if "type" in self._options else ""
            raise ValueError(f"{name} is missing{kind}; give it beside {', '.join(self._options) or 'nothing'}")
        return found

    def text(self, name: str, default: Any = _MISSING, *, longest: int = _LONGEST_TEXT) -> str:
        """A text of at most so many characters. Raises: ValueError."""
        found = self.value(name, default)
        if not isinstance(found, str):
            raise ValueError(f"{name} is {found!r}; give a text")
        if len(found) > longest:
            raise ValueError(f"{name} has {len(found)} characters; at most {longest} are allowed, so shorten it")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """A text or a list of some. Raises: ValueError."""
        found = self.value(name)
        listed = [found] if isinstance(found, str) else found
        if not isinstance(listed, Sequence) or not listed or not all(isinstance(each, str) for each in listed):
            raise ValueError(f"{name} is {found!r}; give a text or a list of some")
        return tuple(listed)

    def one_of(self, name: str, choices: Sequence[str], default: Any = _MISSING) -> str:
        """One of several texts. Raises: ValueError."""
        found = self.value(name, default)
        if found not in choices:
            raise ValueError(f"{name} is {found!r}; choose from {', '.join(choices)}")
        return str(found)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false. Raises: ValueError."""
        found = self.value(name, default)
        if not isinstance(found, bool):
            raise ValueError(f"{name} is {found!r}; give true or false")
        return found

    def whole(self, name: str, default: Any = _MISSING, *, least: int, most: int) -> int:
        """A whole number within bounds. Raises: ValueError."""
        found = self.value(name, default)
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise ValueError(f"{name} is {found!r}; give a whole number from {least} to {most}")
        return found

    def seconds(self, name: str, default: float, *, most: float) -> float:
        """A time above 0. Raises: ValueError."""
        found = self.value(name, default)
        if not isinstance(found, int | float) or isinstance(found, bool) or not 0 < found <= most:
            raise ValueError(f"{name} is {found!r}; give seconds above 0, at most {most:g}")
        return float(found)

    def end(self) -> None:
        """Raises: ValueError for an option that was not read."""
        if left := [name for name in self._options if name not in self._read]:
            raise ValueError(f"option {left[0]!r} is not known; choose from {', '.join(sorted(self._read))}")
