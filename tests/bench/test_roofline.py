"""Seconds of work, and how full tiles keep a device."""

from dataclasses import replace

import pytest

from mezzotint.bench.accelerators import ACCELERATORS
from mezzotint.bench.roofline import Efficiency, Work, filled, seconds

DEVICE = replace(ACCELERATORS["h100"], bandwidth=1e9, peaks={"bf16": 1e12, "fp8": 2e12}, units=4)
HALF = Efficiency(bandwidth=0.5, products=0.5, attention=0.25, kernel_us=2.0, logit_passes=3.0, host_ms=1.0)


def test_work_takes_the_longer_of_reading_and_multiplying_and_a_time_a_kernel() -> None:
    assert seconds(Work(bytes=1e9, flop=1e11), DEVICE, HALF) == pytest.approx(2.0)
    assert seconds(Work(bytes=1e6, flop=1e12), DEVICE, HALF) == pytest.approx(2.0)
    assert seconds(Work(bytes=1e6, flop=1e12, arithmetic="fp8"), DEVICE, HALF) == pytest.approx(1.0)
    assert seconds(Work(kernels=500), DEVICE, HALF) == pytest.approx(1e-3)


def test_idle_tiles_attention_and_logits_have_costs_of_their_own() -> None:
    assert seconds(Work(flop=1e12, filled=0.25), DEVICE, HALF) == pytest.approx(8.0)
    assert seconds(Work(flop=1e12, attends=True), DEVICE, HALF) == pytest.approx(4.0)
    assert seconds(Work(bytes=1e9, logit_bytes=1e9), DEVICE, HALF) == pytest.approx(2.0 + 6.0)


def test_tiles_fill_the_device_by_whole_waves() -> None:
    assert filled(256, 256, DEVICE) == 1.0  # 4 tiles on 4 units
    assert filled(256, 384, DEVICE) == 6 / 8  # 6 tiles in two waves
    assert filled(128, 128, DEVICE) == 1 / 4
    assert filled(128, 128, DEVICE, splits=True) == 1.0
    assert filled(128, 128, DEVICE, matrices=4) == 1.0


def test_few_rows_take_lower_tiles_and_lose_what_pads_them() -> None:
    assert filled(1, 512, DEVICE) == 1 / 16
    assert filled(20, 512, DEVICE) == 20 / 32
    assert filled(129, 256, DEVICE) == 129 / 256


def test_where_no_units_are_counted_nothing_is_idle() -> None:
    assert filled(1, 1, replace(DEVICE, units=None)) == 1.0
