"""The prefix cache: settled pages by the tokens up to their end, for other rows to share; integers only.

An entry is one full page of tokens behind its parent's: a chain of blake2b digests finds it, and equal tokens behind
the very same parent confirm it, so a collision of digests costs a hit and never gives a wrong context.

context   [ page 0 ][ page 1 ][ page 2 ][ page 3 ]
full          x         x         x         x       evicted: this entry and all that descend from it are dropped, as
                                                    nothing reaches them any more
sliding       -         -         x         x       evicted: the entry stays, for hits whose window ends behind it; the
                                                    next row that enters the same tokens makes up for the page
"""

from array import array
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from mezzotint.engine.pages import PagePool
from mezzotint.engine.table import PageTable, Pools, Shortage, first_shown


class Match(NamedTuple):
    """What is cached of a context: its first `tokens` tokens, whole pages.

    full: their pages. sliding: those of the last of them, which the window behind the match still shows.
    evictions: the cache's count when it was found; a match is void once another page is evicted.
    """

    tokens: int
    full: list[int]
    sliding: list[int]
    evictions: int


@dataclass(eq=False, kw_only=True, slots=True)
class _Entry:
    digest: bytes
    parent: "_Entry | None"
    tokens: tuple[int, ...]
    full: int
    sliding: int | None
    children: set["_Entry"] = field(default_factory=set)


class PrefixCache:
    """Entries of both groups; it decides which pages of the pools are kept.

    hits: rows that began with a match. tokens_served: tokens they need not encode.
    evictions: pages, of either group, that lost their entry because memory was needed.
    """

    def __init__(self, pools: Pools, page_size: int, window: int) -> None:
        """window: tokens that a sliding layer shows, the query included; as rows settle with."""
        self.hits = self.tokens_served = self.evictions = 0
        self._pools = pools
        self._page_size = page_size
        self._window = window
        self._entries: dict[bytes, _Entry] = {}
        self._full: dict[int, _Entry] = {}
        self._sliding: dict[int, _Entry] = {}
        pools.full.evict = self._evict_full
        pools.sliding.evict = self._evict_sliding

    def match(self, tokens: list[int], limit: int) -> Match:
        """Find the longest beginning of `tokens`, at most `limit`, that a row can go on from; changes nothing."""
        chain: list[_Entry] = []
        shown = best = 0
        for number in range(min(limit, len(tokens)) // self._page_size):
            entry = self._find(chain[-1] if chain else None, self._content(tokens, number))
            if entry is None:
                break
            chain.append(entry)
            shown = 0 if entry.sliding is None else shown + 1
            if shown >= len(chain) - self._first_shown(len(chain)):
                best = len(chain)
        visible = chain[self._first_shown(best) : best]
        sliding = [entry.sliding for entry in visible if entry.sliding is not None]
        return Match(best * self._page_size, [entry.full for entry in chain[:best]], sliding, self.evictions)

    def start(self, table: PageTable, match: Match, tokens: int) -> Shortage | None:
        """Begin an empty row with a match's pages and room for positions up to `tokens`, or leave it empty.

        Returns: what is missing, else None.
        Raises: ValueError if pages were evicted since the match.
        """
        if match.evictions != self.evictions:
            raise ValueError(f"{self.evictions - match.evictions} pages were evicted since the match; match anew")
        table.share(match.full, match.sliding)
        if shortage := table.reserve(tokens):
            table.release()
            return shortage
        self.hits += bool(match.tokens)
        self.tokens_served += match.tokens
        return None

    def register(self, tokens: list[int], table: PageTable, settled: int) -> None:
        """Enter a row's pages that its first `settled` tokens fill; call it before the row settles them.

        Where an equal entry exists it keeps its older page, and the row its own copy, which is free once released;
        only a sliding page that the entry lacks is taken over. Begins behind the last page that is entered already.
        """
        first = count = settled // self._page_size
        while first and table.full.pages[first - 1] not in self._full:
            first -= 1
        parent = self._full[table.full.pages[first - 1]] if first else None
        for number in range(first, count):
            parent = self._enter(parent, self._content(tokens, number), table, number)
            if parent is None:
                return

    def check_integrity(self) -> None:
        """Raise AssertionError unless the kept pages are those of entries, and every entry can be reached."""
        for group, pool, pages in (
            ("full", self._pools.full, self._full),
            ("sliding", self._pools.sliding, self._sliding),
        ):
            if differing := pool.kept ^ pages.keys():
                raise AssertionError(
                    f"{group} page {min(differing)} is kept without an entry, or has one and is not kept"
                )
        for page, entry in self._full.items():
            if entry.full != page or self._entries.get(entry.digest) is not entry:
                raise AssertionError(f"full page {page} belongs to an entry that is not its own")
            if entry.parent is not None and self._entries.get(entry.parent.digest) is not entry.parent:
                raise AssertionError(f"full page {page} belongs to an entry whose parent is gone")
        for page, entry in self._sliding.items():
            if entry.sliding != page or self._full.get(entry.full) is not entry:
                raise AssertionError(f"sliding page {page} belongs to an entry that is not its own")

    def _content(self, tokens: list[int], number: int) -> tuple[int, ...]:
        return tuple(tokens[number * self._page_size : (number + 1) * self._page_size])

    def _first_shown(self, pages: int) -> int:
        return first_shown(pages * self._page_size, self._window, self._page_size)

    def _find(self, parent: _Entry | None, content: tuple[int, ...]) -> _Entry | None:
        entry = self._entries.get(_digest(parent, content))
        return entry if entry and entry.parent is parent and entry.tokens == content else None

    def _enter(self, parent: _Entry | None, content: tuple[int, ...], table: PageTable, number: int) -> _Entry | None:
        """Returns: the entry, old or new; None where another context has its digest."""
        entry, sliding = self._find(parent, content), table.sliding.page(number)
        if entry is None:
            digest, page = _digest(parent, content), table.full.pages[number]
            if digest in self._entries:
                return None
            entry = _Entry(digest=digest, parent=parent, tokens=content, full=page, sliding=None)
            self._entries[digest] = self._full[page] = entry
            self._pools.full.keep(page)
            if parent:
                parent.children.add(entry)
        if entry.sliding is None and sliding is not None:
            entry.sliding = sliding
            self._sliding[sliding] = entry
            self._pools.sliding.keep(sliding)
        return entry

    def _evict_full(self, page: int) -> None:
        entry = self._full[page]
        if entry.parent:
            entry.parent.children.remove(entry)
        dropped = [entry]
        for entry in dropped:  # grows: children behind their parents
            dropped += entry.children
            del self._entries[entry.digest]
            self._forget(self._pools.full, self._full, entry.full)
            if entry.sliding is not None:
                self._forget(self._pools.sliding, self._sliding, entry.sliding)

    def _evict_sliding(self, page: int) -> None:
        self._sliding[page].sliding = None
        self._forget(self._pools.sliding, self._sliding, page)

    def _forget(self, pool: PagePool, pages: dict[int, _Entry], page: int) -> None:
        del pages[page]
        pool.forget(page)
        self.evictions += 1


def _digest(parent: _Entry | None, content: tuple[int, ...]) -> bytes:
    return blake2b((parent.digest if parent else b"") + array("q", content).tobytes(), digest_size=16).digest()
