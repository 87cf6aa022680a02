"""Bins cut a vocabulary without gap or overlap, and a uniform falls where a plain running sum says."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mezzotint.model.draw import bins_of, place

ALMOST_ONE = 1 - 2**-53


def find(masses: list[float], uniform: float) -> int:
    """The first interval whose running sum exceeds the uniform's share of the whole."""
    target, running = uniform * sum(masses), 0.0
    for index, mass in enumerate(masses):
        running += mass
        if target < running:
            return index
    return max(index for index, mass in enumerate(masses) if mass)


def one_row(masses: list[float], uniforms: list[float]) -> tuple[Tensor, Tensor]:
    """The same masses for every uniform."""
    rows = [masses] * len(uniforms)
    return torch.tensor(rows, dtype=torch.float64), torch.tensor(uniforms, dtype=torch.float64)


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0]), min_size=1, max_size=9).filter(any),
    st.lists(st.floats(0, ALMOST_ONE), min_size=1, max_size=5),
)
def test_a_uniform_falls_where_a_running_sum_says(masses: list[float], uniforms: list[float]) -> None:
    found = place(*one_row(masses, uniforms)).interval
    assert found.tolist() == [find(masses, uniform) for uniform in uniforms]


def test_rows_have_masses_of_their_own() -> None:
    masses = torch.tensor([[1.0, 0, 0], [0, 1, 0], [1, 1, 2]], dtype=torch.float64)
    assert place(masses, torch.full((3,), 0.5, dtype=torch.float64)).interval.tolist() == [0, 1, 2]


def test_what_is_left_of_a_uniform_says_how_far_into_the_interval_it_fell() -> None:
    found = place(*one_row([1, 0, 3], [0, 0.125, 0.25, 0.625, ALMOST_ONE]))
    assert found.interval.tolist() == [0, 0, 2, 2, 2]
    torch.testing.assert_close(found.rest, torch.tensor([0, 0.5, 0, 0.5, 1], dtype=torch.float64))
    assert bool(((found.rest >= 0) & (found.rest <= 1)).all())


def test_a_uniform_that_rounds_up_to_the_sum_falls_into_the_last_interval_with_mass() -> None:
    masses, uniforms = one_row([0, 1e-300, 3e-300, 0, 0], [ALMOST_ONE, 1.0])
    assert place(masses, uniforms).interval.tolist() == [2, 2]


def test_a_mass_that_its_neighbours_round_away_is_never_found_as_the_last() -> None:
    masses, uniforms = one_row([1, 1e-30], [1.0])
    assert place(masses, uniforms).interval.tolist() == [0]


@given(st.integers(1, 5000))
def test_a_vocabulary_has_at_most_64_bins_of_one_width(vocab_size: int) -> None:
    bins = bins_of(vocab_size)
    ids = [bins.ids(bin_) for bin_ in range(bins.number)]
    assert len(ids) <= 64
    assert [i for own in ids for i in range(own.start, own.stop)] == list(range(vocab_size))
    assert {own.stop - own.start for own in ids[:-1]} <= {-(-vocab_size // 64)}
    assert 1 <= ids[-1].stop - ids[-1].start <= bins.width


@given(st.integers(1, 5000), st.integers(1, 6000))
def test_chunks_follow_one_another_and_hold_whole_bins_or_a_part_of_one(vocab_size: int, limit: int) -> None:
    bins = bins_of(vocab_size)
    chunks = list(bins.chunks(limit))
    assert [0, *(chunk.stop for chunk in chunks)] == [*(chunk.start for chunk in chunks), vocab_size]
    for chunk in chunks:
        width = chunk.stop - chunk.start
        assert 1 <= width <= limit
        if chunk.start // bins.width != (chunk.stop - 1) // bins.width:
            assert chunk.start % bins.width == 0
            assert width % bins.width == 0


def test_chunks_are_as_wide_as_the_limit_lets_whole_bins_be() -> None:
    bins = bins_of(18 * 16)  # 5 ids each, the last of 3
    widths = [chunk.stop - chunk.start for chunk in bins.chunks(24)]
    assert widths == [20] * 14 + [5, 3]
    assert [chunk.stop - chunk.start for chunk in bins.chunks(3)] == [3, 2] * 57 + [3]
