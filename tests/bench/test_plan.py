"""Estimates of decoders: what they are made of, what they must grow with, and what is refused."""

from dataclasses import replace

import pytest

from mezzotint.bench.accelerators import ACCELERATORS
from mezzotint.bench.agreement import report_question
from mezzotint.bench.footprint import PRECISIONS
from mezzotint.bench.habits import REPORT
from mezzotint.bench.operators import Setting
from mezzotint.bench.plan import Question, at, estimate, steps_a_canvas
from tests.bench.small import small

QUESTION = report_question()


def test_a_decoders_tokens_a_second_are_its_tokens_by_its_time() -> None:
    told = estimate(at(QUESTION, 4))
    ar, mtp, diffusion = told["ar"], told["mtp"], told["diffusion"]
    assert ar.tokens_per_s == pytest.approx(4 / ar.step.seconds)
    assert mtp.tokens_per_s == pytest.approx(4 * (1 + REPORT.kept) / mtp.step.seconds)
    assert diffusion.commit is not None
    assert diffusion.steps is not None
    taken = 4 * diffusion.steps * diffusion.step.seconds + 3 * diffusion.commit.seconds
    assert diffusion.tokens_per_s == pytest.approx(4 * 1024 / taken)


def test_steps_and_commits_make_the_tokens_a_forward() -> None:
    steps = steps_a_canvas(QUESTION)
    assert 1024 / (4 * steps + 3) == pytest.approx(16)
    assert steps_a_canvas(replace(QUESTION, steps=16)) == 16
    fixed = estimate(replace(QUESTION, steps=16))["diffusion"]
    assert fixed.steps == 16
    assert fixed.tokens_per_step == 16


def test_a_step_is_its_operators_and_the_wait() -> None:
    step = estimate(QUESTION)["diffusion"].step
    assert step.seconds == pytest.approx(sum(step.operators_s.values()) + step.host_s)
    assert step.bytes > 18e9  # the weights that a canvas reads in FP8, and its logits
    assert 2.2e12 < step.flop < 3e12  # 1.97 TFLOP of the network, 0.38 of the soft embedding, and attention


def test_longer_contexts_and_fuller_batches_take_longer_a_step() -> None:
    for name in ("ar", "mtp", "diffusion"):
        by_context = [estimate(replace(QUESTION, context=c))[name].step.seconds for c in (512, 4096, 65_536)]
        assert by_context == sorted(set(by_context))
        batches = [estimate(at(QUESTION, c))[name] for c in (1, 4, 16, 64)]
        assert [each.step.seconds for each in batches] == sorted({each.step.seconds for each in batches})
        assert [each.tokens_per_s for each in batches] == sorted({each.tokens_per_s for each in batches})


def test_smaller_weights_and_faster_memory_make_steps_shorter() -> None:
    setting = QUESTION.setting
    wide = estimate(replace(QUESTION, setting=replace(setting, precision=PRECISIONS["bf16"])))
    fast = estimate(replace(QUESTION, setting=replace(setting, accelerator=ACCELERATORS["h200"])))
    for name, each in estimate(QUESTION).items():
        assert fast[name].step.seconds < each.step.seconds < wide[name].step.seconds


def test_verified_takes_its_draft_and_one_encode_and_keeps_what_is_stated() -> None:
    told = estimate(replace(QUESTION, verified=(4, 100.0)))
    verified, diffusion = told["verified"], told["diffusion"]
    assert verified.step.seconds > 4 * diffusion.step.seconds
    assert verified.step.seconds < 5 * diffusion.step.seconds
    assert verified.tokens_per_s == pytest.approx(100 / verified.step.seconds)
    assert "verified" not in estimate(QUESTION)


def test_only_decoders_that_a_model_has_are_told() -> None:
    assert "mtp" not in estimate(replace(QUESTION, drafter=None))
    dense = small(family="gemma4", num_experts=0, top_k_experts=0, moe_intermediate_size=0)
    setting = Setting(config=dense, precision=PRECISIONS["bf16"], accelerator=ACCELERATORS["h100"])
    assert list(estimate(Question(setting=setting, habits=REPORT, context=9, output=9))) == ["ar"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"concurrency": 0}, "--concurrency is 0"),
        ({"output": 0}, "--output is 0"),
        ({"context": 262_144}, "exceed the model's 262144 positions"),
        ({"steps": 0.5}, "--steps is 0.5"),
        ({"verified": (0, 9.0)}, "--verified-steps is 0"),
        ({"verified": (4, 257.0)}, "--verified-keeps is 257"),
        ({"concurrency": 200}, "--concurrency is 200, and 142 requests of 5120 tokens under ar"),
        ({"habits": replace(REPORT, tokens_per_forward=200)}, "--tokens-per-forward 200 leaves"),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(replace(QUESTION, **change))  # type: ignore[arg-type]
