"""Questions to a checkpoint in this process, and that a server with the same weights gives the same answers."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from mezzotint.evaluate.config import Arm
from mezzotint.evaluate.endpoint import EndpointAnswerer, EndpointOptions
from mezzotint.evaluate.local import LocalAnswerer, write_message
from mezzotint.evaluate.question import AnswerError, Question, Said
from mezzotint.evaluate.suites import read_suite
from mezzotint.llm import LLM
from mezzotint.text.parse import Reply, ToolCall
from mezzotint.text.prompt import Chat
from tests.evaluate.asked import question
from tests.evaluate.canned import CannedLLM, completion, say_nothing
from tests.server.running import make_backend, serving

ARM = Arm(decoder="diffusion", sampler=None, steps=4, temperature=1.0)


def answer(llm: Any, asked: Question, arm: Arm = ARM, seed: int = 3) -> Said:
    return asyncio.run(LocalAnswerer(cast(LLM, llm), "lab", arm).answer(asked, seed))


def test_a_question_is_asked_with_the_arms_options_and_its_own_limit() -> None:
    llm = CannedLLM(say_nothing)
    tools = ({"type": "function", "function": {"name": "f"}},)
    answer(llm, question("a", tools=tools, thinking=True))
    [(prompt, params)] = llm.calls
    assert prompt == Chat(messages=({"role": "user", "content": "question a"},), tools=tools, thinking=True)
    assert (params.decoder, params.steps, params.max_tokens, params.seed) == ("diffusion", 4, 9, 3)


def test_an_answer_brings_its_borders_and_what_it_took() -> None:
    def two_blocks(call: Any) -> Any:
        return completion("abcdefgh", call.params, steps=(3, 4), encodes=1, reason="length")

    llm = CannedLLM(two_blocks)
    llm.tokenizer = LLM("lab").tokenizer  # type: ignore[assignment]
    said = answer(llm, question("a"))
    assert said.finish_reason == "length"
    assert len(said.seams) == 1
    cost = said.cost
    assert (cost.seconds, cost.forwards, cost.steps, cost.sampler) == (0.75, 8, (3, 4), "report")
    assert (cost.output_tokens, cost.step_budget, cost.budget_hits) == (8, 4, 1)


def test_what_a_checkpoint_refuses_is_an_answer_that_is_missing() -> None:
    def refuse(call: Any) -> Any:
        raise ValueError("the prompt is too long")

    with pytest.raises(AnswerError, match="the prompt is too long"):
        answer(CannedLLM(refuse), question("a"))


def test_a_reply_is_written_in_openais_form() -> None:
    message = write_message(Reply("yes", "hm", (ToolCall("f", {"a": 1}),)))
    assert message == {
        "role": "assistant",
        "content": "yes",
        "reasoning_content": "hm",
        "tool_calls": [{"id": "call_0", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
    }
    assert write_message(Reply("yes")) == {"role": "assistant", "content": "yes"}


@pytest.fixture(scope="module")
def lab() -> LLM:
    return LLM("lab", dtype="float32")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(make_backend()) as running:
        yield f"{running.url}/v1"


@pytest.mark.parametrize(
    ("name", "form"), [("extract", "free"), ("extract", "grammar"), ("call", "grammar"), ("choose", "grammar")]
)
def test_a_server_gives_the_answers_that_its_checkpoint_gives_here(lab: LLM, url: str, name: str, form: str) -> None:
    suite = read_suite(name, data=None, n=1, seed=2, max_tokens=64)

    async def both(asked: Question) -> tuple[Said, Said]:
        async with EndpointAnswerer(url, "lab", "none", EndpointOptions(steps=4, form=form)) as remote:
            here = await LocalAnswerer(lab, "lab", replace(ARM, form=form)).answer(asked, 9)
            return here, await remote.answer(asked, 9)

    for asked in suite.questions:
        here, there = asyncio.run(both(asked))
        assert there.message.get("content") or there.message["tool_calls"]
        assert (here.message["content"] or None) == there.message.get("content")
        calls = [each.message.get("tool_calls") or [] for each in (here, there)]
        assert [call["function"]["name"] for call in calls[0]] == [call["function"]["name"] for call in calls[1]]
        assert here.finish_reason == there.finish_reason or calls[0]
        assert replace(here.cost, seconds=0.0) == replace(there.cost, seconds=0.0)
        verdicts = [asyncio.run(asked.verifier.verify(asked.messages, each.message)) for each in (here, there)]
        assert verdicts[0] == verdicts[1]


def test_a_blank_is_filled_alike_here_and_there(lab: LLM, url: str) -> None:
    asked = question("a", messages=(), around=("def add(a, b):\n", "    return c\n"), max_tokens=12)

    async def remote() -> Said:
        async with EndpointAnswerer(url, "lab", "none", EndpointOptions(steps=4)) as answerer:
            return await answerer.answer(asked, 9)

    here, there = answer(lab, asked, seed=9), asyncio.run(remote())
    assert here.message == there.message
    assert there.cost.steps == here.cost.steps != ()
