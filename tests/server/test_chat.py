"""Chats over HTTP: streams and whole replies say the same, and say what the offline side says."""

import json
from typing import Any

import httpx2
import pytest

from mezzotint.llm import LLM, BlockEvent, SamplingParams
from mezzotint.llm.entry import accept
from mezzotint.server.talk import Talk
from mezzotint.tasks import FAMILIES
from mezzotint.text.call_grammar import compile_calls
from mezzotint.text.parse import Reply, ToolCall, encode_reply
from mezzotint.text.prompt import Chat
from tests.server.running import Running, make_backend, serving

HELLO = [{"role": "user", "content": "Hello"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "the time somewhere",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def ask(http: httpx2.Client, **body: Any) -> dict[str, Any]:
    response = http.post("/v1/chat/completions", json={"model": "lab", "messages": HELLO, "seed": 1, **body})
    assert response.status_code == 200, response.text
    return response.json()


def refuse(http: httpx2.Client, **body: Any) -> dict[str, Any]:
    response = http.post("/v1/chat/completions", json={"model": "lab", "messages": HELLO, "seed": 1, **body})
    assert response.status_code in (400, 404), response.text
    return response.json()["error"]


def stream(http: httpx2.Client, **body: Any) -> list[dict[str, Any]]:
    given = {"model": "lab", "messages": HELLO, "seed": 1, "stream": True, **body}
    with http.stream("POST", "/v1/chat/completions", json=given) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def llm() -> LLM:
    return LLM("lab", dtype="float32")


@pytest.mark.parametrize("decoder", ["diffusion", "ar", "verified", "mtp"])
def test_an_answer_is_that_of_the_offline_side(http: httpx2.Client, llm: LLM, decoder: Any) -> None:
    example = FAMILIES["extract"].generate(3, "test")
    messages = [dict(message) for message in example.messages]
    got = ask(http, model=f"lab:{decoder}", messages=messages, max_tokens=48, temperature=0.7)
    params = SamplingParams(decoder=decoder, max_tokens=48, temperature=0.7, seed=1)
    [own] = llm.generate([Chat(messages=messages)], params)
    assert got["choices"][0]["message"]["content"] == own.text
    assert got["usage"]["completion_tokens"] == len(own.token_ids)
    assert got["metrics"]["route"]["arm"] == f"lab:{decoder}"
    if decoder != "verified":  # which drafts by what forwards were measured to cost
        assert got["metrics"]["diffusion"]["forwards"] == own.receipt.forwards


@pytest.mark.parametrize(
    "body",
    [
        {"max_tokens": 64},
        {"model": "lab:ar", "max_tokens": 20, "logprobs": True, "top_logprobs": 2},
        {"max_tokens": 64, "n": 3},
        {"model": "lab:verified", "max_tokens": 64, "stop": ["ell"]},
        {"max_tokens": 40, "tools": [TOOL], "tool_choice": "required"},
        {"max_tokens": 40, "response_format": {"type": "json_object"}},
    ],
)
def test_a_whole_reply_is_its_stream_folded(http: httpx2.Client, body: dict[str, Any]) -> None:
    whole = ask(http, **body)
    chunks = stream(http, stream_options={"include_usage": True}, **body)
    assert chunks[-1]["usage"]["total_tokens"] == whole["usage"]["total_tokens"]
    assert chunks[-1]["choices"] == []
    for choice in whole["choices"]:
        parts = [each for chunk in chunks for each in chunk["choices"] if each["index"] == choice["index"]]
        deltas, message = [part["delta"] for part in parts], choice["message"]
        assert deltas[0] == {"role": "assistant", "content": ""}
        assert "".join(delta.get("content") or "" for delta in deltas) == (message["content"] or "")
        assert [part["finish_reason"] for part in parts if part["finish_reason"]] == [choice["finish_reason"]]
        told = [call["function"] for delta in deltas for call in delta.get("tool_calls", ())]
        assert told == [call["function"] for call in message.get("tool_calls", ())]
        scores = [score for part in parts if part["logprobs"] for score in part["logprobs"]["content"]]
        assert scores == (choice["logprobs"] or {"content": []})["content"]


def test_content_is_told_once_it_is_final_and_drafts_apart(http: httpx2.Client) -> None:
    plain = stream(http, max_tokens=64)
    drafted = stream(http, max_tokens=64, x_diffusion={"drafts": True})
    drafts = [chunk["x_diffusion"] for chunk in drafted if "x_diffusion" in chunk]
    assert not any("x_diffusion" in chunk for chunk in plain)
    steps = drafted[-1]["metrics"]["diffusion"]["denoise_steps"]
    assert [draft["step"] for draft in drafts] == list(range(1, steps[0] + 1))
    assert all("".join(draft["pieces"]) == draft["text"] for draft in drafts)
    assert all(len(draft["pieces"]) == len(draft["tokens"]) == len(draft["accepted"]) for draft in drafts)
    assert drafts[0]["progress"] == f"denoising 1 of {drafts[0]['step_budget']}"
    rest = [chunk["choices"] for chunk in drafted if "x_diffusion" not in chunk]
    assert rest == [chunk["choices"] for chunk in plain]


def test_answers_to_one_prompt_have_seeds_of_their_own(http: httpx2.Client) -> None:
    several = ask(http, model="lab:ar", max_tokens=24, temperature=1.3, n=3, seed=5)
    assert several["metrics"]["diffusion"]["seeds"] == [5, 6, 7]
    for index, choice in enumerate(several["choices"]):
        alone = ask(http, model="lab:ar", max_tokens=24, temperature=1.3, seed=5 + index)
        assert choice["message"] == alone["choices"][0]["message"]


def test_a_schema_holds_whatever_the_model_would_write(http: httpx2.Client) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    got = ask(http, max_tokens=64, response_format=form)
    value = json.loads(got["choices"][0]["message"]["content"])
    assert list(value) == ["n"]
    assert isinstance(value["n"], int)
    assert value["n"] <= 9


@pytest.mark.parametrize("decoder", ["diffusion", "ar"])
def test_a_call_comes_once_and_whole_and_its_loop_goes_on(http: httpx2.Client, decoder: str) -> None:
    named = {"type": "function", "function": {"name": "get_time"}}
    asked = {"model": f"lab:{decoder}", "tools": [TOOL], "max_tokens": 60}
    first = ask(http, tool_choice=named, parallel_tool_calls=False, **asked)
    [choice] = first["choices"]
    [call] = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert call["function"]["name"] == "get_time"
    assert list(json.loads(call["function"]["arguments"])) == ["city"]
    back = {"role": "tool", "tool_call_id": call["id"], "content": '{"time": "noon"}'}
    second = ask(http, messages=[*HELLO, choice["message"], back], tool_choice="none", **asked)
    assert second["choices"][0]["finish_reason"] in ("stop", "length")


def test_the_next_turn_of_a_talk_finds_its_beginning_encoded(http: httpx2.Client) -> None:
    long = [{"role": "user", "content": "Say something long. " * 30}]
    first = ask(http, messages=long, max_tokens=16)
    more = [*long, first["choices"][0]["message"], {"role": "user", "content": "And?"}]
    second = ask(http, messages=more, max_tokens=16)
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] >= first["usage"]["prompt_tokens"] - 64


def test_thoughts_have_a_field_of_their_own(http: httpx2.Client) -> None:
    for seed in range(40):
        example = FAMILIES["chat"].generate(seed, "train")
        if example.thinking and example.reasoning:
            break
    messages = [dict(message) for message in example.messages]
    got = ask(http, model="lab:ar", messages=messages, reasoning_effort="high", max_tokens=64, temperature=0)
    message = got["choices"][0]["message"]
    assert message["reasoning_content"]
    assert "thought" not in (message["content"] or "")
    assert got["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0


@pytest.mark.parametrize(
    ("body", "param", "told"),
    [
        ({"temperature": 1000}, "temperature", "give 0"),
        ({"frobnicate": 1}, "frobnicate", "is no field"),
        ({"n": 99}, "n", "at most 16"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_completion_tokens", "give one"),
        ({"top_logprobs": 3}, "top_logprobs", "without logprobs"),
        ({"logit_bias": {"a": 1}}, "logit_bias", "token ids"),
        ({"x_route": {"decoder": "ar"}, "model": "lab:diffusion"}, "x_route.decoder", "name one decoder"),
        ({"frequency_penalty": 1}, "frequency_penalty", "choose one of ar"),
        ({"tool_choice": "required"}, "tool_choice", "no tools are declared"),
        ({"tools": [TOOL], "tool_choice": "perhaps"}, "tool_choice", "give none, auto, required"),
        ({"tools": [{"type": "web_search"}]}, "tools", "declare"),
        ({"response_format": {"type": "yaml"}}, "response_format", "json_schema"),
        ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs", "name one of"),
        ({"messages": []}, "messages", "at least one message"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages", "image_url"),
        ({"model": "other"}, "model", "is not here"),
        ({"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": True}}, "reasoning_effort", "one"),
        ({"stop": ["x"] * 17}, "stop", "at most 16"),
        ({"stop": 5}, "stop", "stop: Input should be"),
        ({"logit_bias": {"99999999": 5}}, "logit_bias", "ids go from 0"),
        ({"messages": [{"role": "assistant", "tool_calls": 5}]}, "messages", "send a list"),
        ({"messages": [{"role": "tool", "tool_call_id": ["1"], "content": ""}]}, "messages", "answers tool_call_id"),
        ({"tools": [{**TOOL, "function": {"name": "f", "parameters": []}}]}, "tools", "a schema of an object"),
        ({"tools": [TOOL], "tool_choice": {}}, "tool_choice", "name a function"),
        ({"reasoning_effort": "low", "response_format": {"type": "json_object"}}, "reasoning_effort", "has none"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(
    http: httpx2.Client, body: dict[str, Any], param: str, told: str
) -> None:
    error = refuse(http, **body)
    assert error["param"] == param
    assert told in error["message"]
    assert error["type"] in ("invalid_request_error", "not_found_error")


def test_a_prompt_that_exceeds_the_context_has_the_code_that_programs_test_for(http: httpx2.Client) -> None:
    assert refuse(http, max_tokens=5000)["code"] == "context_length_exceeded"


def test_a_request_without_max_tokens_fits_into_the_context(server: Running, http: httpx2.Client) -> None:
    limits = server.backend.checkpoint.limits
    words = [{"role": "user", "content": "a " * (limits.max_positions // 2 - 70)}]
    got = ask(http, messages=words, max_tokens=None, x_diffusion={"steps": 1})
    assert got["usage"]["total_tokens"] <= limits.max_positions


def test_a_deadline_that_passes_is_told_as_one(http: httpx2.Client) -> None:
    body = {"model": "lab:ar", "messages": HELLO, "max_tokens": 2000, "ignore_eos": True}
    late = http.post("/v1/chat/completions", json={**body, "x_route": {"deadline_ms": 50}})
    assert late.status_code == 504
    assert late.json()["error"]["code"] == "deadline"
    chunks = http.post("/v1/chat/completions", json={**body, "stream": True, "x_route": {"deadline_ms": 50}})
    assert chunks.status_code == 200
    assert json.loads(chunks.text.strip().rsplit("data: ", 1)[1])["error"]["code"] == "deadline"


def test_a_call_that_no_grammar_held_is_judged_by_what_was_declared(server: Running) -> None:
    tokenizer = server.backend.tokenizer
    judge = server.backend.compile(lambda grammars: compile_calls(grammars, [TOOL], choice="required"))
    asked = accept([5], SamplingParams(max_tokens=9), server.backend.checkpoint)
    calls = {"right": {"city": "Lund"}, "wrong": {"city": 7}, "more": {"city": "Lund", "when": "now"}, "none": {}}
    for name, arguments in calls.items():
        talk = Talk(asked, tokenizer, [], judge)
        ids = encode_reply(Reply(calls=(ToolCall("get_time", arguments),)), tokenizer)
        said = talk.push(BlockEvent(0, 1, ids, ""))
        assert [call.arguments for call in said.calls] == [arguments]
        assert bool(talk.faults) == (name != "right")


def test_a_step_that_fails_ends_its_requests_with_500_and_the_next_are_answered() -> None:
    backend = make_backend()
    with serving(backend) as running, httpx2.Client(base_url=running.url, timeout=60) as http:
        whole = ask(http, max_tokens=8)
        engine = backend.service._engine
        plain, engine.step = engine.step, lambda: 1 / 0
        late = http.post("/v1/chat/completions", json={"model": "lab", "messages": HELLO, "max_tokens": 8})
        assert late.status_code == 500
        assert late.json()["error"]["code"] == "crashed"
        engine.step = plain
        assert ask(http, max_tokens=8)["choices"] == whole["choices"]


def test_a_server_that_is_told_to_end_finishes_what_it_began() -> None:
    backend = make_backend()
    with serving(backend) as running, httpx2.Client(base_url=running.url, timeout=60) as http:
        body = {"model": "lab:ar", "messages": HELLO, "max_tokens": 200, "ignore_eos": True, "stream": True}
        with http.stream("POST", "/v1/chat/completions", json=body) as response:
            lines = response.iter_lines()
            assert next(lines).startswith("data: ")
            backend.is_ready = False  # as SIGTERM makes it, before it waits
            refused = httpx2.post(f"{running.url}/v1/chat/completions", json={"model": "lab", "messages": HELLO})
            assert refused.status_code == 503
            assert httpx2.get(f"{running.url}/health/ready").status_code == 503
            assert httpx2.get(f"{running.url}/health/live").status_code == 200
            assert [line for line in lines if line][-1] == "data: [DONE]"


def test_a_preset_is_named_behind_the_model_and_decides_what_it_decides(http: httpx2.Client) -> None:
    fast, best = (ask(http, model=f"lab:{name}", max_tokens=64)["metrics"]["diffusion"] for name in ("fast", "best"))
    assert (fast["step_budget"], best["step_budget"]) == (4, 32)
    assert ask(http, x_diffusion={"preset": "fast"}, max_tokens=64)["metrics"]["diffusion"]["step_budget"] == 4
    assert refuse(http, model="lab:fast", x_diffusion={"steps": 9})["param"] == "steps"
    assert refuse(http, model="lab:ar:fast")["param"] == "decoder"
    assert refuse(http, model="lab:fast", x_diffusion={"preset": "best"})["param"] == "x_diffusion"
    held = ask(http, model="lab:best", max_tokens=64, response_format={"type": "json_object"})
    assert isinstance(json.loads(held["choices"][0]["message"]["content"]), dict)


def test_half_a_call_is_no_content(http: httpx2.Client) -> None:
    cut = ask(http, tools=[TOOL], tool_choice="required", max_tokens=4, model="lab:ar")
    assert cut["choices"][0]["message"]["content"] == ""
    assert cut["choices"][0]["finish_reason"] == "length"
    assert "A call has no end." in cut["metrics"]["faults"]
