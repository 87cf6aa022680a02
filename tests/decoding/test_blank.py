"""A blank lies left of what is given, and only what fills it comes out."""

import pytest

from mezzotint.decoding.blank import lay_blank


def test_what_stands_behind_a_blank_is_given_and_the_rest_of_the_canvas_filled() -> None:
    blank = lay_blank([7, 8, 9], 4, 10, 1)
    assert blank.capacity == 4
    assert blank.pins.mask.tolist() == [False] * 4 + [True] * 6
    assert blank.pins.tokens[4:].tolist() == [7, 8, 9, 1, 1, 1]


@pytest.mark.parametrize(("most", "capacity"), [(1, 1), (7, 7), (8, 7), (1000, 7)])
def test_a_blank_has_at_most_what_the_canvas_leaves(most: int, capacity: int) -> None:
    blank = lay_blank([7, 8, 9], most, 10, 1)
    assert blank.capacity == capacity
    assert blank.pins.mask.tolist() == [place >= capacity for place in range(10)]


def test_surplus_and_what_stands_behind_are_not_part_of_the_answer() -> None:
    blank = lay_blank([7, 8, 9], 5, 10, 1)
    assert blank.places([5, 0, 6, 0, 0, 7, 8, 9, 1, 1], {0, 1}) == [0, 2]


def test_text_that_fills_the_canvas_leaves_no_blank_and_is_refused() -> None:
    assert lay_blank(range(9), 5, 10, 1).capacity == 1
    with pytest.raises(ValueError, match="has 10 tokens with its end, and a canvas 10; give at most 9"):
        lay_blank(range(10), 5, 10, 1)
