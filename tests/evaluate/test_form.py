"""Answers held to what their prompts declare: which grammar that is, and that the right answer is in it."""

import json
from typing import Any

import pytest

from mezzotint.evaluate.config import DECLARING, EvaluateConfig
from mezzotint.evaluate.run import answer_prompts, grammar_of
from mezzotint.llm import LLM
from mezzotint.tasks import FAMILIES
from mezzotint.text.parse import encode_reply


@pytest.fixture(scope="module")
def lab() -> LLM:
    return LLM("lab")


@pytest.mark.parametrize("task", DECLARING)
def test_the_right_answer_is_in_the_grammar_of_its_prompt(lab: LLM, task: str) -> None:
    assert lab.tokenizer is not None
    for seed in range(30):
        example = FAMILIES[task].generate(seed, "test")
        place = grammar_of(lab, example).start()
        ids = [id for id in encode_reply(example.reply, lab.tokenizer) if id not in lab.limits.end_ids]
        assert place.count_valid(ids) == len(ids), lab.tokenizer.decode(ids, keep_control=True)
        place.consume(ids)
        assert place.is_accepting


def test_an_arm_of_the_form_grammar_writes_valid_json_and_counts_what_it_forced(lab: LLM) -> None:
    config: Any = {"tasks": ("extract",), "decoders": ("diffusion",), "n": 2, "forms": ("free", "grammar")}
    answers = list(answer_prompts(lab, EvaluateConfig(**config)))
    assert {answer.arm.form for answer in answers} == {"free", "grammar"}
    for answer in answers:
        forced = answer.completion.receipt.forced_tokens
        assert answer.record()["form"] == answer.arm.form
        if answer.arm.form == "grammar":
            assert isinstance(json.loads(answer.completion.text), dict)
            assert forced > 0
        else:
            assert forced == 0
