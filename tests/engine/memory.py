"""Rows that come, grow, cut back and go in a small memory, against a naive model of what is kept.

The model knows each entry by all tokens up to its end, and the state of a page by looking at every row.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mezzotint.engine.pages import PagePool
from mezzotint.engine.prefix import PrefixCache
from mezzotint.engine.table import GroupPages, PageTable, Pools, Shortage

SIZE, WINDOW, LONGEST = 2, 4, 16
PAGES = {"full": 11, "sliding": 9}

Context = tuple[int, ...]
NUMBERS = st.integers(0, 99)
TOKENS = st.lists(st.sampled_from([0, 0, 0, 1]), min_size=1, max_size=5)  # mostly 0: rows often write the same


@dataclass(eq=False)
class Row:
    table: PageTable
    tokens: list[int]

    def group(self, name: str) -> GroupPages:
        return self.table.full if name == "full" else self.table.sliding


@dataclass
class Naive:
    """entries: by context, its page by group. unheld: entries' pages that no row holds, by group, oldest first."""

    rows: list[Row] = field(default_factory=list)
    entries: dict[Context, dict[str, int]] = field(default_factory=dict)
    unheld: dict[str, list[int]] = field(default_factory=lambda: {"full": [], "sliding": []})
    evictions: int = 0

    def named(self, group: str) -> dict[int, Context]:
        return {pages[group]: context for context, pages in self.entries.items() if group in pages}

    def held(self, group: str) -> set[int]:
        return {page for row in self.rows for page in row.group(group).pages}

    def let_go(self, group: str, pages: Iterable[int]) -> None:
        held, named = self.held(group), self.named(group)
        self.unheld[group] += [page for page in pages if page in named and page not in held]

    def make_room(self, count: int, held: dict[str, set[int]]) -> Shortage | None:
        """Evict for `count` pages of each group, if that can be enough."""
        missing = [max(0, count - PAGES[group] + len(held[group])) for group in PAGES]
        if any(missing):
            return Shortage(*missing)
        for group in PAGES:
            while PAGES[group] - len(held[group]) - len(self.unheld[group]) < count:
                gone = self.named(group)[self.unheld[group][0]]
                if group == "sliding":
                    self.forget(gone, group)
                    continue
                for context in [context for context in self.entries if context[: len(gone)] == gone]:
                    for each in list(self.entries[context]):
                        self.forget(context, each)
                    del self.entries[context]
        return None

    def forget(self, context: Context, group: str) -> None:
        page = self.entries[context].pop(group)
        self.evictions += 1
        if page in self.unheld[group]:
            self.unheld[group].remove(page)

    def longest(self, tokens: list[int], limit: int) -> int:
        """How many pages of `tokens` a row can go on from."""
        for count in range(min(limit, len(tokens)) // SIZE, 0, -1):
            chain = [self.entries.get(tuple(tokens[: SIZE * number])) for number in range(1, count + 1)]
            seen = {position // SIZE for position in range(SIZE * count) if position > SIZE * count - WINDOW}
            if all(chain) and all("sliding" in (chain[number] or {}) for number in seen):
                return count
        return 0

    def register(self, row: Row, settled: int) -> None:
        entered = 0
        contexts = [tuple(row.tokens[: SIZE * number]) for number in range(1, settled // SIZE + 1)]
        for number, context in enumerate(contexts):
            if self.entries.get(context, {}).get("full") == row.table.full.pages[number]:
                entered = number + 1
        for number in range(entered, len(contexts)):
            entry = self.entries.setdefault(contexts[number], {"full": row.table.full.pages[number]})
            if (sliding := row.table.sliding.page(number)) is not None:
                entry.setdefault("sliding", sliding)


class Memory(RuleBasedStateMachine):
    """Each need is carried out as an engine does: register, settle, reserve, then encode."""

    def __init__(self) -> None:
        super().__init__()
        self.pools = Pools(PagePool(PAGES["full"]), PagePool(PAGES["sliding"]))
        self.cache = PrefixCache(self.pools, SIZE, WINDOW)
        self.naive = Naive()
        self.rows = self.naive.rows
        self.stored: dict[str, dict[int, Context | None]] = {"full": {}, "sliding": {}}
        self.contexts: list[list[int]] = [[0] * LONGEST]
        self.hits: list[int] = []

    def encode(self, row: Row, start: int) -> None:
        """Store at each slot the whole context that its keys and values come from; what is only reserved is noise."""
        for group, stored in self.stored.items():
            for position in range(start, row.group(group).count * SIZE):
                (slot,) = row.group(group).slots(position, position + 1)
                stored[slot] = tuple(row.tokens[: position + 1]) if position < len(row.tokens) else None

    @precondition(lambda self: len(self.rows) < 3)
    @rule(before=NUMBERS, shared=st.integers(0, LONGEST - 5), more=TOKENS, canvas=st.integers(0, 4))
    def start(self, before: int, shared: int, more: list[int], canvas: int) -> None:
        """A row begins with a prompt that shares something with an earlier context."""
        row = Row(PageTable(self.pools, SIZE), [*self.contexts[before % len(self.contexts)][:shared], *more])
        count = self.naive.longest(row.tokens, len(row.tokens) - 1)
        match = self.cache.match(row.tokens, len(row.tokens) - 1)
        assert match.tokens == count * SIZE
        shares = {"full": match.full, "sliding": match.sliding}
        held = {group: self.naive.held(group) | set(shares[group]) for group in PAGES}
        for group in PAGES:
            self.naive.unheld[group] = [page for page in self.naive.unheld[group] if page not in shares[group]]
        new = -(-(len(row.tokens) + canvas) // SIZE) - count
        shortage = self.naive.make_room(new, held)
        assert self.cache.start(row.table, match, len(row.tokens) + canvas) == shortage
        if shortage:
            for group in PAGES:
                self.naive.let_go(group, reversed(shares[group]))
            return
        self.hits += [match.tokens] if match.tokens else []
        self.rows.append(row)
        self.contexts.append(row.tokens)
        self.encode(row, match.tokens)

    @precondition(lambda self: self.rows)
    @rule(which=NUMBERS, back=st.integers(0, 4), more=TOKENS)
    def grow(self, which: int, back: int, more: list[int]) -> None:
        """A row encodes behind a settled beginning, and forgets what followed it."""
        row = self.rows[which % len(self.rows)]
        at = max(row.table.settled, len(row.tokens) - back)
        if at + len(more) > LONGEST:
            return
        row.tokens = row.tokens[:at]
        self.cache.register(row.tokens, row.table, at)
        self.naive.register(row, at)
        self.settle(row, at)
        new = max(0, -(-(at + len(more)) // SIZE) - row.table.full.count)
        shortage = self.naive.make_room(new, {group: self.naive.held(group) for group in PAGES})
        assert row.table.reserve(at + len(more)) == shortage
        if not shortage:
            row.tokens = [*row.tokens, *more]
            self.contexts.append(row.tokens)
            self.encode(row, at)

    def settle(self, row: Row, at: int) -> None:
        before = row.table.sliding.pages[:]
        row.table.settle(at, WINDOW)
        self.naive.let_go("sliding", before[: len(before) - len(row.table.sliding.pages)])
        row.table.truncate(at + 5)  # of what earlier canvases reserved, no more than the next one may need
        assert len(row.table.sliding.pages) <= -(-(WINDOW + 5) // SIZE) + 2

    @precondition(lambda self: self.rows)
    @rule(which=NUMBERS, back=st.integers(0, 4))
    def cut(self, which: int, back: int) -> None:
        """A row forgets the end of its context and gives up its room."""
        row = self.rows[which % len(self.rows)]
        row.tokens = row.tokens[: max(row.table.settled, len(row.tokens) - back)]
        row.table.truncate(len(row.tokens))

    @precondition(lambda self: self.rows)
    @rule(which=NUMBERS)
    def release(self, which: int) -> None:
        """A row is over, or put off."""
        row = self.rows.pop(which % len(self.rows))
        pages = {group: row.group(group).pages[::-1] for group in PAGES}
        row.table.release()
        for group in PAGES:
            self.naive.let_go(group, pages[group])

    @invariant()
    def every_page_is_in_one_place(self) -> None:
        self.pools.check_integrity(row.table for row in self.rows)
        self.cache.check_integrity()

    @invariant()
    def every_row_reads_its_own_context(self) -> None:
        for row in self.rows:
            for name, stored in self.stored.items():
                start, end = row.group(name).first * SIZE, len(row.tokens)
                slots, first = row.group(name).slots(start, end), row.group(name).run(start, end)
                assert [stored[slot] for slot in slots] == [tuple(row.tokens[:to]) for to in range(start + 1, end + 1)]
                consecutive = bool(slots) and slots[-1] - slots[0] == len(slots) - 1 and slots == sorted(slots)
                assert first == (slots[0] if consecutive else None)

    @invariant()
    def the_cache_keeps_what_the_model_keeps(self) -> None:
        assert self.pools.full.kept == self.naive.named("full").keys()
        assert self.pools.sliding.kept == self.naive.named("sliding").keys()
        counted = (self.cache.hits, self.cache.tokens_served, self.cache.evictions)
        assert counted == (len(self.hits), sum(self.hits), self.naive.evictions)
