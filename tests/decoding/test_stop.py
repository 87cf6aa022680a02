"""An answer ends at its first end token or at its limit, and says which."""

from hypothesis import given
from hypothesis import strategies as st

from mezzotint.decoding.stop import Cut, cut_answer
from tests.decoding.letters import Letters

ENDS = {8, 9}
CANVAS = st.lists(st.integers(0, 9), min_size=1, max_size=8)


def test_an_end_token_stays_and_what_follows_it_goes() -> None:
    assert cut_answer([1, 9, 2, 8], 10, ENDS) == Cut([1, 9], "stop")


def test_an_end_token_that_just_fits_is_a_stop() -> None:
    assert cut_answer([1, 2, 9, 3], 3, ENDS) == Cut([1, 2, 9], "stop")


def test_an_end_token_that_does_not_fit_is_a_length() -> None:
    assert cut_answer([1, 2, 9, 3], 2, ENDS) == Cut([1, 2], "length")


def test_tokens_that_leave_room_go_on() -> None:
    assert cut_answer([1, 2, 3], 4, ENDS) == Cut([1, 2, 3], None)


def test_tokens_that_fill_the_room_exactly_are_a_length() -> None:
    assert cut_answer([1, 2, 3], 3, ENDS) == Cut([1, 2, 3], "length")


def test_without_end_ids_nothing_stops_early() -> None:
    assert cut_answer([9, 8], 4, ()) == Cut([9, 8], None)


def test_of_an_end_token_and_a_stopper_the_first_to_come_counts() -> None:
    assert cut_answer([0, 1, 9, 2], 10, ENDS, Letters("ab")) == Cut([0, 1], "stop")
    assert cut_answer([0, 9, 1, 2], 10, ENDS, Letters("ab")) == Cut([0, 9], "stop")
    assert cut_answer([0, 2, 1, 0], 10, ENDS, Letters("ab")) == Cut([0, 2, 1, 0], None)


def test_what_a_stopper_ends_that_just_fits_is_a_stop_and_what_does_not_fit_it_never_sees() -> None:
    assert cut_answer([0, 1, 2], 2, ENDS, Letters("ab")) == Cut([0, 1], "stop")
    short = Letters("ab")
    assert cut_answer([0, 1, 2], 1, ENDS, short) == Cut([0], "length")
    assert short.ids == [0]


@given(tokens=CANVAS, room=st.integers(1, 10))
def test_what_stays_is_a_prefix_that_holds_an_end_token_only_as_its_last(tokens: list[int], room: int) -> None:
    cut = cut_answer(tokens, room, ENDS)
    assert cut.tokens == tokens[: len(cut.tokens)]
    assert 1 <= len(cut.tokens) <= room
    assert not ENDS & set(cut.tokens[:-1])
    assert (cut.reason == "stop") == (cut.tokens[-1] in ENDS)
    assert (cut.reason is None) == (len(cut.tokens) == len(tokens) < room and cut.tokens[-1] not in ENDS)
