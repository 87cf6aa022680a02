"""Rows of a program run one after another: the plain form of what runs them side by side; no test lives here."""

from collections.abc import Generator
from typing import Any

from mezzotint.decoding.abreast import Abreast


def run_one_by_one(
    program: Generator[Any, Any, Any], together: list[tuple[type, int]] | None = None
) -> Generator[Any, Any, None]:
    """A program that has no rows: it asks for their forwards one after another.

    together: takes down of what kind, and how many, would have been one forward.
    """
    answer: Any = None
    while True:
        try:
            item = program.send(answer)
        except StopIteration:
            return
        if not isinstance(item, Abreast):
            answer = yield item
            continue
        if together is not None:
            together.append((type(item.needs[0]), len(item.needs)))
        answer = []
        for need in item.needs:
            answer.append((yield need))
