"""Which prompts reach which arm, in which order and with which options; and what is kept of an answer."""

import json
from typing import Any, cast

import pytest

from mezzotint.evaluate.config import EvaluateConfig
from mezzotint.evaluate.run import Answer, answer_limit, answer_prompts
from mezzotint.llm import LLM, Completion
from mezzotint.tasks import FAMILIES, Example
from mezzotint.tasks.family import Family
from mezzotint.text.prompt import Chat
from tests.evaluate.canned import Call, CannedLLM, completion, say_nothing


def run(llm: CannedLLM, **options: Any) -> list[Answer]:
    return list(answer_prompts(cast(LLM, llm), EvaluateConfig(**options)))


def test_every_arm_answers_the_same_held_out_prompts() -> None:
    llm = CannedLLM(say_nothing)
    run(llm, tasks=("extract", "parallel_rule"), n=3, seed=5)
    asked: dict[str, list[Any]] = {"ar": [], "diffusion": []}
    for call in llm.calls[1:]:
        asked[call.params.decoder].append(call.prompt)
    expected = [
        Chat(messages=FAMILIES[task].generate(5_000_000 + index, "test").messages)
        for task in ("extract", "parallel_rule")
        for index in range(3)
    ]
    assert asked == {"ar": expected, "diffusion": expected}


def test_arms_take_turns_at_going_first() -> None:
    llm = CannedLLM(say_nothing)
    run(llm, tasks=("extract",), n=3, steps=(4, 8))
    order = [call.params.steps for call in llm.calls[1:]]
    assert order == [4, 8, None, None, 8, 4, 4, 8, None]


def test_the_answer_that_warms_up_is_not_reported() -> None:
    llm = CannedLLM(say_nothing)
    answers = run(llm, tasks=("extract",), n=2)
    assert len(answers) == 4
    assert len(llm.calls) == 5
    assert llm.calls[0] == llm.calls[1]


def test_each_answer_has_a_seed_of_its_own_which_all_arms_share() -> None:
    llm = CannedLLM(say_nothing)
    run(llm, tasks=("extract",), n=3, seed=2)
    assert sorted(call.params.seed or 0 for call in llm.calls[1:]) == [
        2_000_000,
        2_000_000,
        2_000_001,
        2_000_001,
        2_000_002,
        2_000_002,
    ]


@pytest.mark.parametrize(
    ("characters", "limit"),
    [(1, 16), (7, 16), (8, 24), (15, 24), (16, 32)],  # + end of turn, in canvases of 8, and a canvas more
)
def test_an_answer_may_be_a_canvas_longer_than_the_right_one(characters: int, limit: int) -> None:
    example = Example(family="extract", messages=(), answer="x" * characters)
    assert answer_limit(cast(LLM, CannedLLM(say_nothing)), example) == limit


def test_every_arm_gets_the_limit_of_its_prompt() -> None:
    llm = CannedLLM(say_nothing)
    run(llm, tasks=("parallel_rule",), n=1)
    assert [call.params.max_tokens for call in llm.calls] == [32 + 8] * 3  # 24 bits and the end of turn


def test_the_verifier_of_the_task_decides() -> None:
    def know_two(call: Call) -> Completion:
        seed = call.params.seed or 0
        right = FAMILIES["parallel_rule"].generate(seed, "test").answer
        return completion(f" {right}\n" if seed < 2 else right[:-1], call.params)

    answers = run(CannedLLM(know_two), tasks=("parallel_rule",), decoders=("ar",), n=4)
    assert [answer.accepted for answer in answers] == [True, True, False, False]


def test_a_canvas_sees_both_sides_of_a_blank_and_ar_only_what_is_before(monkeypatch: pytest.MonkeyPatch) -> None:
    example = Example(family="infill", messages=(), answer="b", begins="a", ends="c", thinking=True, tools=({},))
    judged: list[tuple[str, str]] = []

    def judge(name: str) -> Any:
        return lambda example, reply: judged.append((name, reply.content)) is None

    family = Family("infill", lambda seed, split: example, judge("blank"), judge("continuation"))
    monkeypatch.setitem(FAMILIES, "infill", family)
    llm = CannedLLM(lambda call: completion(call.params.decoder, call.params))
    run(llm, tasks=("infill",), n=1)
    shared: dict[str, Any] = {"messages": (), "begins": "a", "thinking": True, "tools": ({},)}
    seen = {call.params.decoder: call.prompt for call in llm.calls}
    assert seen == {"diffusion": Chat(ends="c", **shared), "ar": Chat(**shared)}
    assert judged[1:] == [("blank", "diffusion"), ("continuation", "ar")]
    assert answer_limit(cast(LLM, llm), example) == 16


def test_a_record_tells_prompt_arm_texts_and_cost_in_json() -> None:
    def ramble(call: Call) -> Completion:
        return completion("01", call.params, steps=(4, 2), encodes=1, tokens=12, reason="length")

    options = {"tasks": ("parallel_rule",), "decoders": ("diffusion",), "steps": (4,), "temperature": 0.5}
    [answer] = run(CannedLLM(ramble), n=1, seed=1, **options)
    record = json.loads(json.dumps(answer.record()))
    expected = {
        "task": "parallel_rule",
        "index": 0,
        "seed": 1_000_000,
        "decoder": "diffusion",
        "sampler": "report",
        "temperature": 0.5,
        "step_budget": 4,
        "denoise_steps": [4, 2],
        "encodes": 1,
        "forwards": 7,
        "tokens_per_forward": 12 / 7,
        "budget_hits": 1,
        "output_tokens": 12,
        "prefill_s": 0.25,
        "generation_s": 0.5,
        "finish_reason": "length",
        "accepted": False,
        "text": "01",
        "expected": FAMILIES["parallel_rule"].generate(1_000_000, "test").answer,
    }
    assert {name: record[name] for name in expected} == expected
