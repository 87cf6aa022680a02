"""OpenAI's own package: sync and async, structured outputs, streaming helpers, tools, errors, and cut streams."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from openai._streaming import SSEDecoder
from pydantic import BaseModel

from mezzotint.tasks import FAMILIES
from tests.e2e.conftest import Served

HELLO: Any = [{"role": "user", "content": "Hello"}]


class Payment(BaseModel):
    payee: str
    amount: float


class get_time(BaseModel):  # noqa: N801 (the name of the tool)
    """The time somewhere."""

    city: str


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[OpenAI]:
    with OpenAI(base_url=served.v1, api_key="none", max_retries=0) as made:
        yield made


def test_a_known_task_is_answered_rightly_by_both_decoders(client: OpenAI) -> None:
    family = FAMILIES["extract"]
    right = 0
    for seed in range(5):
        example = family.generate(seed, "test")
        messages: Any = [dict(message) for message in example.messages]
        for model in ("lab", "lab:ar"):
            answer = client.chat.completions.create(
                model=model, messages=messages, max_tokens=64, seed=1, temperature=0
            )
            right += answer.choices[0].message.content == example.answer
    assert right >= 8


def test_a_stream_joined_is_the_whole_answer(client: OpenAI) -> None:
    asked: Any = {"model": "lab", "messages": HELLO, "max_tokens": 64, "seed": 1}
    whole = client.chat.completions.create(**asked)
    stream = client.chat.completions.create(stream=True, **asked)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == whole.choices[0].message.content
    with client.chat.completions.stream(**asked) as helper:
        kinds = {event.type for event in helper}
        final = helper.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content == whole.choices[0].message.content


def test_structured_outputs_parse_whatever_is_asked(client: OpenAI) -> None:
    parsed = client.chat.completions.parse(model="lab", messages=HELLO, response_format=Payment, max_tokens=128, seed=1)
    assert isinstance(parsed.choices[0].message.parsed, Payment)
    tool: Any = openai.pydantic_function_tool(get_time)
    called = client.chat.completions.parse(
        model="lab:ar", messages=HELLO, tools=[tool], tool_choice="required", max_tokens=200, seed=1
    )
    calls = called.choices[0].message.tool_calls
    assert calls
    assert all(isinstance(call.function.parsed_arguments, get_time) for call in calls)
    response = client.responses.parse(model="lab", input="Hello", text_format=Payment, max_output_tokens=128)
    assert isinstance(response.output_parsed, Payment)


def test_many_at_once_each_get_their_own(served: Served) -> None:
    async def ask_all() -> list[str]:
        async with AsyncOpenAI(base_url=served.v1, api_key="none", max_retries=0) as client:

            async def ask(at: int) -> str:
                told: Any = [{"role": "user", "content": f"Repeat the line.\nLine {at}"}]
                model = ("lab", "lab:ar", "lab:verified")[at % 3]
                answer = await client.chat.completions.create(model=model, messages=told, max_tokens=32, temperature=0)
                return answer.choices[0].message.content or ""

            return await asyncio.gather(*(ask(at) for at in range(18)))

    answers = asyncio.run(ask_all())
    assert sum(f"{at}" in answer for at, answer in enumerate(answers)) >= 12


def test_errors_are_the_packages_own(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="temperature is 99"):
        client.chat.completions.create(model="lab", messages=HELLO, temperature=999)
    with pytest.raises(openai.NotFoundError, match="'gpt-5' is not here"):
        client.chat.completions.create(model="gpt-5", messages=HELLO)


def test_log_probabilities_are_read(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="lab:ar", messages=HELLO, max_tokens=6, logprobs=True, top_logprobs=3, temperature=0
    )
    told = answer.choices[0].logprobs
    assert told is not None
    assert told.content
    for token in told.content:
        assert token.logprob == pytest.approx(token.top_logprobs[0].logprob)
        assert len(token.top_logprobs) == 3


def test_a_stream_may_be_cut_at_every_byte(served: Served) -> None:
    asked = {"model": "lab", "messages": HELLO, "max_tokens": 64, "seed": 1, "stream": True}
    raw = httpx2.post(f"{served.v1}/chat/completions", json=asked, timeout=60).content
    whole = [event.data for event in SSEDecoder().iter_bytes(iter([raw]))]
    assert whole[-1] == "[DONE]"
    assert all(json.loads(data)["object"] == "chat.completion.chunk" for data in whole[:-1])
    for cut in range(1, len(raw)):
        assert [event.data for event in SSEDecoder().iter_bytes(iter([raw[:cut], raw[cut:]]))] == whole
    bytewise = (raw[at : at + 1] for at in range(len(raw)))
    assert [event.data for event in SSEDecoder().iter_bytes(bytewise)] == whole


def test_plain_http_in_a_crowd_is_answered_each_time(served: Served) -> None:
    async def crowd() -> list[int]:
        async with httpx2.AsyncClient(base_url=served.url, timeout=120) as http:
            body = {"model": "lab", "messages": HELLO, "max_tokens": 16}
            answers = await asyncio.gather(*(http.post("/v1/chat/completions", json=body) for _ in range(60)))
            return [answer.status_code for answer in answers]

    assert asyncio.run(crowd()) == [200] * 60
