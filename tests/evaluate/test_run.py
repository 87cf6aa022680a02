"""Which prompts reach which arm, in which order and with which options; and what is kept of an answer."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

import mezzotint
from mezzotint.evaluate.config import EvaluateConfig
from mezzotint.evaluate.run import Answer, answer_limit, answer_prompts
from mezzotint.llm import LLM, Completion
from mezzotint.tasks import FAMILIES, Example
from mezzotint.tasks.family import Family
from mezzotint.text.detect import Finding
from mezzotint.text.parse import Reply, ToolCall, encode_reply, parse_reply
from mezzotint.text.prompt import Chat
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import FinishReason
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
        def accept(example: Example, reply: Reply) -> bool:
            judged.append((name, reply.content))
            return True

        return accept

    family = Family("infill", lambda seed, split: example, judge("blank"), judge("continuation"))
    monkeypatch.setitem(FAMILIES, "infill", family)
    llm = CannedLLM(lambda call: completion(call.params.decoder, call.params))
    run(llm, tasks=("infill",), n=1)
    shared: dict[str, Any] = {"messages": (), "begins": "a", "thinking": True, "tools": ({},)}
    seen = {call.params.decoder: call.prompt for call in llm.calls}
    assert seen == {"diffusion": Chat(ends="c", **shared), "ar": Chat(**shared)}
    assert judged[1:] == [("blank", "diffusion"), ("continuation", "ar")]
    assert answer_limit(cast(LLM, llm), example) == 16


def answer_alike(text: str, reason: FinishReason = "stop", reply: Reply | None = None, **options: Any) -> Answer:
    """How one canvas that says `text` is reported."""
    llm = CannedLLM(lambda call: completion(text, call.params, tokens=len(text), reason=reason, **options))
    if reply is not None:
        llm.parse = lambda completion: reply  # type: ignore[method-assign]
    [answer] = run(llm, tasks=("parallel_rule",), decoders=("diffusion",), n=1)
    return answer


def test_repeated_words_are_found_at_their_place_and_told_from_text_said_again_behind_a_border() -> None:
    assert answer_alike("of the the cat").findings == (Finding("stutter", 3, 10),)
    assert answer_alike("of the the cat", steps=(3, 3)).findings == (Finding("seam", 3, 10),)


def test_thoughts_are_not_inspected_and_move_no_border() -> None:
    tokenizer = Tokenizer.from_directory(Path(mezzotint.__file__).parent / "checkpoints" / "lab")
    ids = encode_reply(Reply("It was was so.", reasoning="so so so"), tokenizer)
    behind = len(tokenizer.encode_text(" was so."))

    def think(call: Call) -> Completion:
        said = completion("", call.params)
        blocks = (len(ids) - behind, behind)
        return replace(said, token_ids=ids, receipt=replace(said.receipt, block_tokens=blocks))

    llm = CannedLLM(think)
    llm.parse = lambda completion: parse_reply(completion.token_ids, tokenizer)  # type: ignore[method-assign]
    llm.tokenizer = tokenizer  # type: ignore[assignment]
    [answer] = run(llm, tasks=("parallel_rule",), decoders=("diffusion",), n=1)
    assert answer.findings == (Finding("seam", 3, 10),)


def test_an_answer_without_text_is_empty_unless_it_calls_a_tool() -> None:
    calls = (ToolCall("look", {}),)
    assert answer_alike(" ").findings == (Finding("empty", 0, 1),)
    assert answer_alike("call:look{}", reply=Reply("", calls=calls)).findings == ()
    assert answer_alike("x", reply=Reply("look look", calls=calls)).findings == (Finding("stutter", 0, 9),)


def test_a_bracket_is_missed_only_where_the_whole_answer_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer_alike("f(a").findings == (Finding("bracket", 1, 2),)
    assert answer_alike("f(a", reason="length").findings == ()
    for sides in ({"begins": "x = "}, {"ends": ")"}):
        blank = FAMILIES["parallel_rule"]._replace(
            generate=lambda seed, split, sides=sides: Example(family="blank", messages=(), answer="a(", **sides)  # type: ignore[misc]
        )
        monkeypatch.setitem(FAMILIES, "parallel_rule", blank)
        assert answer_alike("f(a").findings == ()


@pytest.mark.parametrize("place", ["prompt", "answer"])
def test_what_prompt_or_right_answer_repeat_is_no_fault(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    said = {"prompt": "say of", "answer": "of", place: "of of"}
    example = Example(family="f", messages=({"role": "user", "content": said["prompt"]},), answer=said["answer"])
    family = FAMILIES["parallel_rule"]._replace(generate=lambda seed, split: example)
    monkeypatch.setitem(FAMILIES, "parallel_rule", family)
    assert answer_alike("of of and it it").findings == (Finding("stutter", 10, 15),)


def test_a_record_tells_prompt_arm_texts_and_cost_in_json() -> None:
    def ramble(call: Call) -> Completion:
        return completion("on on 01", call.params, steps=(4, 2), encodes=1, tokens=12, reason="length")

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
        "findings": [{"kind": "stutter", "start": 0, "end": 5}],
        "text": "on on 01",
        "expected": FAMILIES["parallel_rule"].generate(1_000_000, "test").answer,
    }
    assert {name: record[name] for name in expected} == expected
