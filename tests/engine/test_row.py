from collections.abc import Generator
from typing import Any

import pytest
import torch

from mezzotint.decoding.canvas import no_pins
from mezzotint.decoding.program import Denoise, Encode, Event, Need, Prefilled
from mezzotint.engine.row import Row
from tests.engine.tiny import request

CANVAS = Denoise(
    canvas=torch.zeros(8, dtype=torch.long),
    at=5,
    soft=None,
    temperature=1.0,
    proposal_temperature=1.0,
    uniforms=torch.zeros(8),
    with_soft=False,
    pins=no_pins(8),
    window=None,
)


def row(*items: Need | Event, heard: list[Any] | None = None) -> Row:
    """A row whose program yields these in order."""

    def program() -> Generator[Need | Event, Any, None]:
        for item in items:
            answer = yield item
            if heard is not None:
                heard.append(answer)

    return Row(request=request("row"), program=program(), seed=0, order=4, positions=40, arrived_s=0.0)


def test_a_row_goes_on_to_its_next_need_and_tells_the_events_before_it() -> None:
    heard: list[Any] = []
    made = row(Encode([3, 4, 5], 0, 0), Prefilled(3), Prefilled(4), CANVAS, heard=heard)
    assert made.advance(None) == []
    assert made.advance([1]) == [Prefilled(3), Prefilled(4)]
    assert (made.need, heard) == (CANVAS, [[1], None, None]), "only the need is answered"


def test_a_row_whose_program_ends_has_no_need() -> None:
    made = row(Encode([3], 0, 1), Prefilled(1))
    made.advance(None)
    assert made.advance([0]) == [Prefilled(1)]
    assert made.need is None


def test_the_context_follows_from_what_is_encoded() -> None:
    made = row(Encode([3, 4, 5], 0, 0), Encode([6, 7, 8, 9], 2, 3), Encode([1], 4, 1), CANVAS._replace(at=5))
    contexts, missing = [], []
    for _ in range(4):
        made.advance(None)
        contexts.append(list(made.context))
        missing.append(made.missing)
        made.held = len(made.context)
    assert contexts == [[3, 4, 5], [3, 4, 6, 7, 8, 9], [3, 4, 6, 7, 1], [3, 4, 6, 7, 1]]
    assert missing == [3, 4, 1, 0]


def test_a_need_says_how_much_is_read_and_how_wide_it_is() -> None:
    made = row(Encode([3, 4, 5], 0, 2), CANVAS)
    made.advance(None)
    assert (made.read, made.width) == (2, 0)
    made.advance(None)
    assert (made.read, made.width) == (0, 8)


@pytest.mark.parametrize(("read", "settled"), [(0, 4), (1, 4), (2, 2), (4, 2)])
def test_only_what_is_verified_may_be_taken_back(read: int, settled: int) -> None:
    made = row(Encode([3, 4], 0, 0), Encode([5, 6, 7, 8], 2, read))
    made.advance(None)
    made.held = 2
    made.advance(None)
    assert made.settled == 2
    made.held = 4  # of six
    assert made.settled == settled
    made.held = 1  # it begins anew
    assert made.settled == 1


def test_the_urgent_come_first_and_then_the_older_ones() -> None:
    first, second, urgent = row(), row(), row()
    second.order = 5
    urgent.order, urgent.request = 6, request("urgent", priority=1)
    assert sorted([second, first, urgent], key=lambda each: each.rank) == [urgent, first, second]
