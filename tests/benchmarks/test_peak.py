"""Growth of the process: what a call allocates and touches is seen, also after it was freed."""

import pytest
import torch

from benchmarks.peak import peak_growth_bytes

MIB = 1 << 20


def growth(size: int) -> int:
    found = peak_growth_bytes(lambda: torch.ones(size, dtype=torch.uint8))
    if found is None:
        pytest.skip("this system does not tell a process's peak")
    return found


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_tensor_that_is_freed_at_once_is_seen_at_every_repetition(repeat: int) -> None:
    for _ in range(repeat):
        assert 60 * MIB < growth(64 * MIB) < 80 * MIB


def test_blocks_that_an_allocator_would_keep_are_seen_again() -> None:
    def many() -> list[torch.Tensor]:
        return [torch.ones(MIB // 16, dtype=torch.uint8) for _ in range(512)]

    many()
    found = peak_growth_bytes(many)
    assert found is None or found > 24 * MIB


def test_a_call_that_allocates_nothing_grows_nothing() -> None:
    assert growth(1) < 4 * MIB
