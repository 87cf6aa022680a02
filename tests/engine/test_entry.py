from dataclasses import replace
from typing import Any

import pytest

from mezzotint.engine.entry import check_entry, verified_together
from tests.engine.tiny import AR, CONTEXT, DIFFUSION, LIMITS, PINS, SHAPE, V, request

MTP = replace(AR, decoder="mtp")


def test_a_request_that_can_be_answered_says_how_many_positions_it_may_touch() -> None:
    assert check_entry(request("whole canvases", 10, DIFFUSION), LIMITS, SHAPE, has_drafter=False) == 10 + 24
    assert check_entry(request("tokens", 10, AR), LIMITS, SHAPE, has_drafter=False) == 10 + 12
    assert check_entry(request("guesses", 10, MTP), LIMITS, SHAPE, has_drafter=True) == 10 + 12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"deadline_s": 0.0}, "deadline_s is 0.0; give seconds above 0"),
        ({"prompt": ()}, "the prompt has 0 tokens; give at least 1"),
        ({"prompt": (3, V)}, f"token id {V}; ids go from 0 to {V - 1}"),
        ({"prompt": (3, -1)}, "token id -1; ids go from 0"),
        ({"prompt": CONTEXT - 10}, "exceed the context of 96; shorten the prompt"),
        ({"params": MTP}, "decoder is 'mtp', but this checkpoint came without a drafter"),
        ({"params": AR, "pins": PINS}, "pins are given, but decoder 'ar' would not keep them; use 'diffusion'"),
        ({"params": replace(DIFFUSION, max_tokens=8), "pins": PINS}, "block 1 has pins, but max_tokens makes 1"),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused_with_the_remedy(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_entry(request("refused", **given), LIMITS, SHAPE, has_drafter=False)


@pytest.mark.parametrize("decoder", ["diffusion", "verified"])
def test_a_checkpoint_without_a_canvas_is_not_asked_for_one(decoder: Any) -> None:
    gemma = replace(SHAPE, family="gemma4")
    with pytest.raises(ValueError, match=f"decoder is '{decoder}', but a gemma4 checkpoint has no canvas; use 'ar'"):
        check_entry(request("canvas", params=replace(AR, decoder=decoder)), LIMITS, gemma, has_drafter=False)
    assert check_entry(request("tokens", params=AR), LIMITS, gemma, has_drafter=False)


def test_a_verification_is_as_wide_as_what_was_asked_and_no_wider_than_the_answer() -> None:
    assert verified_together(request("none", params=MTP)) == 0
    assert verified_together(request("few", params=replace(MTP, draft_tokens=5))) == 6
    assert verified_together(request("many", params=replace(MTP, draft_tokens=500))) == 13
