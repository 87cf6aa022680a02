"""The other paths: older completions, responses, choices, blanks, tokens, models, health, figures."""

import json
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.server.running import Running


def post(http: httpx2.Client, path: str, **body: Any) -> dict[str, Any]:
    response = http.post(path, json={"model": "lab", **body})
    assert response.status_code == 200, response.text
    return response.json()


def test_a_completion_goes_on_behind_its_prompt_and_may_repeat_it(http: httpx2.Client) -> None:
    asked: dict[str, Any] = {"model": "lab:ar", "prompt": ["abc", "def"], "max_tokens": 4, "seed": 1, "n": 2}
    plain = post(http, "/v1/completions", **asked)
    echoed = post(http, "/v1/completions", echo=True, logprobs=2, **asked)
    assert [choice["index"] for choice in plain["choices"]] == [0, 1, 2, 3]
    for bare, whole, prompt in zip(plain["choices"], echoed["choices"], ["abc"] * 2 + ["def"] * 2, strict=True):
        assert whole["text"] == prompt + bare["text"]
        scores = whole["logprobs"]
        assert "".join(scores["tokens"]) == whole["text"]
        assert scores["text_offset"] == [len("".join(scores["tokens"][:at])) for at in range(len(scores["tokens"]))]
        assert all(score < 0 for score in scores["token_logprobs"])


def test_a_streamed_completion_is_the_whole_one(http: httpx2.Client) -> None:
    asked = {"model": "lab:ar", "prompt": "abc", "max_tokens": 12, "seed": 1}
    whole = post(http, "/v1/completions", **asked)
    text = http.post("/v1/completions", json={**asked, "stream": True}).text
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert "".join(each["text"] for chunk in chunks for each in chunk["choices"]) == whole["choices"][0]["text"]


def test_a_suffix_stands_behind_the_answer(http: httpx2.Client) -> None:
    asked = {"prompt": "def add(a, b):\n    return ", "suffix": "\n", "max_tokens": 8, "seed": 1}
    filled = post(http, "/v1/completions", **asked)
    blank = {"max_tokens": 8}
    document = [asked["prompt"], blank, asked["suffix"]]
    whole = post(http, "/v1/infill", document=document, raw=True, seed=1)
    assert whole["text"] == f"{asked['prompt']}{filled['choices'][0]['text']}\n"
    assert whole["middles"][0]["text"] == filled["choices"][0]["text"]


@pytest.mark.parametrize("name", ["echo", "logprobs", "stop", "n", "min_tokens"])
def test_what_a_blank_has_no_use_for_is_refused(http: httpx2.Client, name: str) -> None:
    value: Any = "x" if name == "stop" else 2
    body = {"model": "lab", "prompt": "a", "suffix": "b", name: value}
    error = http.post("/v1/completions", json=body).json()["error"]
    assert error["param"] in (name, "suffix")


def test_a_choice_has_a_probability(http: httpx2.Client) -> None:
    for model in ("lab", "lab:ar"):
        told = post(http, "/v1/choose", model=model, messages=[{"role": "user", "content": "?"}], choices=["yes", "no"])
        assert sum(choice["probability"] for choice in told["choices"]) == pytest.approx(1)
        best = max(told["choices"], key=lambda choice: choice["probability"])
        assert told["choice"] == best["text"]
    wrong = http.post("/v1/choose", json={"model": "lab:verified", "prompt": "?", "choices": ["a", "b"]})
    assert wrong.status_code == 400


def test_ids_and_text_are_each_others(http: httpx2.Client, server: Running) -> None:
    told = post(http, "/tokenize", prompt="Hello, world")
    assert told["count"] == len(told["tokens"])
    assert post(http, "/detokenize", tokens=told["tokens"])["prompt"] == "<bos>Hello, world"
    chat = post(http, "/tokenize", messages=[{"role": "user", "content": "<turn|>"}])
    assert chat["tokens"].count(server.backend.tokenizer.control["<turn|>"]) == 1


def test_models_are_listed_with_their_decoders(http: httpx2.Client) -> None:
    names = [each["id"] for each in http.get("/v1/models").json()["data"]]
    assert names == ["lab", "lab:diffusion", "lab:ar", "lab:verified", "lab:mtp"]
    assert http.get("/v1/models/lab:ar").json()["id"] == "lab:ar"
    assert http.get("/v1/models/gpt").status_code == 404


def test_health_and_figures_are_told(http: httpx2.Client) -> None:
    post(http, "/v1/completions", model="lab:ar", prompt="abc", max_tokens=3, seed=1)
    assert [http.get(path).status_code for path in ("/health", "/health/live", "/health/ready")] == [200] * 3
    text = http.get("/metrics").text
    for name in ("requests_total", "output_tokens_total", "denoise_steps_bucket", "requests_running", "encodes_total"):
        assert f"mezzotint_{name}" in text
    assert "vllm:" not in text


def test_a_path_that_there_is_not_and_a_method_that_is_not_for_it_are_told_in_the_same_shape(
    http: httpx2.Client,
) -> None:
    assert http.get("/v1/nothing").json()["error"]["type"] == "not_found_error"
    assert http.get("/v1/chat/completions").status_code == 405


@pytest.mark.parametrize("content", [b"{", b"[]", b"null", b"\xff", b'{"a":' * 5000, b""])
def test_a_body_that_is_no_object_is_refused(http: httpx2.Client, content: bytes) -> None:
    response = http.post("/v1/chat/completions", content=content, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.fixture
def client(server: Running) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0)


def test_responses_tell_the_same_as_a_chat(client: OpenAI) -> None:
    asked: Any = {"model": "lab", "temperature": 0}
    chat = client.chat.completions.create(messages=[{"role": "user", "content": "Hello"}], max_tokens=64, **asked)
    whole = client.responses.create(input="Hello", max_output_tokens=64, **asked)
    assert whole.status == "completed"
    assert whole.usage is not None
    assert len(whole.output_text) > 0
    assert chat.choices[0].message.content is not None


def test_a_stream_of_responses_is_numbered_and_ends_with_the_whole(client: OpenAI) -> None:
    tool: Any = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}
    asked: Any = {"model": "lab", "input": "Hello", "tools": [tool], "tool_choice": "required", "max_output_tokens": 64}
    with client.responses.stream(**asked) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events if hasattr(event, "sequence_number")] == list(range(len(events)))
    assert events[0].type == "response.created"
    calls = [item for item in final.output if item.type == "function_call"]
    assert calls
    assert all(call.name == "f" and json.loads(call.arguments) == {} for call in calls)


def test_an_answer_that_was_cut_is_incomplete(client: OpenAI) -> None:
    whole = client.responses.create(model="lab:ar", input="Hello", max_output_tokens=1)
    assert whole.status == "incomplete"
    assert whole.incomplete_details is not None
    assert whole.incomplete_details.reason == "max_output_tokens"


def test_what_no_endpoint_can_do_is_refused_and_never_called_a_fault_of_ours(http: httpx2.Client) -> None:
    blank = {"model": "lab", "document": ["a", {"max_tokens": 0}, "b"]}
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("/v1/infill", blank),
        ("/v1/infill", {**blank, "document": ["a", {}, "b"], "max_tokens": 0}),
        ("/v1/infill", {**blank, "document": ["a", {}, "b"], "x_diffusion": {"drafts": True}}),
        ("/v1/choose", {"model": "lab", "prompt": "?", "choices": ["a", "b"], "seed": 2**70}),
        ("/v1/completions", {"model": "lab", "prompt": "a", "suffix": "b", "max_tokens": 0}),
        ("/v1/completions", {"model": "lab", "prompt": "a", "suffix": "b", "x_route": {"deadline_ms": 5}}),
        ("/v1/completions", {"model": "lab", "prompt": ["a"] * 300}),
        ("/v1/responses", {"model": "lab", "input": "a", "text": {"format": "x"}}),
        ("/v1/responses", {"model": "lab", "input": "a", "reasoning": {"effort": "zz"}}),
    ]
    for path, body in wrong:
        response = http.post(path, json=body)
        assert response.status_code == 400, (path, body, response.text)
    odd = {"model": "lab", "input": "Hello", "max_output_tokens": 8, "metadata": {"a": float("nan"), "b": "c"}}
    whole = http.post("/v1/responses", content=json.dumps(odd), headers={"content-type": "application/json"})
    assert whole.json()["metadata"] == {"b": "c"}
    squeezed = http.post("/v1/responses", content=b"", headers={"content-encoding": "gzip"})
    assert squeezed.status_code == 415
