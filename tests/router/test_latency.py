"""Time of arms: laws that are known are found within 2 %, at loads and lengths of their own."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from mezzotint.router.latency import ArmLatency, Outputs, load_bucket
from mezzotint.router.record import Attempt
from mezzotint.types import ArmTraits

Clock = Callable[[], float]
Law = Callable[[int, int, int], float]


def traits(**changes: Any) -> ArmTraits:
    return ArmTraits(**{"name": "arm", "engine": "here", "is_local": True, "context": 4096, **changes})


CANVAS = traits(decoder="diffusion", canvas_length=64, step_budget=16)


def teach(model: ArmLatency, forward_s: Law, forwards: Callable[[int], int], count: int = 300, **fixed: Any) -> None:
    """Answers of varied prompts, lengths and loads; forward_s of (in flight, context, tokens)."""
    random = Random(5)
    for number in range(count):
        prompt, tokens, load = random.randint(20, 400), random.randint(20, 60), random.choice((1, 2, 4, 8))
        work = forwards(tokens) * forward_s(load, prompt + tokens // 2, tokens)
        prefill = 0.002 + 0.0001 * prompt
        told = {"prefill_s": prefill, "generation_s": work, "queue_s": 0.001 * load, "forwards": forwards(tokens)}
        total = prefill + work + 0.001 * load + 0.004
        told |= {"prompt_tokens": prompt, "output_tokens": tokens, "in_flight": load, "seconds": total}
        model.note(Attempt(**{**BASE, "decision": str(number), **told, **fixed}))


BASE: dict[str, Any] = {"index": 0, "arm": "arm", "kind": "text-any", "outcome": "accepted"}


@pytest.mark.parametrize("load", [1, 3, 8])
def test_a_canvas_takes_its_blocks_times_steps_and_commit(load: int) -> None:
    model = ArmLatency(CANVAS, Outputs(), lambda: 0.0)
    teach(model, lambda b, ctx, n: 0.002 + 0.001 * b + 1e-6 * ctx, lambda n: 9, blocks=1, steps=8)
    expected = 0.002 + 0.0001 * 200 + 9 * (0.002 + 0.001 * load + 1e-6 * 220) + 0.001 * load + 0.004
    assert model.predict("text-any", 200, 200, 256, load) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("load", [1, 8])
def test_ar_takes_a_forward_a_token(load: int) -> None:
    model = ArmLatency(traits(decoder="ar"), Outputs(), lambda: 0.0)
    teach(model, lambda b, ctx, n: 0.003 + 0.0002 * b, lambda n: n)
    expected = 0.002 + 0.0001 * 200 + 40 * (0.003 + 0.0002 * load) + 0.001 * load + 0.004
    assert model.predict("text-any", 200, 200, 256, load) == pytest.approx(expected, rel=0.02)


def test_drafts_divide_the_tokens_by_what_a_forward_accepts() -> None:
    model = ArmLatency(traits(decoder="mtp"), Outputs(), lambda: 0.0)
    teach(model, lambda b, ctx, n: 0.004, lambda n: n // 4)
    expected = 0.002 + 0.0001 * 200 + 10 * 0.004 + 0.001 + 0.004
    assert model.predict("text-any", 200, 200, 256, 1) == pytest.approx(expected, rel=0.05)


def test_a_longer_answer_takes_more_canvases_though_none_so_long_was_seen_of_its_class() -> None:
    outputs = Outputs()
    model = ArmLatency(CANVAS, outputs, lambda: 0.0)
    teach(model, lambda b, ctx, n: 0.004, lambda n: 9, blocks=1, steps=8)
    for _ in range(200):
        outputs.note("code-long", 250)  # others have answered this class
    short, long = (model.predict(kind, 100, 100, 1000, 1) for kind in ("text-any", "code-long"))
    assert long - short == pytest.approx(3 * 9 * 0.004, rel=0.05)


def test_an_answer_that_may_have_few_tokens_is_expected_to_take_less() -> None:
    model = ArmLatency(traits(decoder="ar"), Outputs(), lambda: 0.0)
    teach(model, lambda b, ctx, n: 0.003, lambda n: n)
    assert model.predict("text-any", 100, 100, 4, 1) < 0.6 * model.predict("text-any", 100, 100, 256, 1)


def test_what_an_engine_holds_of_a_prompt_is_not_paid_for_again() -> None:
    model = ArmLatency(CANVAS, Outputs(), lambda: 0.0)
    teach(model, lambda b, ctx, n: 0.004, lambda n: 9, blocks=1)
    saved = model.predict("text-any", 300, 300, 256, 1) - model.predict("text-any", 20, 300, 256, 1)
    assert saved == pytest.approx(280 * 0.0001, rel=0.05)


def test_an_arm_elsewhere_is_a_law_of_its_sizes() -> None:
    model = ArmLatency(traits(is_local=False), Outputs(), lambda: 0.0)
    random = Random(1)
    for number in range(200):
        prompt, tokens = random.randint(20, 2000), random.randint(40, 56)
        took = 0.02 * prompt**0.3 * tokens**0.7 * random.lognormvariate(0.0, 0.05)
        told = {"prompt_tokens": prompt, "output_tokens": tokens, "in_flight": 1, "seconds": took}
        model.note(Attempt(**BASE, decision=str(number), **told))
    assert model.predict("text-any", 500, 500, 256, 1) == pytest.approx(0.02 * 500**0.3 * 48**0.7, rel=0.03)


def test_an_arm_elsewhere_that_is_slow_this_hour_is_expected_to_stay_so_for_a_while() -> None:
    now = [0.0]
    model = ArmLatency(traits(is_local=False), Outputs(), lambda: now[0])
    sizes: dict[str, Any] = {"prompt_tokens": 100, "output_tokens": 40, "in_flight": 1}
    for number in range(100):
        now[0] += 60.0
        model.note(Attempt(**BASE, decision=str(number), seconds=1.0, **sizes))
    before = model.predict("text-any", 100, 100, 256, 1)
    for number in range(10):
        now[0] += 600.0
        model.note(Attempt(**BASE, decision=f"slow {number}", seconds=2.0, **sizes))
    assert model.predict("text-any", 100, 100, 256, 1) > 1.4 * before


def test_verification_is_no_part_of_an_arms_time() -> None:
    model = ArmLatency(CANVAS, Outputs(), lambda: 0.0)
    told: dict[str, Any] = {
        "prompt_tokens": 10,
        "output_tokens": 20,
        "in_flight": 1,
        "generation_s": 0.1,
        "blocks": 1,
        "forwards": 9,
    }
    for number in range(50):
        model.note(Attempt(**BASE, decision=str(number), seconds=1.1, verify_s=1.0, **told))
    assert model.predict("text-any", 10, 10, 64, 1) == pytest.approx(0.1, rel=0.05)


def test_loads_are_sorted_by_doubling() -> None:
    assert [load_bucket(b) for b in (0, 1, 2, 3, 4, 7, 8, 100)] == [0, 0, 1, 1, 2, 2, 3, 6]
