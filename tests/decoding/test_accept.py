"""Which proposals a step keeps, against loops that follow the definitions."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mezzotint.decoding.accept import accept_entropy_bound, accept_most_confident

# Sixteenths of a nat add up exactly in float32, so a sum that meets the bound meets it.
SIXTEENTHS = st.integers(0, 40).map(lambda count: count / 16)
BOUND = st.integers(0, 64).map(lambda count: count / 16)
ROW = st.lists(st.tuples(SIXTEENTHS, st.booleans()), min_size=1, max_size=12)
PROBABILITY = st.integers(1, 16).map(lambda count: count / 16)
REFINING = st.lists(st.tuples(PROBABILITY, st.booleans(), st.booleans()), min_size=1, max_size=12)


def rows(*values: list[float]) -> Tensor:
    return torch.tensor(values)


def everywhere(width: int) -> Tensor:
    return torch.ones(width, dtype=torch.bool)


def slow_entropy_bound(uncertainty: list[float], open_: list[bool], bound: float) -> list[bool]:
    """Take the open positions from the surest on while those already taken hold no more than the bound."""
    kept, held = [False] * len(uncertainty), 0.0
    for position in sorted(range(len(uncertainty)), key=lambda position: (uncertainty[position], position)):
        if open_[position]:
            if held > bound:
                break
            kept[position] = True
            held += uncertainty[position]
    return kept


@given(row=ROW, bound=BOUND)
def test_acceptance_follows_the_exclusive_sum(row: list[tuple[float, bool]], bound: float) -> None:
    uncertainty, open_ = [each[0] for each in row], [each[1] for each in row]
    kept = accept_entropy_bound(rows(uncertainty), torch.tensor(open_), bound)
    assert kept.dtype == torch.bool
    assert kept[0].tolist() == slow_entropy_bound(uncertainty, open_, bound)


@given(row=ROW, bound=BOUND)
def test_the_surest_open_position_is_always_accepted(row: list[tuple[float, bool]], bound: float) -> None:
    uncertainty, open_ = torch.tensor([each[0] for each in row]), torch.tensor([each[1] for each in row])
    kept = accept_entropy_bound(uncertainty[None] + 100, open_, bound)[0]
    assert bool(kept.any()) == bool(open_.any())
    if open_.any():
        assert kept[torch.where(open_, uncertainty, torch.inf).argmin()]


def test_a_position_counts_for_those_after_it_and_not_for_itself() -> None:
    entropies = rows([0.0625, 3.0, 0.0])
    assert accept_entropy_bound(entropies, everywhere(3), 0.0625).tolist() == [[True, True, True]]
    assert accept_entropy_bound(entropies, everywhere(3), 0.0624).tolist() == [[True, False, True]]


def test_among_equals_the_lower_index_is_accepted() -> None:
    wide = torch.full((1, 300), 0.5)
    assert accept_entropy_bound(wide, everywhere(300), 1.0)[0].nonzero()[:, 0].tolist() == [0, 1, 2]
    committed = torch.zeros(1, 300, dtype=torch.bool)
    kept = accept_most_confident(wide.log(), committed, everywhere(300), 3, 0.9)
    assert kept[0].nonzero()[:, 0].tolist() == [0, 1, 2]


def test_a_pin_takes_neither_a_rank_nor_a_share_of_the_bound() -> None:
    open_ = torch.tensor([True, False, True, False])
    kept = accept_entropy_bound(rows([0.5, 0.0, 0.75, 0.25]), open_, 0.5)
    assert kept.tolist() == [[True, False, True, False]]


def test_a_bound_without_limit_accepts_what_is_open_and_no_pin() -> None:
    open_ = torch.tensor([True, False, True])
    assert accept_entropy_bound(rows([0.5, 0.0, 9.0]), open_, float("inf")).tolist() == [[True, False, True]]


def test_rows_are_accepted_apart() -> None:
    entropies = rows([0.5, 0.25, 0.125], [0.0, 0.0, 4.0])
    both = accept_entropy_bound(entropies, everywhere(3), 0.2)
    assert both.tolist() == [[False, True, True], [True, True, True]]
    for row in range(2):
        assert accept_entropy_bound(entropies[row : row + 1], everywhere(3), 0.2).equal(both[row : row + 1])


def slow_most_confident(row: list[tuple[float, bool, bool]], target: int, threshold: float) -> list[bool]:
    """Keep what is committed, add what is surer than the threshold, and the surest up to the target."""
    kept = [committed and open_ for _, open_, committed in row]
    waiting = [index for index, (_, open_, _) in enumerate(row) if open_ and not kept[index]]
    missing = target - sum(kept)
    for rank, index in enumerate(sorted(waiting, key=lambda index: (-row[index][0], index))):
        kept[index] = rank < missing or row[index][0] > threshold
    return kept


@given(row=REFINING, target=st.integers(0, 12), threshold=PROBABILITY)
def test_refinement_commits_by_threshold_and_up_to_its_target(
    row: list[tuple[float, bool, bool]], target: int, threshold: float
) -> None:
    log_prob = torch.tensor([[each[0] for each in row]], dtype=torch.float64).log()
    open_ = torch.tensor([each[1] for each in row])
    committed = torch.tensor([[each[1] and each[2] for each in row]])
    kept = accept_most_confident(log_prob, committed, open_, target, threshold + 1e-6)
    assert kept[0].tolist() == slow_most_confident(row, target, threshold)
    assert not (committed & ~kept).any()


def test_a_threshold_is_passed_and_not_met() -> None:
    log_prob = rows([0.0, -1.0])
    nothing = torch.zeros(1, 2, dtype=torch.bool)
    assert accept_most_confident(log_prob, nothing, everywhere(2), 0, 1.0).tolist() == [[False, False]]
    assert accept_most_confident(log_prob, nothing, everywhere(2), 0, 0.99).tolist() == [[True, False]]
