"""Schedules of arrivals."""

from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any

import pytest

from mezzotint.bench.arrival import Load, arrival_times


def test_a_constant_rate_has_equal_gaps() -> None:
    assert arrival_times(Load(kind="constant", value=4), 3, seed="0") == [0, 0.25, 0.5]


def test_poisson_arrivals_have_gaps_whose_spread_is_their_mean_and_come_back_with_their_seed() -> None:
    load = Load(kind="poisson", value=5)
    times = arrival_times(load, 4000, seed="0")
    gaps = [late - early for early, late in pairwise([0.0, *times])]
    assert fmean(gaps) == pytest.approx(0.2, rel=0.05)
    assert pstdev(gaps) == pytest.approx(0.2, rel=0.07)
    assert arrival_times(load, 10, seed="0") == times[:10]
    assert arrival_times(load, 10, seed="1") != times[:10]


def test_a_trace_keeps_its_gaps_at_its_speed_and_begins_at_once() -> None:
    assert arrival_times(Load(kind="trace", value=2), 3, seed="0", trace=[10.0, 11.0, 14.0]) == [0, 0.5, 2]
    with pytest.raises(ValueError, match="the trace has 1 arrivals for 3 tasks"):
        arrival_times(Load(kind="trace", value=2), 3, seed="0", trace=[1.0])


def test_a_closed_loop_has_no_schedule() -> None:
    with pytest.raises(ValueError, match="a closed loop has no schedule"):
        arrival_times(Load(kind="closed", value=2), 3, seed="0")


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ({"kind": "closed", "value": 0}, "load is 0; give a number above 0"),
        ({"kind": "poisson", "value": float("inf")}, "load is inf"),
        ({"kind": "closed", "value": 1.5}, "load is 1.5 at once; give a whole number, or a rate"),
    ],
)
def test_what_makes_no_sense_is_refused(load: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Load(**load)


def test_a_load_reads_as_people_say_it() -> None:
    loads = [Load(kind="closed", value=4), Load(kind="poisson", value=0.5), Load(kind="trace", value=10)]
    assert list(map(str, loads)) == ["4 at once", "0.5/s poisson", "trace × 10"]
