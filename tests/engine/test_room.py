from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.decoding.program import Encode
from mezzotint.engine.config import EngineConfig
from mezzotint.engine.memory import Memory
from mezzotint.engine.room import Claim, Room
from mezzotint.engine.row import Row
from tests.engine.tiny import request

PAGE, WINDOW, SHORT = 4, 6, 9
PROMPT = list(range(2, 22))


def room(full: int = 30, sliding: int = 30, *, prefix_cache: bool = True) -> Room:
    config = EngineConfig(page_size=PAGE, chunk_tokens=8, prefix_cache=prefix_cache)
    return Room(config, Memory(full, sliding), WINDOW, SHORT)


def row(tokens: list[int], *, positions: int = 60, read: int = 0, widest: int = 8) -> Row:
    """A row that is about to encode a prompt."""

    def program() -> Iterator[Encode]:
        yield Encode(tokens, 0, read)

    made = Row(
        request=request("row"), program=program(), seed=0, order=0, positions=positions, widest=widest, arrived_s=0.0
    )  # type: ignore[arg-type]
    made.advance(None)
    return made


def run(house: Room, made: Row) -> Row:
    """Start a row and encode its prompt chunk by chunk."""
    assert house.start(made)
    while made.missing:
        size = min(8, made.missing)
        assert house.reserve(made, size)
        made.held += size
        house.settle(made, made.settled)
    return made


def test_a_row_starts_with_what_is_cached_and_gets_the_rest_as_it_needs_it() -> None:
    house, made = room(), row(PROMPT)
    assert house.start(made)
    assert made.table is not None
    assert (made.table.full.count, made.held) == (0, 0)
    assert house.reserve(made, 8)
    assert made.table.full.count == 2
    house.check_integrity([made])


def test_a_row_starts_only_where_its_whole_context_and_what_follows_it_fit() -> None:
    assert not room(full=7).start(row(PROMPT))  # 20 + 9 positions
    assert room(full=8).start(row(PROMPT))


def test_a_row_that_will_never_be_longer_starts_in_less() -> None:
    assert room(full=6).start(row(PROMPT, positions=24))
    assert not room(full=5).start(row(PROMPT, positions=24))


def test_a_row_claims_what_it_will_soon_need_beyond_what_it_holds() -> None:
    house, made = room(), row(PROMPT)
    assert house.start(made)
    # Of 20 + 9 positions 8 pages; sliding layers show 6 of them, a canvas of 8 lies behind, and pages begin anywhere.
    assert house.claim(made) == Claim(8, 5, 20)
    made.held = 8
    assert house.reserve(made, 8)
    assert house.claim(made) == Claim(8 - 4, 5 - 4, 12)
    made.held = 16
    assert house.claim(made).long == 0, "what is left is a short piece"
    made.context = made.context * 3
    assert house.claim(made).full == 15 - 4, "it will never have more than 60 positions"


@pytest.mark.parametrize(
    ("claims", "fits"), [([(4, 0, 0)], True), ([(5, 0, 0)], False), ([(2, 0, 0), (3, 0, 0)], False)]
)
def test_a_row_starts_beside_what_others_claim(claims: list[tuple[int, int, int]], fits: bool) -> None:
    assert room(full=12).start(row(PROMPT), [Claim(*each) for each in claims]) == fits


@pytest.mark.parametrize(
    ("sliding", "claims", "fits"),
    [
        (8, [(0, 1, 0)], True),  # five pages of its own, and two for the chunk of which it gets the most
        (7, [(0, 1, 0)], False),
        (8, [(0, 1, 500)], True),  # a chunk in all, however many share it
        (8, [(0, 1, 500), (0, 1, 500)], False),
    ],
)
def test_sliding_layers_hold_one_chunk_for_all_long_prompts(
    sliding: int, claims: list[tuple[int, int, int]], fits: bool
) -> None:
    assert room(sliding=sliding).start(row(PROMPT), [Claim(*each) for each in claims]) == fits


@given(
    tokens=st.integers(1, 60),
    more=st.integers(1, 30),
    widest=st.integers(1, 40),
    pages=st.tuples(st.integers(3, 30), st.integers(3, 30)),
)
def test_a_row_that_could_run_alone_starts_alone(tokens: int, more: int, widest: int, pages: tuple[int, int]) -> None:
    house, positions = room(*pages), tokens + more
    try:
        house.check(positions, widest)
    except ValueError:
        return
    assert house.start(row(list(range(tokens)), positions=positions, widest=widest))


def test_a_prompt_seen_before_is_shared_up_to_the_last_whole_page() -> None:
    house = room()
    first = run(house, row(PROMPT))
    again = row([*PROMPT[:18], 30, 31, 32])
    assert house.start(again)
    assert again.held == 16
    assert first.table is not None
    assert again.table is not None
    assert again.table.full.pages[:4] == first.table.full.pages[:4]
    house.check_integrity([first, again])


def test_what_is_read_is_encoded_though_it_was_seen_before() -> None:
    house = room()
    run(house, row(PROMPT))
    unread, read = row(PROMPT), row(PROMPT, read=1)
    assert house.start(unread)
    assert house.start(read)
    assert (unread.missing, read.missing) == (0, 4)


def test_without_a_prefix_cache_nothing_is_shared_and_nothing_kept() -> None:
    house = room(prefix_cache=False)
    run(house, row(PROMPT))
    again = row(PROMPT)
    assert house.start(again)
    assert again.held == 0
    assert not house.pools.full.kept


def test_cached_pages_that_a_row_wakes_are_not_counted_as_room_for_it() -> None:
    house = room(full=10)
    made = run(house, row(PROMPT))
    house.release(made)
    longer = row([*PROMPT, *range(22, 38)])  # of 36 + 9 positions in 12 pages 5 are cached, and 5 are free
    assert not house.start(longer)
    house.check_integrity([])


def test_what_a_window_has_passed_is_given_back() -> None:
    house, made = room(), row(PROMPT)
    run(house, made)
    assert made.table is not None
    assert made.table.full.count == 5
    assert made.table.sliding.first == (20 - WINDOW + 1) // PAGE
    house.check_integrity([made])


def test_settling_less_than_is_settled_does_nothing() -> None:
    house = room()
    made = run(house, row(PROMPT))
    house.settle(made, 3)
    assert made.table is not None
    assert made.table.settled == 20


def test_a_released_row_holds_nothing_and_its_settled_pages_stay_cached() -> None:
    house = room()
    made = run(house, row(PROMPT))
    house.release(made)
    assert (made.table, made.held) == (None, 0)
    assert len(house.pools.full.kept) == 5
    house.check_integrity([])
    house.release(made)  # one that holds nothing


def test_a_room_that_is_cleared_has_all_its_pages_and_knows_no_prefix() -> None:
    house = room()
    run(house, row(PROMPT))
    house.clear()
    house.check_integrity([])
    assert house.pools.full.available == 30
    again = row(PROMPT)
    assert house.start(again)
    assert again.held == 0


@pytest.mark.parametrize(("full", "sliding"), [(14, 30), (30, 5)])
def test_a_row_that_could_never_run_is_refused_with_what_it_needs_and_what_there_is(full: int, sliding: int) -> None:
    with pytest.raises(ValueError, match=rf"60 tokens needs 15 and 6 pages of 4 tokens, and there are {full} and"):
        room(full, sliding).check(60)
    room(15, 6).check(60)


def test_a_verification_wider_than_a_chunk_needs_more_of_the_sliding_layers() -> None:
    room(15, 10).check(60, 25)
    with pytest.raises(ValueError, match="needs 15 and 10 pages"):
        room(15, 9).check(60, 25)
