"""The makers' figures: whole, ordered as the devices are, and asked for by name."""

import pytest

from mezzotint.bench.accelerators import ACCELERATORS, find_accelerator


def test_every_accelerator_states_its_figures_and_their_source() -> None:
    for name, device in ACCELERATORS.items():
        assert device.name == name
        assert device.source
        assert min(device.bandwidth, device.memory, *device.peaks.values()) > 0
        assert device.peaks["bf16"] == min(device.peaks.values())


def test_a_device_without_units_for_a_precision_multiplies_in_bf16() -> None:
    a100, h100 = find_accelerator("a100"), find_accelerator("h100")
    assert a100.peak("fp8") == a100.peak("bf16")
    assert h100.peak("fp8") == pytest.approx(2 * h100.peak("bf16"), rel=1e-3)


def test_an_unknown_accelerator_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r"--accelerator is 'h1000'.*h100, h200, a100"):
        find_accelerator("h1000")
