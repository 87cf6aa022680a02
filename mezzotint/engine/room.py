"""Memory for rows: what they get when they begin, grow and settle; who yields where it is short, others decide."""

from mezzotint.engine.config import EngineConfig
from mezzotint.engine.memory import Memory
from mezzotint.engine.pages import PagePool
from mezzotint.engine.prefix import Match, PrefixCache
from mezzotint.engine.row import Row
from mezzotint.engine.table import PageTable, Pools


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

    def check(self, positions: int, together: int = 0) -> None:
        """Raise ValueError if a row of so many positions could never run, even alone.

        together: the most tokens of it that a verification encodes at once.
        """
        page = self._config.page_size
        shown = self._window + max(self._config.chunk_tokens, self._short, together) + 2 * page
        need = Memory(-(-positions // page), -(-min(positions, shown) // page))
        if need.full > self._memory.full or need.sliding > self._memory.sliding:
            raise ValueError(
                f"a request of {positions} tokens needs {need.full} and {need.sliding} pages of {page} tokens, and "
                f"there are {self._memory.full} and {self._memory.sliding}; shorten the prompt, ask for fewer "
                "tokens or allow more memory_bytes"
            )

    def start(self, row: Row) -> bool:
        """Give a row what is cached of its context, and room for its first chunk, if memory holds its whole context.

        Returns: whether it did.
        """
        page, context = self._config.page_size, row.context
        match = Match(0, [], [], self.prefixes.evictions)
        if self._config.prefix_cache:
            match = self.prefixes.match(context, len(context) - row.read)
        waking = sum(not self.pools.full.references[page] for page in match.full)
        needed = min(len(context) + self._short, row.positions)
        if -(-needed // page) - len(match.full) + waking > self.pools.full.available:
            return False
        table = PageTable(self.pools, page)
        if self.prefixes.start(table, match, min(len(context), match.tokens + self._config.chunk_tokens)):
            return False
        row.table, row.held = table, match.tokens
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
