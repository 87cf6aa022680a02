import pytest
from hypothesis import settings

from mezzotint.engine import prefix
from mezzotint.engine.pages import PagePool
from mezzotint.engine.prefix import Match, PrefixCache
from mezzotint.engine.table import PageTable, Pools, Shortage
from tests.engine.memory import Memory

SIZE, WINDOW = 4, 8

# Prefixes of these are what the rows below encode; a hit of n pages shows pages n − 2 and n − 1 in sliding layers.
LEFT = [7, 7, 7, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
RIGHT = [*LEFT[:8], *range(30, 42)]

TestMemoryUnderAllThatRowsDo = Memory.TestCase
TestMemoryUnderAllThatRowsDo.settings = settings(max_examples=200, stateful_step_count=60)


class House:
    """Pools, a cache, and rows that run alone in it."""

    def __init__(self, full: int = 16, sliding: int = 16) -> None:
        self.pools = Pools(PagePool(full), PagePool(sliding))
        self.cache = PrefixCache(self.pools, SIZE, WINDOW)

    def run(self, tokens: list[int], *, match: Match | None = None) -> PageTable:
        """A row that has encoded and settled `tokens`."""
        table = PageTable(self.pools, SIZE)
        assert self.cache.start(table, match or self.cache.match([], 0), len(tokens)) is None
        self.cache.register(tokens, table, len(tokens))
        return table

    def fill(self, *, full: int = 0, sliding: int = 0) -> None:
        """Take that many pages away, and with them what is cached there."""
        self.pools.full.allocate(full)
        self.pools.sliding.allocate(sliding)


@pytest.fixture
def house() -> House:
    return House()


def test_a_match_is_whole_pages_within_the_limit(house: House) -> None:
    assert house.cache.match(LEFT, 20) == Match(0, [], [], 0)
    table = house.run(LEFT[:18])
    assert house.cache.match(LEFT, 20) == Match(16, table.full.pages[:4], table.sliding.pages[2:4], 0)
    assert house.cache.match(LEFT[:16], 15) == Match(12, table.full.pages[:3], table.sliding.pages[1:3], 0)
    assert house.cache.match(LEFT, 3) == house.cache.match(LEFT[:3], 20) == Match(0, [], [], 0)
    assert house.cache.match(LEFT[:4], 4) == Match(4, table.full.pages[:1], table.sliding.pages[:1], 0)


def test_a_match_ends_where_the_tokens_part(house: House) -> None:
    left, right = house.run(LEFT), house.run(RIGHT)
    assert house.cache.match(RIGHT, 20).full == [*left.full.pages[:2], *right.full.pages[2:]]
    assert house.cache.match([*RIGHT[:17], 0, 0, 0], 20).tokens == 16


def test_the_same_page_behind_another_beginning_is_another_page(house: House) -> None:
    house.run(LEFT)
    assert house.cache.match([1, *LEFT[1:]], 20).tokens == 0
    assert house.cache.match(LEFT[4:], 16).tokens == 0


def test_only_settled_tokens_that_fill_a_page_enter(house: House) -> None:
    table = PageTable(house.pools, SIZE)
    table.reserve(20)
    for settled, entered in ((3, 0), (4, 4), (11, 8), (12, 12), (12, 12)):
        house.cache.register(LEFT, table, settled)
        assert house.cache.match(LEFT, 20).tokens == entered
    house.cache.check_integrity()


def test_what_a_row_gave_back_or_released_can_still_be_matched(house: House) -> None:
    table = house.run(LEFT)
    table.settle(20, WINDOW)
    assert house.cache.match(LEFT, 4).tokens == 4
    pages = table.full.pages[:]
    table.release()
    assert house.cache.match(LEFT, 20).full == pages
    house.pools.check_integrity([])


def test_an_equal_page_stays_with_its_row_and_the_older_one_is_shared(house: House) -> None:
    older, younger = house.run(LEFT), house.run(LEFT)
    assert not set(older.full.pages) & set(younger.full.pages)
    older.release()
    younger.release()
    assert house.cache.match(LEFT, 20).full == [0, 1, 2, 3, 4]
    assert (len(house.pools.full.kept), len(house.pools.sliding.kept)) == (5, 5)


def test_a_row_that_starts_from_a_match_shares_it_and_goes_on_in_pages_of_its_own(house: House) -> None:
    house.run(LEFT).release()
    table = house.run(RIGHT, match=house.cache.match(RIGHT, 19))
    assert (table.full.pages[:2], table.settled) == ([0, 1], 8)
    assert not set(table.full.pages[2:]) & set(range(5))
    assert (house.cache.hits, house.cache.tokens_served, house.cache.evictions) == (1, 8, 0)
    house.pools.check_integrity([table])


def test_a_row_that_does_not_fit_is_left_empty_and_counts_as_no_hit() -> None:
    house = House(full=6)
    house.run(LEFT).release()
    match, table = house.cache.match(RIGHT, 20), PageTable(house.pools, SIZE)
    assert house.cache.start(table, match, 28) == Shortage(full=1, sliding=0)
    assert (house.cache.hits, table.full.pages, table.settled) == (0, [], 0)
    assert house.cache.start(table, match, 24) is None
    assert (house.cache.hits, house.cache.evictions) == (1, 6)


def test_a_match_is_void_once_a_page_was_evicted() -> None:
    house = House(full=6)
    house.run(LEFT).release()
    match = house.cache.match(LEFT, 20)
    house.fill(full=2)
    with pytest.raises(ValueError, match="2 pages were evicted since the match; match anew"):
        house.cache.start(PageTable(house.pools, SIZE), match, 20)


def test_the_end_of_a_released_row_is_evicted_before_its_beginning() -> None:
    house = House(full=5)
    house.run(LEFT).release()
    for left in (16, 12, 8, 4, 0):
        house.fill(full=1)
        assert house.cache.match(LEFT, 20).tokens == left
        house.cache.check_integrity()
    assert not house.pools.sliding.kept


def test_a_beginning_that_goes_takes_all_that_follow_it_along(house: House) -> None:
    older, younger = house.run(LEFT[:8]), house.run(LEFT)
    house.run(RIGHT, match=house.cache.match(RIGHT, 20)).release()
    older.release()
    assert house.cache.match(RIGHT, 20).tokens == house.cache.match(LEFT, 20).tokens == 20
    house.fill(full=house.pools.full.available)
    assert house.cache.match(LEFT, 20).tokens == 0
    assert not house.pools.full.kept | house.pools.sliding.kept
    house.cache.check_integrity()
    house.cache.register(LEFT, younger, 20)
    assert house.cache.match(LEFT, 20).full == younger.full.pages


def test_a_lost_sliding_page_spoils_only_the_hits_that_show_it() -> None:
    house = House(sliding=5)
    table = house.run(LEFT)
    table.settle(13, WINDOW)
    assert table.sliding.first == 1
    house.fill(sliding=1)
    assert [house.cache.match(LEFT, limit).tokens for limit in (4, 8, 12, 16, 20)] == [0, 0, 12, 16, 20]
    assert house.cache.match(LEFT, 12).full == table.full.pages[:3]
    assert house.cache.evictions == 1


def test_a_row_makes_up_for_a_lost_sliding_page_and_not_for_the_full_one() -> None:
    house = House(sliding=8)
    house.run(LEFT).release()
    house.fill(sliding=8)
    assert house.cache.match(LEFT, 20).tokens == 0
    for page in (5, 6):
        house.pools.sliding.release(page)
    younger = house.run(LEFT[:8])
    assert house.cache.match(LEFT, 20) == Match(8, [0, 1], younger.sliding.pages, house.cache.evictions)
    assert younger.full.pages != [0, 1]
    house.cache.check_integrity()


def test_a_collision_of_digests_costs_a_hit_and_gives_no_wrong_context(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefix, "_digest", lambda parent, content: bytes([len(content)]))
    left, right = house.run(LEFT), house.run(RIGHT)
    other = house.run([1, *LEFT[1:]])
    assert house.cache.match(LEFT, 20).full == house.cache.match(RIGHT, 20).full == left.full.pages[:1]
    assert house.cache.match([1, *LEFT[1:]], 20).tokens == 0
    house.cache.check_integrity()
    house.pools.check_integrity([left, right, other])


def test_nothing_enters_behind_a_page_that_could_not(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix, "_digest", lambda parent, content: bytes(content[-1:]))
    left, right = house.run([1, 2, 3, 4]), house.run([5, 6, 7, 4, *range(20, 28)])
    assert house.cache.match(list(range(20, 28)), 8).tokens == 0
    assert house.pools.full.kept == set(left.full.pages)
    house.pools.check_integrity([left, right])


def test_equal_tokens_behind_another_parent_are_not_taken_for_the_same(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefix, "_digest", lambda parent, content: bytes(content))
    house.run(LEFT)
    assert house.cache.match([*LEFT[:4], *LEFT[8:]], 16).tokens == 4
    assert house.cache.match(LEFT[4:], 16).tokens == 0


def test_integrity_names_a_page_that_is_kept_without_an_entry(house: House) -> None:
    table = house.run(LEFT)
    house.pools.sliding.kept.remove(3)
    with pytest.raises(AssertionError, match="sliding page 3 is kept without an entry, or has one and is not kept"):
        house.cache.check_integrity()
    house.pools.sliding.keep(3)
    table.release()
    house.pools.full.forget(1)
    with pytest.raises(AssertionError, match="full page 1 is kept without an entry"):
        house.cache.check_integrity()
