from collections import Counter

import pytest

from mezzotint.engine.pages import PagePool


def release(pool: PagePool, *pages: int) -> None:
    for page in pages:
        pool.release(page)


def test_pages_of_an_empty_pool_are_consecutive_from_its_first_on() -> None:
    assert PagePool(8).allocate(3) == [0, 1, 2]


def test_a_run_goes_on_behind_its_last_page() -> None:
    pool = PagePool(8)
    pool.allocate(2)
    assert pool.allocate(2, after=1) == [2, 3]


def test_a_second_row_begins_where_the_first_can_still_go_on_and_so_can_it() -> None:
    pool = PagePool(16)
    pool.allocate(2)
    assert pool.allocate(2) == [8, 9]
    assert pool.allocate(2, after=1) == [2, 3]
    assert pool.allocate(2, after=9) == [10, 11]


def test_a_run_that_meets_another_goes_on_in_the_longest_free_one() -> None:
    pool = PagePool(12)
    pool.allocate(12)
    release(pool, 3, 6, 7, 8, 9)
    assert pool.allocate(3, after=2) == [3, 7, 8]
    assert pool.allocate(1, after=11) in ([6], [9])


def test_the_first_page_is_not_taken_for_the_one_behind_the_last() -> None:
    pool = PagePool(4)
    pool.allocate(4)
    release(pool, 0)
    assert pool.allocate(1, after=3) == [0]
    assert pool.available == 0


def test_a_shared_page_is_free_once_the_last_row_releases_it() -> None:
    pool = PagePool(1)
    pool.allocate(1)
    pool.share(0)
    pool.release(0)
    assert (pool.available, pool.references) == (0, [1])
    pool.release(0)
    assert pool.available == 1


def test_more_pages_than_there_are_can_not_be_taken() -> None:
    pool = PagePool(3)
    pool.allocate(2)
    with pytest.raises(ValueError, match="2 pages are wanted and 1 available; release a row's pages first"):
        pool.allocate(2)
    assert pool.available == 1


def test_a_page_that_nobody_holds_can_be_neither_released_nor_shared() -> None:
    pool = PagePool(1)
    with pytest.raises(ValueError, match="page 0 is released but nobody holds it"):
        pool.release(0)
    with pytest.raises(ValueError, match="page 0 is shared but free"):
        pool.share(0)


def test_kept_pages_are_reused_only_when_nothing_is_free_the_longest_released_first() -> None:
    pool = PagePool(6)
    pool.allocate(6)
    evicted: list[int] = []

    def evict(page: int) -> None:
        evicted.append(page)
        pool.forget(page)

    pool.evict = evict
    for page in (0, 2, 4):
        pool.keep(page)
    release(pool, 4, 0, 2, 5)
    assert pool.available == 4
    assert pool.allocate(1, after=3) == [5]
    assert evicted == []
    assert pool.allocate(2, after=3) == [4, 0]
    assert evicted == [4, 0]


def test_a_cached_page_that_is_shared_again_counts_as_used_just_now() -> None:
    pool = PagePool(2)
    pool.allocate(2)
    pool.keep(0)
    pool.keep(1)
    release(pool, 0, 1)
    pool.share(0)
    assert pool.available == 1
    pool.release(0)
    assert pool.allocate(1) == [1]
    assert pool.kept == {0}


def test_a_forgotten_page_is_free_at_once_or_when_it_is_released() -> None:
    pool = PagePool(2)
    pool.allocate(2)
    pool.keep(0)
    pool.keep(1)
    pool.release(0)
    pool.forget(0)
    pool.forget(1)
    pool.release(1)
    assert pool.allocate(2) == [0, 1]
    assert not pool.kept


def test_integrity_holds_where_every_page_is_in_one_state() -> None:
    pool = PagePool(4)
    pool.allocate(3)
    pool.keep(0)
    pool.keep(1)
    pool.share(2)
    pool.release(0)
    pool.check_integrity("full", Counter({1: 1, 2: 2}))


@pytest.mark.parametrize(
    ("holders", "message"),
    [
        ({1: 1}, "full page 1 counts 2 references, 1 rows hold it"),
        ({1: 2, 3: 1}, "full page 3 counts 0 references, 1 rows hold it"),
    ],
)
def test_integrity_names_the_page_whose_references_are_not_its_holders(holders: dict[int, int], message: str) -> None:
    pool = PagePool(4)
    pool.allocate(2)
    pool.share(1)
    with pytest.raises(AssertionError, match=message):
        pool.check_integrity("full", Counter({0: 1, **holders}))


def test_integrity_names_the_page_that_is_in_no_state_or_in_two() -> None:
    pool = PagePool(4)
    pool.allocate(2)
    pool.references[1] = 0
    with pytest.raises(AssertionError, match="sliding page 1 is lost, not in exactly one state"):
        pool.check_integrity("sliding", Counter({0: 1}))
    pool.references[1:3] = [1, 1]
    with pytest.raises(AssertionError, match="sliding page 2 is free and referenced, not in exactly one state"):
        pool.check_integrity("sliding", Counter([0, 1, 2]))


def test_integrity_names_the_page_that_is_cached_though_nobody_keeps_it() -> None:
    pool = PagePool(1)
    pool.allocate(1)
    pool.keep(0)
    pool.release(0)
    pool.kept.clear()
    with pytest.raises(AssertionError, match="full page 0 is cached, and kept is False"):
        pool.check_integrity("full", Counter())
