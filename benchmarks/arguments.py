"""What benchmarks read from their command lines, refused by name where it is wrong; for argparse's `type`."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence


def threads(text: str) -> int:
    """A number of torch's threads."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no number of threads; give 1 or more")
    return int(text)


def counts(text: str) -> tuple[int, ...]:
    """Whole numbers from 1 up with commas between them, each once, in rising order."""
    parts = text.split(",")
    if wrong := [part for part in parts if not part.isdecimal() or int(part) < 1]:
        raise ArgumentTypeError(f"{wrong[0]!r} is no whole number from 1 up; give some, with commas")
    return tuple(sorted({int(part) for part in parts}))


def names_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Some of the known names with commas between them."""

    def read(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        if unknown := [name for name in names if name not in known]:
            raise ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return names

    return read
