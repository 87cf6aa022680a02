"""The arithmetic of a row, checked on answers whose costs are known."""

from typing import Any, cast

import pytest

from mezzotint.evaluate.config import EvaluateConfig
from mezzotint.evaluate.interval import ratio_interval, wilson_interval
from mezzotint.evaluate.run import answer_prompts
from mezzotint.evaluate.score import Row, score
from mezzotint.llm import LLM, Completion
from mezzotint.tasks import FAMILIES
from tests.evaluate.canned import Call, CannedLLM, completion, say_nothing

ONE_TASK = {"tasks": ("parallel_rule",)}


def rows_of(reply: Any, **options: Any) -> list[Row]:
    return score(answer_prompts(cast(LLM, CannedLLM(reply)), EvaluateConfig(**options)))


def four_answers(call: Call) -> Completion:
    """Under diffusion: two right answers of 25 tokens, one wrong and cut at 40, one empty."""
    seed = call.params.seed or 0
    right = FAMILIES["parallel_rule"].generate(seed, "test").answer
    if call.params.decoder == "ar":
        return completion(right, call.params, encodes=25, tokens=25)
    if seed < 2:
        return completion(right, call.params, steps=(10, 5, 48, 1), encodes=3, tokens=25)
    if seed == 2:
        return completion("0", call.params, steps=(48,) * 5, encodes=4, tokens=40, reason="length")
    return completion(" ", call.params, steps=(3,), tokens=1)


def test_a_row_adds_up_its_answers() -> None:
    [row, _] = rows_of(four_answers, tasks=("parallel_rule",), n=4)
    tokens, forwards, blocks = 25 + 25 + 40 + 1, 67 + 67 + 244 + 3, 4 + 4 + 5 + 1
    assert row == Row(
        task="parallel_rule",
        decoder="diffusion",
        sampler="report",
        temperature=1.0,
        form="free",
        step_budget=48,
        n=4,
        pass_rate=0.5,
        interval=wilson_interval(2, 4),
        tokens_per_forward=tokens / forwards,
        tokens_per_forward_interval=ratio_interval([25, 25, 40, 1], [67, 67, 244, 3]),
        steps=(64 + 64 + 240 + 3) / blocks,
        seconds=0.75,
        prefill_s=0.25,
        generation_s=0.5,
        output_tokens=tokens / 4,
        overridden=0.0,
        forced=0.0,
        budget_hits=(1 + 1 + 5) / blocks,
        stutters=0.0,
        seams=0.0,
        loops=0.0,
        empty=0.25,
        truncated=0.25,
    )


def test_an_answer_counts_once_for_each_kind_of_repetition() -> None:
    texts = {0: "it is of of the the same", 1: "on and " * 20, 2: "the cat\ncat sat", 3: "all is well"}

    def repeat(call: Call) -> Completion:
        text = texts[call.params.seed or 0]
        return completion(text, call.params, steps=(1,) * len(text), tokens=len(text))

    [row] = rows_of(repeat, tasks=("parallel_rule",), decoders=("diffusion",), n=4)
    assert (row.stutters, row.seams, row.loops, row.empty) == (0.0, 0.5, 0.25, 0.0)
    texts[2] = "he and he and he was was there"
    [_, row] = rows_of(lambda call: completion(texts[call.params.seed or 0], call.params, encodes=1), n=4, **ONE_TASK)
    assert (row.stutters, row.seams, row.loops, row.empty) == (0.5, 0.0, 0.25, 0.0)


def test_ar_takes_a_forward_a_token_and_no_step() -> None:
    [_, row] = rows_of(four_answers, tasks=("parallel_rule",), n=4)
    assert (row.decoder, row.sampler, row.temperature, row.step_budget) == ("ar", None, 0.0, 0)
    assert (row.pass_rate, row.tokens_per_forward, row.tokens_per_forward_interval) == (1.0, 1.0, (1.0, 1.0))
    assert (row.steps, row.budget_hits) == (0.0, 0.0)


@pytest.mark.parametrize("steps", [(), (4, 48)])
def test_there_is_one_row_a_task_and_arm_in_the_order_asked_for(steps: tuple[int, ...]) -> None:
    rows = rows_of(
        lambda call: completion("", call.params, encodes=1),
        tasks=("parallel_rule", "extract"),
        decoders=("ar", "diffusion"),
        n=3,
        steps=steps,
    )
    arms = [("ar", 0), *(("diffusion", budget) for budget in steps or (48,))]
    expected = [(task, *arm, 3) for task in ("parallel_rule", "extract") for arm in arms]
    assert [(row.task, row.decoder, row.step_budget, row.n) for row in rows] == expected


def test_nothing_answered_is_no_row() -> None:
    assert score([]) == []


def test_an_answer_without_a_forward_has_no_ratio() -> None:
    with pytest.raises(ValueError, match="each at least 1"):
        rows_of(say_nothing, tasks=("extract",), n=1)
