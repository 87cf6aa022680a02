"""Questions to a server: what it is sent, what is kept of its answer, and what is done when it does not answer."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import stamina

from mezzotint.evaluate import endpoint
from mezzotint.evaluate.endpoint import EndpointAnswerer, EndpointOptions, when_again
from mezzotint.evaluate.question import AnswerError, Question, Said
from tests.evaluate.asked import question
from tests.evaluate.scripted import Reply, chat, scripted


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=4, cap=True):
        yield


def put(reply: Reply, asked: Question, **options: Any) -> tuple[Said, list[tuple[str, dict[str, Any]]]]:
    async def answer(url: str) -> Said:
        async with EndpointAnswerer(url, "m", "none", EndpointOptions(**options)) as answerer:
            return await answerer.answer(asked, 5)

    with scripted(reply) as server:
        return asyncio.run(answer(server.url)), server.asked


def test_a_question_is_sent_as_it_is_and_options_only_where_they_are_given() -> None:
    _, [(path, body)] = put(lambda path, body: chat("hi"), question("a"))
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "question a"}],
        "max_tokens": 9,
        "seed": 5,
    }
    options = {"decoder": "ar", "sampler": "hf", "steps": 4, "preset": "fast", "temperature": 0.5}
    _, [(_, body)] = put(lambda path, body: chat("hi"), question("a", thinking=True), **options)
    assert body["x_diffusion"] == {"sampler": "hf", "steps": 4, "preset": "fast"}
    assert body["x_route"] == {"decoder": "ar"}
    assert body["chat_template_kwargs"] == {"enable_thinking": True}
    assert body["temperature"] == 0.5


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        (
            {"schema": {"type": "object"}},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True},
                }
            },
        ),
        ({"choices": ("a", "b")}, {"structured_outputs": {"choice": ["a", "b"]}}),
        ({"tools": (TOOL,)}, {"tools": [TOOL]}),
    ],
)
def test_an_answer_is_held_to_its_form_only_if_that_is_asked_for(
    declared: dict[str, Any], sent: Mapping[str, Any]
) -> None:
    _, [(_, body)] = put(lambda path, body: chat("hi"), question("a", **declared), form="grammar")
    assert {name: body.get(name) for name in sent} == sent
    _, [(_, free)] = put(lambda path, body: chat("hi"), question("a", **declared))
    assert free.keys() & {"response_format", "structured_outputs"} == set()
    with pytest.raises(ValueError, match="question a declares none"):
        put(lambda path, body: chat("hi"), question("a"), form="grammar")


def test_a_blank_is_sent_with_both_sides() -> None:
    blank = question("a", messages=(), around=("be", "hind"))
    metrics = {"diffusion": {"block_tokens": [4, 2], "forwards": 3}}
    filled = {"middles": [{"text": "middle", "tokens": 2, "finish_reason": "length"}], "metrics": metrics}
    said, [(path, body)] = put(lambda path, body: (200, filled), blank, steps=4)
    assert path == "/v1/infill"
    assert body["document"] == ["be", {"max_tokens": 9}, "hind"]
    assert (body["x_diffusion"], body["seed"]) == ({"steps": 4}, 5)
    assert (said.message["content"], said.finish_reason, said.metrics) == ("middle", "length", metrics)
    assert (said.cost.output_tokens, said.cost.forwards) == (6, 3)


def test_a_server_that_has_no_infill_completes_before_a_suffix() -> None:
    choice = {"index": 0, "text": "middle", "finish_reason": "stop", "logprobs": None}
    whole = {"id": "1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}

    def complete(path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        return (200, whole) if path == "/v1/completions" else (404, {"error": {"message": "nothing here"}})

    said, [_, (_, body)] = put(complete, question("a", messages=(), around=("be", "hind")))
    assert (body["prompt"], body["suffix"], body["max_tokens"]) == ("be", "hind", 9)
    assert (said.message["content"], said.finish_reason) == ("middle", "stop")


def test_metrics_calls_and_thoughts_of_an_answer_are_kept() -> None:
    work = {"forwards": 7, "denoise_steps": [3, 3], "sampler": "report", "step_budget": 16, "budget_hits": 1}
    metrics = {"diffusion": work, "queue_time_ms": 1.5}
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    more = {"metrics": metrics, "message": {"tool_calls": [call], "reasoning_content": "hm"}}
    said, _ = put(lambda path, body: chat("", **more), question("a"))
    assert said.metrics == metrics
    assert said.message["tool_calls"] == [call]
    assert said.message["reasoning_content"] == "hm"
    cost = said.cost
    assert (cost.prompt_tokens, cost.output_tokens, cost.forwards, cost.steps) == (3, 5, 7, (3, 3))
    assert (cost.sampler, cost.step_budget, cost.budget_hits) == ("report", 16, 1)
    assert cost.seconds > 0


def test_a_server_that_tells_no_metrics_has_none() -> None:
    said, _ = put(lambda path, body: chat("hi"), question("a"))
    assert (said.metrics, said.cost.forwards, said.cost.step_budget, said.cost.steps) == (None, None, None, ())


def test_what_may_pass_is_tried_again_and_at_last_told() -> None:
    tries = 0

    def stumble(path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        nonlocal tries
        tries += 1
        return chat("hi") if tries == 3 else (503, {"error": {"message": "full"}})

    said, asked = put(stumble, question("a"))
    assert (said.message["content"], len(asked)) == ("hi", 3)
    with pytest.raises(AnswerError, match="full"):
        put(lambda path, body: (429, {"error": {"message": "full"}}), question("a"))


def test_a_server_that_is_full_says_when_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[bool | float] = []

    def note(error: Exception) -> bool | float:
        waits.append(when_again(error))
        return waits[-1]

    monkeypatch.setattr(endpoint, "when_again", note)
    for status in (429, 500, 400):
        with pytest.raises(AnswerError):
            put(lambda path, body, status=status: (status, {}), question("a"))  # type: ignore[misc]
    assert waits == [7.0] * 4 + [True] * 4 + [False]


@pytest.mark.parametrize(("status", "kind"), [(400, AnswerError), (401, ValueError), (404, ValueError)])
def test_what_is_wrong_is_told_at_once(status: int, kind: type[Exception]) -> None:
    tries = 0

    def refuse(path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        nonlocal tries
        tries += 1
        return status, {"error": {"message": "wrong"}}

    with pytest.raises(kind, match="wrong"):
        put(refuse, question("a"))
    assert tries == 1


def test_an_answer_without_choices_is_an_error() -> None:
    with pytest.raises(AnswerError, match="without choices"):
        put(lambda path, body: (200, {**chat("")[1], "choices": []}), question("a"))


@pytest.mark.parametrize(
    "told",
    [
        [1, 2],
        {"choices": [{"message": None}]},
        chat("", message={"content": 5})[1],
        chat("", message={"tool_calls": [{"id": "1", "type": "function", "function": None}]})[1],
        {**chat("yes")[1], "metrics": {"diffusion": {"denoise_steps": 7}}},
    ],
)
def test_an_answer_of_another_form_is_an_error_and_no_crash(told: Any) -> None:
    with pytest.raises(AnswerError, match="has not the form of OpenAI's protocol"):
        put(lambda path, body: (200, told), question("a"))
