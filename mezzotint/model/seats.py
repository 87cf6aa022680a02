"""Where the rows of a compiled forward stand, laid out as kernels/seats.h reads it; who holds what, others say."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from mezzotint.model.packing import KINDS
from mezzotint.model.ragged import Span

SPAN = 10  # numbers of stack.h's Span


class Seats(NamedTuple):
    """Numbers of int64. spans: `SPAN` each. pages: of all places. end: one past the last position of any row."""

    spans: "array[int]"
    pages: "array[int]"
    end: int


def seat_rows(contexts: Sequence[int], start: int, count: int) -> Seats:
    """Rows of one cache with `count` new tokens each in slots `start` on, behind contexts of these lengths."""
    place = (0, 0, max(1, start + count))  # one page that holds a whole row
    spans = array("q")
    for row, length in enumerate(contexts):
        spans.extend((length, count, row, start - length, *place, *place))
    return Seats(spans, array("q", [0]), start + count)


def seat_spans(spans: Sequence[Span], near: int) -> Seats:
    """Spans of rows in pages. near: how far back sliding layers see.

    Raises: ValueError for positions that are seen and not held, which C++ would look for in other rows' pages.
    """
    laid, pages, last = array("q"), array("q"), 0
    for start, size, held in spans:
        end = start + size
        laid.extend((start, size, 0, 0))
        for kind, oldest in zip(KINDS, (0, max(0, start - near)), strict=True):
            own = held[kind]
            low, high = own.first * own.page_size, (own.first + len(own.pages)) * own.page_size
            if not low <= oldest <= end <= high:
                raise ValueError(f"positions {oldest} to {end} are seen and {low} to {high} held; reserve them first")
            laid.extend((len(pages), own.first, own.page_size))
            pages.extend(own.pages)
        last = max(last, end)
    return Seats(laid, pages, last)
