"""Memory for rows: what they get when they begin, grow and settle; who yields where it is short, others decide.

A row begins once memory holds the whole context, and a canvas behind it, of this row and of those that run. So most
rows end before anything has to be taken back, and none is let in only to yield at the next step of another one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from mezzotint.engine.config import EngineConfig
from mezzotint.engine.memory import Memory
from mezzotint.engine.pages import PagePool
from mezzotint.engine.prefix import Match, PrefixCache
from mezzotint.engine.row import Row
from mezzotint.engine.table import PageTable, Pools


class Claim(NamedTuple):
    """What a row that runs will soon need beyond what it holds: pages of each group, and tokens of a long piece.

    Of long pieces a step encodes a chunk in all; so that much, and no more, stands open in sliding layers at once.
    """

    full: int
    sliding: int
    long: int


class Room:
    """The pages of one engine and its prefix cache. short: positions that a row may use behind its context."""

    def __init__(self, config: EngineConfig, memory: Memory, window: int, short: int) -> None:
        """window: tokens that a sliding layer shows, the query included."""
        self._config, self._memory, self._window, self._short = config, memory, window, short
        self.clear()

    def clear(self) -> None:
        """Begin afresh, every page free and nothing cached, whatever the accounts said."""
        self.pools = Pools(PagePool(self._memory.full), PagePool(self._memory.sliding))
        self.prefixes = PrefixCache(self.pools, self._config.page_size, self._window)

    def check(self, positions: int, widest: int = 1) -> None:
        """Raise ValueError if a row of so many positions could never run, even alone.

        widest: the most positions behind its context that it uses at once.
        """
        need = Memory(self._pages(positions), self._most_sliding(positions, widest))
        if need.full > self._memory.full or need.sliding > self._memory.sliding:
            raise ValueError(
                f"a request of {positions} tokens needs {need.full} and {need.sliding} pages of "
                f"{self._config.page_size} tokens, and there are {self._memory.full} and {self._memory.sliding}; "
                "shorten the prompt, ask for fewer tokens or allow more memory_bytes"
            )

    def claim(self, row: Row) -> Claim:
        """What a row that runs will soon need beyond what it holds."""
        assert row.table is not None
        soon, held = self._soon(row), Memory(row.table.full.count, len(row.table.sliding.pages))
        return Claim(max(0, soon.full - held.full), max(0, soon.sliding - held.sliding), self._long(row.missing))

    def start(self, row: Row, claims: Sequence[Claim] = ()) -> bool:
        """Give a row what is cached of its context, if memory holds what it will soon need besides others' claims.

        Returns: whether it did.
        """
        context = row.context
        match = Match(0, [], [], self.prefixes.evictions)
        if self._config.prefix_cache:
            match = self.prefixes.match(context, len(context) - row.read)
        need = self._need(row, match, claims)
        if need.full > self.pools.full.available or need.sliding > self.pools.sliding.available:
            return False
        row.table, row.held = PageTable(self.pools, self._config.page_size), match.tokens
        self.prefixes.start(row.table, match, match.tokens)
        return True

    def reserve(self, row: Row, size: int) -> bool:
        """Make room for `size` positions behind what a row holds. Returns: whether there was enough."""
        return row.table is not None and row.table.reserve(row.held + size) is None

    def settle(self, row: Row, length: int) -> None:
        """Note that the first `length` tokens of a row's context stay: others may share them, and windows move on."""
        if row.table is None or length <= row.table.settled:
            return
        page = self._config.page_size
        if self._config.prefix_cache and length // page > row.table.settled // page:
            self.prefixes.register(row.context, row.table, length)
        row.table.settle(length, self._window)

    def release(self, row: Row) -> None:
        """Take back all that a row holds."""
        if row.table is not None:
            row.table.release()
        row.table, row.held = None, 0

    def check_integrity(self, rows: list[Row]) -> None:
        """Raise AssertionError naming a page that is lost, leaked or held twice; `rows` are all that run."""
        self.pools.check_integrity(row.table for row in rows if row.table is not None)
        self.prefixes.check_integrity()

    def _need(self, row: Row, match: Match, claims: Sequence[Claim]) -> Memory:
        """Available pages that a row which begins with a match and the claims of others need together."""
        soon, pools = self._soon(row), self.pools
        # Cached pages count as available, until a row wakes them.
        full = soon.full - len(match.full) + sum(not pools.full.references[page] for page in match.full)
        sliding = soon.sliding - len(match.sliding) + sum(not pools.sliding.references[page] for page in match.sliding)
        long = self._long(len(row.context) - match.tokens) + sum(claim.long for claim in claims)
        sliding += self._pages(min(long, self._config.chunk_tokens))
        if not claims:  # a row alone has to fit wherever check said so
            sliding = min(sliding, self._most_sliding(row.positions, row.widest))
        return Memory(full + sum(claim.full for claim in claims), sliding + sum(claim.sliding for claim in claims))

    def _soon(self, row: Row) -> Memory:
        """Pages for a row's whole context and a canvas behind it, as far as it will ever go."""
        full = self._pages(min(len(row.context) + self._short, row.positions))
        return Memory(full, min(full, self._pages(self._window + row.widest) + 1))

    def _most_sliding(self, positions: int, widest: int) -> int:
        """The most pages of sliding layers that a row may hold at once."""
        shown = self._window + max(self._config.chunk_tokens, self._short, widest) + 2 * self._config.page_size
        return self._pages(min(positions, shown))

    def _long(self, missing: int) -> int:
        return missing if missing > self._short else 0

    def _pages(self, tokens: int) -> int:
        return -(-tokens // self._config.page_size)
