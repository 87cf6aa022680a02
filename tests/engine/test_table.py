import pytest

from mezzotint.engine.pages import PagePool
from mezzotint.engine.table import PageTable, Pools, Shortage, first_shown

SIZE = 4


@pytest.fixture
def pools() -> Pools:
    return Pools(PagePool(24), PagePool(16))


def row(pools: Pools, tokens: int) -> PageTable:
    table = PageTable(pools, SIZE)
    assert table.reserve(tokens) is None
    return table


def test_a_row_holds_a_page_of_both_groups_for_each_page_begun(pools: Pools) -> None:
    table = row(pools, 9)
    assert (table.full.pages, table.sliding.pages) == ([0, 1, 2], [0, 1, 2])
    assert table.reserve(12) is None
    assert table.full.count == 3
    table.reserve(13)
    assert (table.full.pages, table.sliding.pages) == ([0, 1, 2, 3], [0, 1, 2, 3])
    pools.check_integrity([table])


def test_reserving_is_all_or_nothing_and_says_what_is_missing(pools: Pools) -> None:
    first = row(pools, 14 * SIZE)
    second = row(pools, SIZE)
    assert second.reserve(4 * SIZE) == Shortage(full=0, sliding=2)
    assert second.reserve(12 * SIZE) == Shortage(full=2, sliding=10)
    assert second.full.count == second.sliding.count == 1
    first.release()
    assert second.reserve(12 * SIZE) is None
    pools.check_integrity([first, second])


def test_slots_follow_the_pages_wherever_they_lie(pools: Pools) -> None:
    table = PageTable(pools, SIZE)
    table.full.pages = [5, 6, 2]
    assert table.full.slots(2, 10) == [22, 23, 24, 25, 26, 27, 8, 9]
    assert table.full.slots(5, 7) == [25, 26]
    assert table.full.slots(8, 8) == []


def test_only_consecutive_slots_are_a_run(pools: Pools) -> None:
    table = PageTable(pools, SIZE)
    table.full.pages = [5, 6, 2]
    assert table.full.run(0, 8) == 20
    assert table.full.run(3, 8) == 23
    assert table.full.run(9, 12) == 9
    assert table.full.run(7, 9) is None
    assert table.full.run(8, 8) is None


def test_positions_that_are_not_held_have_no_slot(pools: Pools) -> None:
    table = row(pools, 40)
    table.settle(36, window=8)
    for start, end in ((0, 4), (24, 28), (27, 40), (36, 41)):
        with pytest.raises(ValueError, match=f"positions {start} to {end} are wanted and 28 to 40 held"):
            table.sliding.slots(start, end)
        with pytest.raises(ValueError, match="reserve them first"):
            table.sliding.run(start, end)
    assert table.sliding.slots(28, 40) == list(range(28, 40))
    assert table.sliding.run(30, 33) == 30


@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("length", range(20))
def test_settling_gives_back_the_pages_that_no_later_query_sees(pools: Pools, length: int, window: int) -> None:
    table = row(pools, 20)
    table.settle(length, window)
    seen = {key for query in range(length, 40) for key in range(20) if query - window < key <= query}
    unseen = [number for number in range(5) if not seen & set(range(number * SIZE, (number + 1) * SIZE))]
    assert [number for number in range(5) if table.sliding.page(number) is None] == unseen
    assert table.sliding.first == first_shown(length, window, SIZE) == len(unseen)
    assert table.full.count == table.sliding.count == 5
    pools.check_integrity([table])


@pytest.mark.parametrize(("window", "canvas"), [(16, 8), (9, 5), (1, 4), (30, 1)])
def test_the_sliding_pages_of_a_long_row_are_bounded(window: int, canvas: int) -> None:
    bound = -(-(window + canvas) // SIZE) + 2
    pools = Pools(PagePool(300), PagePool(bound))
    table = PageTable(pools, SIZE)
    for length in range(0, 1000, canvas):
        table.settle(length, window)
        assert table.reserve(length + canvas) is None
        assert len(table.sliding.pages) <= bound
        shown = max(0, length - window + 1)
        assert len(set(table.sliding.slots(shown, length + canvas))) == length + canvas - shown
        pools.check_integrity([table])


def test_settled_tokens_stay_settled(pools: Pools) -> None:
    table = row(pools, 12)
    table.settle(6, window=8)
    with pytest.raises(ValueError, match="cannot settle 5 tokens where 6 are settled and 12 reserved"):
        table.settle(5, window=8)
    with pytest.raises(ValueError, match="cannot settle 13 tokens where 6 are settled and 12 reserved"):
        table.settle(13, window=8)
    with pytest.raises(ValueError, match="cannot cut to 5 tokens: 6 are settled; release the row instead"):
        table.truncate(5)


def test_a_cut_gives_back_what_lies_behind_it_in_both_groups(pools: Pools) -> None:
    table = row(pools, 40)
    table.settle(20, window=8)
    table.truncate(21)
    assert (table.full.count, table.sliding.count, table.sliding.first) == (6, 6, 3)
    table.truncate(30)
    assert table.full.count == 6
    pools.check_integrity([table])


def test_a_released_row_holds_nothing_and_can_begin_anew(pools: Pools) -> None:
    table = row(pools, 40)
    table.settle(36, window=8)
    table.release()
    pools.check_integrity([])
    assert (pools.full.available, pools.sliding.available) == (24, 16)
    assert table.reserve(4) is None
    assert (table.settled, table.sliding.first, table.sliding.count) == (0, 0, 1)


def test_a_row_can_begin_with_the_pages_of_another(pools: Pools) -> None:
    first, second = row(pools, 16), PageTable(pools, SIZE)
    second.share(first.full.pages[:3], first.sliding.pages[1:3])
    assert (second.settled, second.sliding.first) == (12, 1)
    second.reserve(20)
    assert second.full.slots(0, 12) == first.full.slots(0, 12)
    assert second.sliding.slots(4, 12) == first.sliding.slots(4, 12)
    assert not set(second.full.slots(12, 20)) & set(first.full.slots(0, 16))
    pools.check_integrity([first, second])
    first.release()
    pools.check_integrity([second])
    with pytest.raises(ValueError, match="the row already holds 5 pages; release them before it begins anew"):
        second.share([0], [])


def test_integrity_names_a_page_that_stands_twice_in_one_row(pools: Pools) -> None:
    table = row(pools, 8)
    table.sliding.pages[1] = table.sliding.pages[0]
    with pytest.raises(AssertionError, match="sliding page 0 stands twice in one row"):
        pools.check_integrity([table])


def test_integrity_names_a_page_of_a_row_that_is_not_told_of(pools: Pools) -> None:
    first, second = row(pools, 8), row(pools, 4)
    page = second.full.pages[0]
    with pytest.raises(AssertionError, match=f"full page {page} counts 1 references, 0 rows hold it"):
        pools.check_integrity([first])
