"""Blanks in a canvas: how much room each gets, what is pinned around them, and how their seams are written."""

import pytest
import torch

from mezzotint.decoding.gap import Gap, Seam, Slot, lay_slots, plan_canvas, settle_gap, write_after, write_before
from tests.decoding.network import V

PLAIN = Seam()


def gap(most: int, behind: int = 0, seam: Seam = PLAIN) -> Gap:
    return Gap(most, seam, PLAIN, tuple(range(1, behind + 1)))


def beliefs(*rows: dict[int, float]) -> torch.Tensor:
    """log_p [K, V] in which all but the ids that are told are hopeless."""
    log_p = torch.full((len(rows), V), -99.0)
    for place, row in enumerate(rows):
        for id, value in row.items():
            log_p[place, id] = value
    return log_p


def test_slots_lie_side_by_side_with_what_is_given_between_and_the_rest_filled() -> None:
    laid = lay_slots([Slot((5,), 2, (6,), (7, 8)), Slot((), 1, (), (9,))], 10, 1)
    assert laid.starts == (1, 6)
    assert laid.pins.mask.tolist() == [place not in (1, 2, 6) for place in range(10)]
    assert laid.pins.tokens[laid.pins.mask].tolist() == [5, 6, 7, 8, 9, 1, 1]


def test_what_does_not_fit_is_cut_off_and_what_nobody_knows_stays_open() -> None:
    assert lay_slots([Slot((), 2, (), (7, 8, 9))], 4, 1).pins.tokens[2:].tolist() == [7, 8]
    assert lay_slots([Slot((), 2, (), (7,))], 5, None).pins.mask.tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("gaps", "sizes"),
    [
        ([gap(4, 3)], [4]),
        ([gap(4, 100)], [4]),  # of what is behind only a head has to fit
        ([gap(12, 100)], [12]),
        ([gap(13, 100)], [12]),
        ([gap(99, 1)], [15]),
        ([gap(99, 0)], [16]),
        ([gap(4, 3), gap(5, 100)], [4, 5]),
        ([gap(4, 4), gap(5, 100)], [4]),
        ([gap(4, 3), gap(2, 2), gap(2, 1)], [4, 2, 2]),
        ([gap(4, 3, Seam((1, 2), ((), ()))), gap(5, 100)], [4]),
        ([gap(13, 100, Seam((1, 2), ((), ())))], [10]),
    ],
)
def test_a_canvas_takes_the_blanks_that_fit_and_of_one_too_long_what_is_left(gaps: list[Gap], sizes: list[int]) -> None:
    assert plan_canvas(gaps, 16) == sizes


def test_a_seam_is_written_as_the_model_believes_most() -> None:
    seam = Seam((5, 6), ((10, 11), (6, 12)))
    assert write_before(seam, beliefs({5: -1, 10: -3}, {6: -1, 12: -5})) == (5, 6)
    assert write_before(seam, beliefs({5: -1, 10: -3}, {6: -5, 12: -1})) == (5, 12)
    assert write_before(seam, beliefs({5: -1, 11: -1.5}, {6: -1, 12: -5})) == (11,)
    assert write_before(seam, beliefs({5: -1, 9: -0.1}, {6: -1, 8: -0.1})) == (5, 6), "nothing else spells it"
    assert write_before(Seam(), beliefs()) == ()


def test_a_seam_behind_a_blank_is_the_mirror_image() -> None:
    seam = Seam((6, 5), ((6, 12), (10, 11)))
    assert write_after(seam, beliefs({6: -1, 12: -5}, {5: -1, 11: -1.5})) == (11,)
    assert write_after(seam, beliefs({6: -5, 12: -1}, {5: -1})) == (12, 5)
    assert write_after(seam, beliefs({6: -1}, {5: -1})) == (6, 5)


def test_a_seam_that_holds_some_of_the_middle_takes_one_of_its_tokens() -> None:
    wide = Gap(3, Seam((5,), ((5, 10),)), Seam((6,), ((6, 11),)), (7,))
    assert settle_gap(wide, 3, (5,), (6,)) == Slot((5,), 3, (6,), (7,))
    assert settle_gap(wide, 3, (10,), (6,)) == Slot((10,), 2, (6,), (7,))
    assert settle_gap(wide, 3, (10,), (11,)) == Slot((10,), 1, (11,), (7,))
    assert settle_gap(wide, 1, (10,), (11,)) == Slot((10,), 0, (6,), (7,))
