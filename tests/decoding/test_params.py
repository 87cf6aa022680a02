"""What a request may ask: wrong values are named with their remedy, and no option is accepted and ignored."""

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import numpy as np
import pytest

from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.sampler import SAMPLERS

CHECKPOINT = replace(
    SAMPLERS["report"], budget=12, t_min=0.2, t_max=0.9, entropy_bound=0.3, stability=2, confidence=0.01
)
NUMBERS = ("budget", "t_min", "t_max", "entropy_bound", "stability", "confidence")

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"decoder": "beam"}, "decoder is 'beam'; choose one of diffusion, ar, verified, mtp"),
    ({"sampler": "fast"}, "sampler is 'fast'; choose one of report, hf, jax, refine, ddim"),
    ({"max_tokens": 0}, "max_tokens is 0; ask for a whole number from 1 up"),
    ({"max_tokens": 2.5}, "max_tokens is 2.5; ask for a whole number"),
    ({"max_tokens": None}, "max_tokens is None; ask for a whole number"),
    ({"max_tokens": True}, "max_tokens is True; ask for a whole number"),
    ({"temperature": -0.1}, "temperature is -0.1; give 0 .* or a number from 1e-06 to 100"),
    ({"temperature": 1e-9}, "temperature is 1e-09; give 0 .* or a number from 1e-06 to 100"),
    ({"temperature": 101}, "temperature is 101; give 0 .* or a number from 1e-06 to 100"),
    ({"temperature": float("nan")}, "temperature is nan; give 0"),
    ({"temperature": "hot"}, "temperature is 'hot'; give 0"),
    ({"logprobs": 21}, "logprobs is 21; give a whole number from 0 to 20, or None for none at all"),
    ({"prompt_logprobs": True}, "prompt_logprobs is True; give a whole number from 0 to 20"),
    ({"seed": -1}, r"seed is -1; give a whole number from 0 to 2\^64 - 1"),
    ({"seed": 2**64}, r"seed is 18446744073709551616; give a whole number from 0 to 2\^64 - 1"),
    ({"seed": 1.0}, "seed is 1.0; give a whole number"),
    ({"ignore_eos": "no"}, "ignore_eos is 'no'; give True or False"),
    ({"steps": 0}, "steps is 0; a canvas needs a whole number of denoising steps from 1 up"),
    ({"steps": 1.5}, "steps is 1.5; a canvas needs a whole number"),
    ({"canvas_length": 0}, "canvas_length is 0; give a whole number of tokens from 1 up, or None"),
    ({"drop_after_end": 1}, "drop_after_end is 1; give True or False"),
    ({"gate": "loud"}, "gate is 'loud'; choose one of off, text, causal"),
    ({"drop_after_end": True, "ignore_eos": True}, "drop_after_end is True; nothing is dropped behind an end that"),
    ({"entropy_bound": -0.1}, "entropy_bound is -0.1; give a number of nats from 0 up"),
    ({"entropy_bound": float("nan")}, "entropy_bound is nan; give a number of nats"),
    ({"sampler": "refine", "threshold": 0}, r"threshold is 0; it is a probability in \(0, 1\]"),
    ({"sampler": "refine", "threshold": 1.5}, r"threshold is 1.5; it is a probability in \(0, 1\]"),
    ({"sampler": "refine", "editing_threshold": -1}, "editing_threshold is -1; it is a probability"),
    ({"decoder": "ar", "top_k": 0}, "top_k is 0; give a whole number from 1 up, or None for no limit"),
    ({"decoder": "ar", "top_k": 2.0}, "top_k is 2.0; give a whole number from 1 up"),
    ({"decoder": "ar", "top_p": 0}, r"top_p is 0; it must lie in \(0, 1\]"),
    ({"decoder": "ar", "top_p": 1.1}, r"top_p is 1.1; it must lie in \(0, 1\]"),
    ({"decoder": "ar", "top_p": None}, r"top_p is None; it must lie in \(0, 1\]"),
    ({"decoder": "ar", "min_p": -0.1}, r"min_p is -0.1; it must lie in \[0, 1\]"),
    ({"decoder": "ar", "min_p": float("nan")}, r"min_p is nan; it must lie in \[0, 1\]"),
    ({"decoder": "verified", "top_p": 1.5}, r"top_p is 1.5; it must lie in \(0, 1\]"),
    ({"thinking_budget": -1}, "thinking_budget is -1; give a whole number of tokens from 0 up, or None for no limit"),
    ({"thinking_budget": 2.5}, "thinking_budget is 2.5; give a whole number of tokens from 0 up"),
    ({"answer_reserve": 256}, "answer_reserve is 256; give a whole number from 0 up, below max_tokens 256"),
    ({"answer_reserve": None}, "answer_reserve is None; give a whole number from 0 up"),
    ({"min_tokens": -1}, "min_tokens is -1; give a whole number from 0 to max_tokens, which is 256"),
    ({"min_tokens": 9, "max_tokens": 8}, "min_tokens is 9; .* to max_tokens, which is 8"),
    ({"logit_bias": [3]}, r"logit_bias is \[3\]; give a mapping of token ids to numbers"),
    ({"logit_bias": {"3": 1.0}}, "logit_bias is {'3': 1.0}; map token ids to numbers from -100 to 100, or to -inf"),
    ({"logit_bias": {3: float("inf")}}, "logit_bias is {3: inf}; map token ids to numbers from -100 to 100"),
    ({"decoder": "ar", "presence_penalty": 2.1}, "presence_penalty is 2.1; give a number from -2 to 2"),
    ({"decoder": "ar", "frequency_penalty": "much"}, "frequency_penalty is 'much'; give a number from -2 to 2"),
    ({"decoder": "ar", "repetition_penalty": 0}, "repetition_penalty is 0; give a number above 0, at most 10"),
    ({"decoder": "verified", "draft_tokens": 0}, "draft_tokens is 0; give a whole number from 1 up, or None"),
    ({"decoder": "mtp", "draft_tokens": 2.5}, "draft_tokens is 2.5; give a whole number from 1 up, or None"),
    ({"decoder": "verified", "draft_steps": True}, "draft_steps is True; give a whole number from 1 up, or None"),
    ({"decoder": "verified", "draft_tail": "warm"}, r"draft_tail is 'warm'; choose one of fresh, tail, tail\+soft"),
]

ELSEWHERE: list[tuple[dict[str, Any], str]] = [
    (
        {"presence_penalty": 0.5},
        "presence_penalty is 0.5; decoder 'diffusion' does not use it: leave it at 0.0 or choose one of ar, verified",
    ),
    ({"frequency_penalty": 0.5}, "frequency_penalty is 0.5; decoder 'diffusion' does not use it: leave it at 0.0"),
    ({"repetition_penalty": 1.1}, "repetition_penalty is 1.1; decoder 'diffusion' does not use it: leave it at 1.0"),
    *(
        ({"decoder": decoder, name: value}, f"{name} is .*; decoder '{decoder}' does not use it: .* one of diffusion$")
        for decoder in ("ar", "verified", "mtp")
        for name, value in {
            "sampler": "hf",
            "steps": 8,
            "entropy_bound": 0.1,
            "canvas_length": 8,
            "drop_after_end": True,
            "gate": "text",
            "threshold": 0.9,
            "editing_threshold": 0.9,
        }.items()
    ),
    *(
        (
            {"decoder": decoder, name: value},
            f"{name} is .*; decoder '{decoder}' does not use it: leave it at .* or choose one of",
        )
        for decoder in ("ar", "diffusion")
        for name, value in {"draft_tokens": 4, "draft_steps": 2, "draft_tail": "fresh"}.items()
    ),
    ({"decoder": "mtp", "draft_steps": 2}, "draft_steps is 2; decoder 'mtp' does not use it: .* one of verified$"),
    ({"decoder": "mtp", "draft_tail": "tail"}, "draft_tail is 'tail'; decoder 'mtp' does not use it"),
    ({"threshold": 0.9}, "threshold is 0.9; sampler 'report' does not use it: .* choose one of refine"),
    ({"sampler": "ddim", "threshold": 0.9}, "threshold is 0.9; sampler 'ddim' does not use it"),
    ({"sampler": "jax", "editing_threshold": 0.9}, "editing_threshold is 0.9; sampler 'jax' does not use it"),
    ({"sampler": "refine", "entropy_bound": 0.2}, "entropy_bound is 0.2; .* choose one of report, hf, jax"),
    (
        {"sampler": "refine", "temperature": 0.7},
        "temperature is 0.7; sampler 'refine' always proposes the argmax",
    ),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[str(options) for options, _ in WRONG])
def test_a_wrong_value_is_named_with_its_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SamplingParams(**options)


@pytest.mark.parametrize(("options", "message"), ELSEWHERE, ids=[str(options) for options, _ in ELSEWHERE])
def test_an_option_that_would_be_ignored_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SamplingParams(**options)


@pytest.mark.parametrize("name", ["canvas", "best_of", "stop_words", "n"])
def test_an_option_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        SamplingParams(**{name: 1})  # type: ignore[arg-type]


def test_every_option_has_a_wrong_value_in_this_file() -> None:
    named = {message.split(" is ")[0] for _, message in WRONG}
    assert named == {field.name for field in fields(SamplingParams)}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0},
        {"temperature": 100.0},
        {"temperature": 1e-6},
        {"seed": 0},
        {"seed": 2**64 - 1},
        {"seed": np.int64(3), "temperature": np.float32(0.5)},
        {"entropy_bound": 0},
        {"sampler": "refine", "threshold": 1.0, "editing_threshold": 0.9, "temperature": 0},
        {"sampler": "refine", "temperature": 1},
        {"sampler": "ddim", "temperature": 0.5},
        {"decoder": "ar", "top_k": 1, "top_p": 1, "min_p": 1},
        {"decoder": "verified", "top_k": 1, "draft_tokens": 1, "draft_steps": 1, "draft_tail": "tail+soft"},
        {"decoder": "mtp", "temperature": 0, "min_p": 0.1, "draft_tokens": 1000},
        {"top_k": None, "top_p": 1, "min_p": 0},
        {"thinking_budget": 0, "answer_reserve": 255},
    ],
    ids=str,
)
def test_values_at_the_limits_and_neutral_ones_are_accepted(options: dict[str, Any]) -> None:
    assert SamplingParams(**options) == SamplingParams(**options)


def test_params_are_keyword_only_and_frozen() -> None:
    with pytest.raises(TypeError):
        SamplingParams("ar")  # type: ignore[call-arg]
    with pytest.raises(FrozenInstanceError):
        SamplingParams().seed = 1  # type: ignore[misc]


def test_without_a_name_the_checkpoints_own_numbers_run() -> None:
    assert SamplingParams().resolve_sampler(CHECKPOINT) == CHECKPOINT
    assert SamplingParams().resolve_sampler() == SAMPLERS["report"]


@pytest.mark.parametrize("name", ["report", "hf", "jax"])
def test_a_named_sampler_of_the_same_rule_keeps_the_checkpoints_numbers(name: Any) -> None:
    resolved = SamplingParams(sampler=name).resolve_sampler(CHECKPOINT)
    published = SAMPLERS[name]
    assert {number: getattr(resolved, number) for number in NUMBERS} == {
        number: getattr(CHECKPOINT, number) for number in NUMBERS
    }
    assert resolved.with_numbers_of(published) == published


@pytest.mark.parametrize("name", ["refine", "ddim"])
def test_a_named_sampler_of_another_rule_keeps_its_own_numbers(name: Any) -> None:
    assert SamplingParams(sampler=name).resolve_sampler(CHECKPOINT) == SAMPLERS[name]


def test_the_requests_numbers_win() -> None:
    asked = SamplingParams(sampler="hf", steps=5, entropy_bound=0.0).resolve_sampler(CHECKPOINT)
    assert (asked.name, asked.budget, asked.entropy_bound, asked.t_max) == ("hf", 5, 0.0, 0.9)
    refining = SamplingParams(sampler="refine", steps=3, threshold=0.5, editing_threshold=0.8).resolve_sampler()
    assert (refining.budget, refining.threshold, refining.editing_threshold) == (3, 0.5, 0.8)


def test_numpys_numbers_become_pythons() -> None:
    params = SamplingParams(seed=np.int64(3), steps=np.int64(2), temperature=np.float32(0.5))
    assert [type(value) for value in (params.seed, params.steps, params.temperature)] == [int, int, float]


@pytest.mark.parametrize("bound", [float("inf"), float("nan")])
def test_a_bound_that_is_not_finite_is_refused(bound: float) -> None:
    with pytest.raises(ValueError, match="entropy_bound is"):
        SamplingParams(entropy_bound=bound)
