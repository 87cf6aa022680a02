"""What an engine has done and how full it is, for whoever watches it; nothing here decides anything."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from mezzotint.engine.pages import PagePool
from mezzotint.engine.room import Room


class Pages(NamedTuple):
    """Pages of one group: used by rows, cached for others to share, and free."""

    used: int
    cached: int
    free: int


class Forwards(NamedTuple):
    """Forwards of one kind, and their tokens and rows in all; batches counts them by rows, up to each power of two."""

    forwards: int
    tokens: int
    rows: int
    batches: Mapping[int, int]


@dataclass(frozen=True, kw_only=True)
class Stats:
    """One engine at one moment. Gauges: running, waiting and pages; all else counts from its start.

    submitted = finished + Σ failed (by kind) + running + waiting. emitted_tokens: of blocks, as they came out.
    prefix_hits: admissions that found a beginning, and prefix_tokens what they need not encode; evictions: pages lost.
    preemptions: rows that had to give back their memory. steps: those that ran a forward.
    guesses: rounds of a drafter.
    """

    waiting: int
    running: int
    full: Pages
    sliding: Pages
    submitted: int
    finished: int
    failed: Mapping[str, int]
    emitted_tokens: int
    prefix_hits: int
    prefix_tokens: int
    evictions: int
    preemptions: int
    steps: int
    encodes: Forwards
    denoises: Forwards
    guesses: int


@dataclass(kw_only=True)
class Tally:
    """What an engine counts as it goes."""

    submitted: int = 0
    finished: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    emitted_tokens: int = 0
    preemptions: int = 0
    steps: int = 0
    guesses: int = 0
    encodes: "Meter" = field(default_factory=lambda: Meter())
    denoises: "Meter" = field(default_factory=lambda: Meter())


@dataclass(kw_only=True)
class Meter:
    """Counts the forwards of one kind."""

    tokens: int = 0
    rows: int = 0
    batches: Counter[int] = field(default_factory=Counter)

    def count(self, sizes: list[int]) -> None:
        """Count one forward of rows of these sizes; none of no rows."""
        if sizes:
            self.tokens += sum(sizes)
            self.rows += len(sizes)
            self.batches[1 << (len(sizes) - 1).bit_length()] += 1

    def read(self) -> Forwards:
        """What was counted."""
        batches = dict(sorted(self.batches.items()))
        return Forwards(sum(batches.values()), self.tokens, self.rows, MappingProxyType(batches))


def count_pages(pool: PagePool) -> Pages:
    """The states of a pool's pages."""
    used = sum(references > 0 for references in pool.references)
    cached = sum(not pool.references[page] for page in pool.kept)
    return Pages(used, cached, len(pool.references) - used - cached)


def take_stats(tally: Tally, room: Room, *, waiting: int, running: int) -> Stats:
    """What an engine shows now."""
    prefixes = room.prefixes
    return Stats(
        waiting=waiting,
        running=running,
        full=count_pages(room.pools.full),
        sliding=count_pages(room.pools.sliding),
        submitted=tally.submitted,
        finished=tally.finished,
        failed=MappingProxyType(dict(tally.failed)),
        emitted_tokens=tally.emitted_tokens,
        prefix_hits=prefixes.hits,
        prefix_tokens=prefixes.tokens_served,
        evictions=prefixes.evictions,
        preemptions=tally.preemptions,
        steps=tally.steps,
        encodes=tally.encodes.read(),
        denoises=tally.denoises.read(),
        guesses=tally.guesses,
    )
