"""A preset is plain params, and what it decides nobody decides otherwise."""

from dataclasses import asdict
from itertools import pairwise

import pytest

from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.presets import PRESETS, preset


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_its_bundle_and_leaves_the_rest_to_the_request(name: str) -> None:
    made = preset(name, seed=5, temperature=0.5)
    assert made == SamplingParams(**PRESETS[name], seed=5, temperature=0.5)
    assert PRESETS[name].items() <= asdict(made).items()


def test_each_preset_takes_more_steps_than_the_one_before_and_looks_closer() -> None:
    assert list(PRESETS) == ["fast", "balanced", "best"]
    assert [PRESETS[name]["gate"] for name in PRESETS] == ["off", "text", "causal"]
    assert all(PRESETS[one]["steps"] < PRESETS[next_]["steps"] for one, next_ in pairwise(PRESETS))


def test_an_option_that_a_preset_decides_otherwise_is_refused_and_the_same_is_not() -> None:
    with pytest.raises(ValueError, match="gate is 'causal', but preset 'balanced' decides it as 'text'; leave out one"):
        preset("balanced", gate="causal")
    with pytest.raises(ValueError, match="decoder is 'ar', but preset 'fast' decides"):
        preset("fast", decoder="ar")
    assert preset("fast", steps=PRESETS["fast"]["steps"]) == preset("fast")


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="preset is 'slow'; choose one of fast, balanced, best"):
        preset("slow")
