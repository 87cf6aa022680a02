from dataclasses import replace
from typing import Any

import pytest

from mezzotint.engine.entry import check_entry, find_widest
from tests.engine.tiny import AR, CANVAS, CONTEXT, DIFFUSION, LIMITS, PINS, SHAPE, Runs, V, request

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
        (
            {"params": replace(AR, min_tokens=2), "stopper": Runs(2)},
            "min_tokens is 2, but a stop string may come before",
        ),
        ({"params": replace(DIFFUSION, thinking_budget=2), "pins": PINS}, "thinking_budget is 2, but pins are given"),
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


def test_a_request_uses_a_token_a_canvas_or_what_it_verifies_at_once_and_no_more_than_its_answer() -> None:
    assert find_widest(request("a token", params=AR), LIMITS) == 1
    assert find_widest(request("a canvas", params=DIFFUSION), LIMITS) == CANVAS
    assert find_widest(request("drafts", params=MTP), LIMITS) == CANVAS
    assert find_widest(request("few", params=replace(MTP, draft_tokens=5)), LIMITS) == 6
    assert find_widest(request("many", params=replace(MTP, draft_tokens=500)), LIMITS) == 13
