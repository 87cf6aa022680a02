"""Fingerprints of denoising."""

import pytest

from mezzotint.bench.fingerprint import distance, take_fingerprint
from tests.bench.records import CANVAS, TOKEN, request


def test_it_is_a_histogram_of_steps_whose_digest_tells_it_from_others() -> None:
    one = take_fingerprint([request(**{**CANVAS, "steps": (3, 3, 5)}), request(**CANVAS), request(**TOKEN)])
    again = take_fingerprint([request(**CANVAS), request(**{**CANVAS, "steps": (5, 3, 3)})])
    other = take_fingerprint([request(**{**CANVAS, "steps": (3, 3, 3, 4)})])
    capped = take_fingerprint([request(**{**CANVAS, "steps": (3, 3, 4, 5), "step_budget": 5})])
    assert one is not None
    assert again is not None
    assert other is not None
    assert capped is not None
    assert one.blocks == {3: 2, 4: 1, 5: 1}
    assert one.digest == again.digest
    assert len({one.digest, other.digest, capped.digest}) == 3
    assert distance(one, again) == 0
    assert distance(one, other) == 0.25


def test_there_is_none_without_canvases_and_none_of_two_budgets() -> None:
    assert take_fingerprint([request(**TOKEN)]) is None
    with pytest.raises(ValueError, match="take the fingerprint of one sampler, budget and canvas"):
        take_fingerprint([request(**CANVAS), request(**{**CANVAS, "step_budget": 3})])
