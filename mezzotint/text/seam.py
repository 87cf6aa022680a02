"""Where given text borders on a blank: which of its ids stand whatever fills it, and how the others may be written.

    ids that stand │ ids that may change │ blank │ ids that may change │ ids that stand

An id beside a blank may change if some token of the vocabulary could begin in the given text and end in the blank, or
the other way round. Only ids change, never the text.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import NamedTuple, TypeVar

from mezzotint.text.tokenizer import Tokenizer

T = TypeVar("T")

_WINDOW = 256  # characters beside a blank that are looked at, unless all their ids may change
_PROBES = 16  # tokens across a border that are tried out
# What else may stand in a blank, to see what the tokenizer makes of the border then.
_NEIGHBOURS = ("a", "e", "s", "in", "The", "1", "10", " ", "  ", "\n", "\n\n", "_", "(", ")", ".", ",", "=", "é", "語")


class Loose(NamedTuple):
    """Ids beside a blank that may be written otherwise, together with part of what fills it.

    ids: as they are with nothing in the blank. covering: for each, the ids of which one may stand in its place and in
    that of all ids between it and the blank, itself among them for the one next to the blank.
    """

    ids: tuple[int, ...] = ()
    covering: tuple[tuple[int, ...], ...] = ()


class Bordered(NamedTuple):
    """Given text as ids: `start` and `end` are loose where a blank is beside them, `fixed` stands between them."""

    start: Loose
    fixed: tuple[int, ...]
    end: Loose


def find_borders(text: str, tokenizer: Tokenizer, *, follows: bool, precedes: bool, most: int) -> Bordered:
    """Encode given text that follows a blank, precedes one, or both.

    most: ids that may be loose on either side; of more, those next to the blank are.
    Returns: ids that spell the text. None is loose where what is on one side of it reaches the other.
    Raises: ValueError as Tokenizer.encode_text.
    """
    ids, spelled = tuple(tokenizer.encode_text(text)), spellings(tokenizer)
    head = min(_count_head(text, tokenizer), most) if follows else 0
    tail = min(_count_tail(text, tokenizer), most) if precedes else 0
    if head + tail > len(ids):
        head = tail = 0
    start, end = ids[:head], ids[len(ids) - tail :]
    parts = [b"".join(map(tokenizer.token_bytes, start[: place + 1])) for place in range(head)]
    ends = [b"".join(map(tokenizer.token_bytes, end[place:])) for place in range(tail)]
    return Bordered(
        Loose(start, tuple(spelled.ending(part) for part in parts)),
        ids[head : len(ids) - tail],
        Loose(end, tuple(spelled.beginning(part) for part in ends)),
    )


class Spellings:
    """What the ids of text spell, to find those that begin or end with given bytes."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Read the vocabulary, which takes a while for a quarter of a million ids."""
        known = [(spelled, id) for id in range(tokenizer.vocab_size) if (spelled := _spell(id, tokenizer))]
        self._onward, self._back = sorted(known), sorted((spelled[::-1], id) for spelled, id in known)
        self.longest = max(len(spelled) for spelled, _ in known)

    def beginning(self, part: bytes) -> tuple[int, ...]:
        """Ids whose spelling begins with `part`, which may be all of it."""
        return tuple(id for _, id in _start_with(self._onward, part))

    def ending(self, part: bytes) -> tuple[int, ...]:
        """Ids whose spelling ends with `part`, which may be all of it."""
        return tuple(id for _, id in _start_with(self._back, part[::-1]))

    def behind(self, part: bytes) -> list[bytes]:
        """What some of the longer spellings that begin with `part` have behind it; nothing where there is none."""
        return [spelled[len(part) :] for spelled, _ in _sample(_start_with(self._onward, part, longer=True))]

    def before(self, part: bytes) -> list[bytes]:
        """What some of the longer spellings that end with `part` have before it; nothing where there is none."""
        return [spelled[len(part) :][::-1] for spelled, _ in _sample(_start_with(self._back, part[::-1], longer=True))]


@lru_cache(maxsize=4)
def spellings(tokenizer: Tokenizer) -> Spellings:
    """The spellings of a tokenizer, read once."""
    return Spellings(tokenizer)


def _spell(id: int, tokenizer: Tokenizer) -> bytes:
    try:
        return b"" if id in tokenizer.control_ids else tokenizer.token_bytes(id)
    except ValueError:  # vocabularies may have holes
        return b""


def _start_with(known: list[tuple[bytes, int]], part: bytes, *, longer: bool = False) -> list[tuple[bytes, int]]:
    """Those of sorted spellings that start with `part`, or only those that are longer."""
    open_end = part.rstrip(b"\xff")
    first = bisect_left(known, (part + b"\0" if longer else part, -1))
    if not open_end:
        return known[first:]
    return known[first : bisect_left(known, (open_end[:-1] + bytes([open_end[-1] + 1]), -1))]


def _count_tail(text: str, tokenizer: Tokenizer) -> int:
    """How many of the last ids of `text` may change with what comes behind it."""
    if len(text) > _WINDOW:
        near = text[-_WINDOW:]
        count = _count_tail(near, tokenizer)
        if count < len(tokenizer.encode_text(near)):
            return count
    ids, spelled, written = tokenizer.encode_text(text), spellings(tokenizer), text.encode()
    sizes = range(1, min(spelled.longest, len(written)) + 1)
    crossing = {size: more for size in sizes if (more := spelled.behind(written[-size:]))}
    others = [tokenizer.encode_text(text + more) for more in _choose_neighbours(crossing)]
    same = min(_count_same(ids, other) for other in others)
    return max(len(ids) - same, _count_reached(ids[::-1], max(crossing, default=0), tokenizer))


def _count_head(text: str, tokenizer: Tokenizer) -> int:
    """How many of the first ids of `text` may change with what comes before it."""
    if len(text) > _WINDOW:
        near = text[:_WINDOW]
        count = _count_head(near, tokenizer)
        if count < len(tokenizer.encode_text(near)):
            return count
    ids, spelled, written = tokenizer.encode_text(text), spellings(tokenizer), text.encode()
    sizes = range(1, min(spelled.longest, len(written)) + 1)
    crossing = {size: more for size in sizes if (more := spelled.before(written[:size]))}
    others = [tokenizer.encode_text(more + text) for more in _choose_neighbours(crossing)]
    same = min(_count_same(ids[::-1], other[::-1]) for other in others)
    return max(len(ids) - same, _count_reached(ids, max(crossing, default=0), tokenizer))


def _choose_neighbours(crossing: Mapping[int, Sequence[bytes]]) -> list[str]:
    """Texts to try beside a border: some that stand in any text, and what makes whole tokens of its bytes."""
    whole = sorted({text for parts in crossing.values() for part in parts if (text := part.decode(errors="ignore"))})
    return [*_NEIGHBOURS, *_sample(whole)]


def _sample(items: Sequence[T]) -> Sequence[T]:
    """At most _PROBES of them, evenly."""
    return items[:: -(-len(items) // _PROBES) or 1]


def _count_same(ids: Sequence[int], others: Sequence[int]) -> int:
    """How many ids both begin with."""
    pairs = zip(ids, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _count_reached(ids: Sequence[int], size: int, tokenizer: Tokenizer) -> int:
    """How many of the first `ids` the first `size` bytes reach into."""
    ends = accumulate(len(tokenizer.token_bytes(id)) for id in ids)
    return sum(1 for _ in takewhile(lambda end: end < size, ends)) + (size > 0)
