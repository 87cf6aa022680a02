"""A server of ours as an arm of a fleet: what comes through is what it answers itself."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.router.stand_ins import HELLO, Listed, fleet_of, remote
from tests.server.running import Running, make_backend, serving

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"day": {"enum": ["today"]}}, "required": ["day"]},
    },
}
SCHEMA = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"], "additionalProperties": False}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving(make_backend()) as running:
        yield running


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"logprobs": True, "top_logprobs": 2},
        {"tools": [TOOL], "tool_choice": "required"},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}},
    ],
)
def test_an_answer_through_a_fleet_is_the_servers_own(server: Running, more: dict[str, Any]) -> None:
    asked = {**HELLO, **more, "seed": 3, "max_tokens": 24}
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        own = http.post("/v1/chat/completions", json={**asked, "model": "lab", "stream": False}).json()

    async def go() -> list[dict[str, Any]]:
        async with fleet_of(Listed("far"), remote("far", server.url, context=4096, model="lab")) as fleet:
            opened = await fleet.open(asked, stream=True, usage=True)
            return [chunk async for chunk in opened.chunks]

    chunks = asyncio.run(go())
    said = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    message = own["choices"][0]["message"]
    assert "".join(delta.get("content") or "" for delta in said) == (message["content"] or "")
    calls = [call["function"] for delta in said for call in delta.get("tool_calls", ())]
    assert calls == [call["function"] for call in message.get("tool_calls", ())]
    assert bool(calls) == ("tools" in more)
    told = [choice["logprobs"] for chunk in chunks for choice in chunk["choices"] if choice["logprobs"]]
    scores = [score for each in told for score in each["content"]]
    assert scores == ((own["choices"][0]["logprobs"] or {}).get("content") or [])
    assert chunks[-1]["metrics"]["diffusion"] == own["metrics"]["diffusion"]
    assert chunks[-1]["metrics"]["prefill_time_ms"] > 0
    assert {**chunks[-1]["usage"], "prompt_tokens_details": 0} == {**own["usage"], "prompt_tokens_details": 0}
    assert "usage_mismatch" not in chunks[-1]["metrics"]
