"""What an evaluation may be told, which arms it makes of it, and which prompts it draws."""

from typing import Any

import pytest

from mezzotint.evaluate.config import MAX_PROMPTS, Arm, EvaluateConfig
from mezzotint.llm import preset
from mezzotint.tasks import FAMILIES


def test_quality_is_compared_with_ar_greedy_and_diffusion_as_published() -> None:
    assert EvaluateConfig().arms == (
        Arm(decoder="diffusion", sampler=None, steps=None, temperature=1.0),
        Arm(decoder="ar", sampler=None, steps=None, temperature=0.0),
    )


def test_decoders_that_draft_are_compared_greedily_as_ar_is() -> None:
    config = EvaluateConfig(decoders=("verified", "mtp"))
    assert config.arms == tuple(
        Arm(decoder=decoder, sampler=None, steps=None, temperature=0.0) for decoder in ("verified", "mtp")
    )


def test_a_temperature_that_was_asked_for_is_that_of_every_arm() -> None:
    assert [arm.temperature for arm in EvaluateConfig(temperature=1.0).arms] == [1.0, 1.0]
    assert [arm.temperature for arm in EvaluateConfig(temperature=0.0).arms] == [0.0, 0.0]


def test_each_step_budget_is_an_arm_and_ar_stays_single() -> None:
    config = EvaluateConfig(decoders=("ar", "diffusion"), steps=(4, 48), sampler="hf")
    assert [(arm.decoder, arm.sampler, arm.steps) for arm in config.arms] == [
        ("ar", None, None),
        ("diffusion", "hf", 4),
        ("diffusion", "hf", 48),
    ]


def test_an_arm_hands_all_its_options_to_the_request() -> None:
    arm = Arm(decoder="diffusion", sampler="jax", steps=7, temperature=0.5)
    params = arm.params(max_tokens=9, seed=3)
    assert (params.decoder, params.sampler, params.steps) == ("diffusion", "jax", 7)
    assert (params.temperature, params.max_tokens, params.seed) == (0.5, 9, 3)


def test_every_task_is_evaluated_unless_some_are_named() -> None:
    assert EvaluateConfig().tasks == tuple(FAMILIES)


def test_the_prompts_of_a_seed_begin_where_the_most_of_the_seed_before_end() -> None:
    begin, after = (EvaluateConfig(n=1, seed=seed).prompts("extract")[0].seed for seed in (6, 7))
    assert after - begin == MAX_PROMPTS
    with pytest.raises(ValueError, match="n is 1000001; ask for 1 to 1000000"):
        EvaluateConfig(n=MAX_PROMPTS + 1)


def test_prompts_of_seed_zero_are_the_first_examples_of_the_split() -> None:
    assert [(p.index, p.seed) for p in EvaluateConfig(n=3).prompts("extract")] == [(0, 0), (1, 1), (2, 2)]


def test_half_of_the_prompts_have_sentences_that_train_never_uses() -> None:
    odd = [prompt.seed % 2 for prompt in EvaluateConfig(n=40, seed=3).prompts("extract")]
    assert sum(odd) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"tasks": ("extract", "chess")},
            f"task is 'chess'; choose from {', '.join(FAMILIES)}",
        ),
        ({"decoders": ("ar", "beam")}, "decoder is 'beam'; choose one of diffusion, ar, verified, mtp"),
        ({"sampler": "euler"}, "sampler is 'euler'; choose one of report, hf, jax, refine, ddim"),
        ({"steps": (4, 0)}, "steps is 0; "),
        ({"n": 0}, "n is 0; ask for 1 to 1000000"),
        ({"seed": -1}, "seed is -1; it must lie between 0"),
        ({"temperature": -0.5}, "temperature is -0.5; "),
        ({"tasks": ()}, "tasks or decoders is empty"),
        ({"decoders": ()}, "tasks or decoders is empty"),
        ({"presets": ("slow",)}, "preset is 'slow'; choose from fast, balanced, best"),
        ({"presets": ("fast", "fast")}, "presets names fast twice"),
        ({"presets": ("best",)}, "preset 'best' has a gate, but none is there for the blanks of infill"),
        (
            {"presets": ("balanced",), "tasks": ("extract",), "forms": ("grammar",)},
            "preset 'balanced' has a gate, but none is there for a grammar",
        ),
        ({"tasks": ("extract", "extract")}, "tasks names extract twice"),
        ({"decoders": ("ar", "ar")}, "decoders names ar twice"),
        ({"steps": (8, 4, 8)}, "steps names 8 twice"),
        ({"decoders": ("ar",), "steps": (4, 8)}, "steps is 4,8, but only diffusion has a canvas: drop it"),
        ({"decoders": ("ar",), "sampler": "hf"}, "sampler is hf, but only diffusion has a canvas: drop it"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EvaluateConfig(**options)


def test_a_preset_is_an_arm_behind_those_of_the_decoders() -> None:
    arms = EvaluateConfig(tasks=("extract",), decoders=("ar",), presets=("best", "fast")).arms
    assert [(arm.decoder, arm.preset) for arm in arms] == [("ar", None), ("diffusion", "best"), ("diffusion", "fast")]
    assert arms[1].params(max_tokens=9, seed=3) == preset("best", max_tokens=9, seed=3)
    assert EvaluateConfig(tasks=("extract",), decoders=(), presets=("fast",), temperature=0.5).arms == (
        Arm(decoder="diffusion", sampler=None, steps=None, temperature=0.5, preset="fast"),
    )


def test_the_largest_seed_still_makes_a_request() -> None:
    config = EvaluateConfig(seed=10**12, n=1)
    config.arms[0].params(max_tokens=1, seed=config.prompts("extract")[0].seed + MAX_PROMPTS - 1)


def test_both_forms_make_two_arms_of_each() -> None:
    arms = EvaluateConfig(tasks=("extract",), decoders=("diffusion", "ar"), forms=("free", "grammar")).arms
    assert [(arm.decoder, arm.form) for arm in arms] == [
        ("diffusion", "free"),
        ("diffusion", "grammar"),
        ("ar", "free"),
        ("ar", "grammar"),
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"forms": ("tight",)}, "forms is 'tight'; choose from free, grammar"),
        ({"forms": ("grammar", "grammar")}, "forms names grammar twice"),
        (
            {"forms": ("grammar",), "tasks": ("repair",)},
            "the prompts of repair declare no form .*extract, call, choose",
        ),
    ],
)
def test_a_form_that_no_prompt_declares_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        EvaluateConfig(**options)
