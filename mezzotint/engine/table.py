"""The pages that each row holds, and where its positions lie in them; which pages are free lives in pages.

group     its layers          what a row holds
full      full attention      every page of its context
sliding   a sliding window    the pages that a later query still sees; older ones are given back

In every layer of a group, slot page × page_size + i holds the i-th token of a page.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from mezzotint.engine.pages import PagePool


class GroupPages:
    """The pages of one row in one group, in order of its context. first: how many of the oldest are given back."""

    def __init__(self, pool: PagePool, page_size: int) -> None:
        self.pool = pool
        self.page_size = page_size
        self.first = 0
        self.pages: list[int] = []

    @property
    def count(self) -> int:
        """Pages that the row's positions span, those given back included."""
        return self.first + len(self.pages)

    def page(self, number: int) -> int | None:
        """The page of the positions from number × page_size on; None if it is given back."""
        return self.pages[number - self.first] if number >= self.first else None

    def slots(self, start: int, end: int) -> list[int]:
        """The slots of positions start to end − 1. Raises: ValueError if the row does not hold them all."""
        size, slots = self.page_size, list[int]()
        for number, page in enumerate(self._between(start, end), start=start // size):
            shift = (page - number) * size
            slots.extend(range(shift + max(start, number * size), shift + min(end, (number + 1) * size)))
        return slots

    def run(self, start: int, end: int) -> int | None:
        """The first slot of positions start to end − 1 if theirs are consecutive; None if not, or if there are none.

        Raises: ValueError if the row does not hold them all.
        """
        pages = self._between(start, end)
        if start == end or pages != list(range(pages[0], pages[0] + len(pages))):
            return None
        return pages[0] * self.page_size + start % self.page_size

    def _between(self, start: int, end: int) -> list[int]:
        low, high = self.first * self.page_size, self.count * self.page_size
        if not low <= start <= end <= high:
            raise ValueError(f"positions {start} to {end} are wanted and {low} to {high} held; reserve them first")
        return self.pages[start // self.page_size - self.first : -(-end // self.page_size) - self.first]

    def extend(self, count: int) -> None:
        """Allocate `count` more pages, consecutive to the last one where that is possible."""
        self.pages += self.pool.allocate(count, self.pages[-1] if self.pages else None)

    def share(self, first: int, pages: list[int]) -> None:
        """Hold pages of others as the row's pages from number `first` on."""
        for page in pages:
            self.pool.share(page)
        self.first, self.pages = first, list(pages)

    def drop(self, first: int) -> None:
        """Give back the pages before number `first`, the oldest of them first."""
        while self.first < first:
            self.pool.release(self.pages.pop(0))
            self.first += 1

    def cut(self, count: int) -> None:
        """Give back the pages from number `count` on, the last first: a shared beginning is worth most."""
        while self.pages and self.count > count:
            self.pool.release(self.pages.pop())
        self.first = min(self.first, count)


class Pools(NamedTuple):
    """The pages of both groups; a group without layers costs no memory, so it needs no exception."""

    full: PagePool
    sliding: PagePool

    def check_integrity(self, tables: Iterable["PageTable"]) -> None:
        """Raise AssertionError naming the page unless `tables`, all there are, hold exactly what is referenced."""
        rows = list(tables)
        for group, pool, held in (
            ("full", self.full, [row.full.pages for row in rows]),
            ("sliding", self.sliding, [row.sliding.pages for row in rows]),
        ):
            for pages in held:
                if twice := [page for page, times in Counter(pages).items() if times > 1]:
                    raise AssertionError(f"{group} page {twice[0]} stands twice in one row")
            pool.check_integrity(group, Counter(page for pages in held for page in pages))


class Shortage(NamedTuple):
    """Pages that are missing in each group."""

    full: int
    sliding: int


class PageTable:
    """The pages of one row in both groups. settled: tokens of its context that never change again."""

    def __init__(self, pools: Pools, page_size: int) -> None:
        self.full = GroupPages(pools.full, page_size)
        self.sliding = GroupPages(pools.sliding, page_size)
        self.page_size = page_size
        self.settled = 0

    def share(self, full: list[int], sliding: list[int]) -> None:
        """Begin an empty row with pages of others, settled tokens all; `sliding` are those of the last of `full`."""
        if self.full.pages:
            raise ValueError(f"the row already holds {len(self.full.pages)} pages; release them before it begins anew")
        self.full.share(0, full)
        self.sliding.share(len(full) - len(sliding), sliding)
        self.settled = len(full) * self.page_size

    def reserve(self, tokens: int) -> Shortage | None:
        """Make room for positions up to `tokens`, in both groups or in none. Returns: what is missing, else None."""
        count = -(-tokens // self.page_size) - self.full.count
        if count <= 0:
            return None
        full, sliding = (max(0, count - group.pool.available) for group in (self.full, self.sliding))
        if full or sliding:
            return Shortage(full, sliding)
        self.full.extend(count)
        self.sliding.extend(count)
        return None

    def settle(self, length: int, window: int) -> None:
        """Fix the first `length` tokens, and give back sliding pages that no query from there on sees.

        window: tokens that a sliding layer shows, the query included; one more than a denoise shows of the context.
        Raises: ValueError if that would unsettle tokens, or settle positions without a page.
        """
        if not self.settled <= length <= self.full.count * self.page_size:
            raise ValueError(
                f"cannot settle {length} tokens where {self.settled} are settled "
                f"and {self.full.count * self.page_size} reserved; settled tokens stay, and reserve comes first"
            )
        self.settled = length
        self.sliding.drop(first_shown(length, window, self.page_size))

    def truncate(self, length: int) -> None:
        """Give back pages wholly behind the first `length` tokens. Raises: ValueError if that cuts settled tokens."""
        if length < self.settled:
            raise ValueError(f"cannot cut to {length} tokens: {self.settled} are settled; release the row instead")
        count = -(-length // self.page_size)
        self.full.cut(count)
        self.sliding.cut(count)

    def release(self) -> None:
        """Give back everything; the row is then empty."""
        self.settled = 0
        self.full.cut(0)
        self.sliding.cut(0)


def first_shown(length: int, window: int, page_size: int) -> int:
    """The number of the first page that a sliding layer still shows to a query behind `length` tokens."""
    return max(0, length - window + 1) // page_size
