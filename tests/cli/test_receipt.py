"""A receipt as an object and as a line."""

import json
from dataclasses import replace
from math import inf

from mezzotint.cli.receipt import metrics, receipt_line, usage
from mezzotint.types import Intervention, Receipt

CANVAS = Receipt(
    decoder="diffusion",
    sampler="report",
    seed=5,
    prompt_tokens=79,
    output_tokens=600,
    denoise_steps=(17, 48, 20),
    block_tokens=(256, 256, 88),
    step_budget=48,
    canvas_length=256,
    entropy_bound=0.1,
    encodes=2,
    prefill_s=0.25,
    generation_s=0.5,
)
AR = Receipt(
    decoder="ar",
    sampler=None,
    seed=6,
    prompt_tokens=3,
    output_tokens=1,
    encodes=1,
    prefill_s=0.0,
    generation_s=0.0,
)
VERIFIED = replace(
    CANVAS,
    decoder="verified",
    output_tokens=30,
    denoise_steps=(0, 2, 0),
    block_tokens=(1, 28, 1),
    step_budget=4,
    encodes=3,
    drafted_tokens=31,
    accepted_tokens=27,
    break_even=0.6403,
)
MTP = replace(AR, decoder="mtp", output_tokens=6, encodes=2, drafted_tokens=6, accepted_tokens=4, draft_forwards=6)


def test_usage_is_in_tokens_and_adds_up() -> None:
    assert usage(CANVAS) == {"prompt_tokens": 79, "completion_tokens": 600, "total_tokens": 679}


def test_metrics_are_in_milliseconds_with_the_work_under_diffusion() -> None:
    assert metrics(CANVAS, 0.4321) == {
        "time_to_first_token_ms": 432.1,
        "queue_time_ms": 0.0,
        "prefill_time_ms": 250.0,
        "generation_time_ms": 500.0,
        "tokens_per_second": 800.0,
        "seed": 5,
        "diffusion": {
            "semantics": "canvas",
            "canvas": 256,
            "blocks": 3,
            "denoise_steps": [17, 48, 20],
            "block_tokens": [256, 256, 88],
            "forwards": 87,
            "tokens_per_forward": 6.897,
            "step_budget": 48,
            "budget_hits": 1,
            "sampler": "report",
            "entropy_bound": 0.1,
            "drafted_tokens": 0,
            "accepted_tokens": 0,
            "draft_forwards": 0,
            "break_even": None,
            "overridden_tokens": 0,
            "forced_tokens": 0,
            "interventions": [],
        },
    }


def test_what_a_gate_did_is_told_in_both_forms() -> None:
    done = (Intervention(0, ("stutter", "surprise"), "trim", 0), Intervention(2, ("empty",), "ar", 5))
    receipt = replace(CANVAS, interventions=done)
    told = metrics(receipt, 0.4)["diffusion"]["interventions"]
    assert json.loads(json.dumps(told)) == [
        {"block": 0, "kinds": ["stutter", "surprise"], "action": "trim", "forwards": 0},
        {"block": 2, "kinds": ["empty"], "action": "ar", "forwards": 5},
    ]
    assert " of 48 steps · mended: block 0 trim (stutter, surprise); block 2 ar (empty) · " in receipt_line(receipt)


def test_a_bound_that_bounds_nothing_is_none_for_json_knows_no_infinity() -> None:
    found = metrics(replace(CANVAS, entropy_bound=inf), 0.4)
    assert json.loads(json.dumps(found, allow_nan=False))["diffusion"]["entropy_bound"] is None


def test_ar_has_the_same_metrics_without_a_canvas() -> None:
    found = metrics(AR, 0.0)
    assert found.keys() == metrics(CANVAS, 0.4).keys()
    assert found["tokens_per_second"] == 0.0, "no time, no rate"
    assert json.loads(json.dumps(found["diffusion"])) == {
        "semantics": "token",
        "canvas": 0,
        "blocks": 0,
        "denoise_steps": [],
        "block_tokens": [],
        "forwards": 1,
        "tokens_per_forward": 1.0,
        "step_budget": 0,
        "budget_hits": 0,
        "sampler": None,
        "entropy_bound": None,
        "drafted_tokens": 0,
        "accepted_tokens": 0,
        "draft_forwards": 0,
        "break_even": None,
        "overridden_tokens": 0,
        "forced_tokens": 0,
        "interventions": [],
    }


def test_the_line_names_blocks_steps_budget_forwards_times_and_seed() -> None:
    assert receipt_line(CANVAS) == (
        "— diffusion report · 3 blocks · 17 + 48 + 20 of 48 steps · 6.90 tokens per forward "
        "(600 tokens, 87 forwards) · prefill 250 ms · generation 500 ms · seed 5"
    )


def test_the_line_of_ar_has_no_blocks() -> None:
    assert receipt_line(AR) == (
        "— ar · 1.00 tokens per forward (1 token, 1 forward) · prefill 0 ms · generation 0 ms · seed 6"
    )


def test_decoders_that_draft_tell_their_drafts_in_the_metrics() -> None:
    found = metrics(VERIFIED, 0.0)["diffusion"]
    assert (found["semantics"], found["drafted_tokens"], found["accepted_tokens"]) == ("token", 31, 27)
    assert (found["forwards"], found["tokens_per_forward"], found["break_even"]) == (5, 6.0, 0.64)
    found = metrics(MTP, 0.0)["diffusion"]
    assert (found["semantics"], found["forwards"], found["draft_forwards"]) == ("token", 2, 6)


def test_the_line_of_decoders_that_draft_tells_what_became_of_the_drafts() -> None:
    assert receipt_line(VERIFIED) == (
        "— verified · 27 of 31 drafts accepted, break-even 64% · 6.00 tokens per forward (30 tokens, 5 forwards) "
        "· prefill 250 ms · generation 500 ms · seed 5"
    )
    assert receipt_line(MTP) == (
        "— mtp · 4 of 6 drafts accepted (6 drafting forwards) · 3.00 tokens per forward (6 tokens, 2 forwards) "
        "· prefill 0 ms · generation 0 ms · seed 6"
    )
