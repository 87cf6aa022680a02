"""A canvas has settled when its open positions stand still and are sure."""

import torch
from torch import Tensor

from mezzotint.decoding.converge import count_stable, is_confident

OPEN = torch.ones(3, dtype=torch.bool)
PUBLISHED = 0.005


def ids(*rows: list[int]) -> Tensor:
    return torch.tensor(rows)


def entropies(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_a_row_that_equals_the_reference_counts_up_and_another_starts_over() -> None:
    now, then = ids([1, 2, 3], [1, 2, 3]), ids([1, 2, 3], [1, 2, 4])
    assert count_stable(now, then, torch.tensor([4, 4]), OPEN).tolist() == [5, 0]


def test_the_first_step_has_nothing_to_equal() -> None:
    assert count_stable(ids([1, 2, 3]), None, torch.tensor([0]), OPEN).tolist() == [0]


def test_a_pinned_position_may_say_what_it_likes() -> None:
    open_ = torch.tensor([True, False, True])
    assert count_stable(ids([1, 9, 3]), ids([1, 2, 3]), torch.tensor([0]), open_).tolist() == [1]
    assert count_stable(ids([1, 9, 4]), ids([1, 2, 3]), torch.tensor([0]), open_).tolist() == [0]


def test_confidence_asks_for_the_mean() -> None:
    unsure, sure = [0.016, 0.0, 0.0], [0.014, 0.0, 0.0]
    assert is_confident(entropies(unsure, sure), OPEN, PUBLISHED, inclusive=True).tolist() == [False, True]


def test_a_mean_at_the_threshold_is_confident_only_if_inclusive() -> None:
    at_it = entropies([0.25, 0.5, 0.75])
    assert is_confident(at_it, OPEN, 0.5, inclusive=True).tolist() == [True]
    assert is_confident(at_it, OPEN, 0.5, inclusive=False).tolist() == [False]


def test_pins_are_not_averaged() -> None:
    open_ = torch.arange(64) < 4
    unsure = torch.where(open_, 0.08, 0.0)[None]  # 0.32 nats over 64 positions would pass
    assert unsure.mean() <= PUBLISHED
    assert not is_confident(unsure, open_, PUBLISHED, inclusive=True)
    sure_among_unsure_pins = torch.where(open_, 0.0, 5.0)[None]
    assert is_confident(sure_among_unsure_pins, open_, PUBLISHED, inclusive=True)


def test_a_canvas_without_an_open_position_is_confident() -> None:
    for inclusive in (True, False):
        assert is_confident(entropies([9.0, 9.0, 9.0]), ~OPEN, 0.0, inclusive=inclusive).tolist() == [True]
