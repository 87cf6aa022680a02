"""A server with a fleet over HTTP: who answers, how it is told, verdicts that come later, and what is not routed."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from mezzotint.evaluate.verify import make_verifier
from mezzotint.router.fleet import Fleet
from mezzotint.router.ledger import Ledger
from mezzotint.router.policy import Policy
from mezzotint.router.policy_file import PolicyConfig
from mezzotint.server.arm import LocalArm, count_prompt
from tests.server.running import Running, make_backend, serving

HELLO: dict[str, Any] = {"model": "auto", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 32}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.fixture(scope="module")
def routed() -> Iterator[Running]:
    backend = make_backend()
    arms = [
        LocalArm("canvas", backend, steps=4, busy_price=0.001),
        LocalArm("plain", backend, decoder="ar", busy_price=0.001),
        LocalArm("exact", backend, decoder="verified"),
        LocalArm("best", backend, preset="best"),
    ]
    fleet = Fleet(
        arms,
        Policy(PolicyConfig(), [arm.traits for arm in arms], seed=1, clock=time.time),
        Ledger(Path(":memory:"), "test"),
        count_tokens=lambda body: count_prompt(backend, body),
        make_verifier=make_verifier,
    )
    with serving(backend, fleet) as running:
        yield running


@pytest.fixture
def http(routed: Running) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=routed.url, timeout=60) as client:
        yield client


def ask(http: httpx2.Client, **more: Any) -> httpx2.Response:
    return http.post("/v1/chat/completions", json={**HELLO, **more})


def test_auto_answers_and_says_who_and_why(http: httpx2.Client) -> None:
    told = ask(http)
    assert told.status_code == 200, told.text
    metrics = told.json()["metrics"]
    route = metrics["route"]
    assert route["arm"] == told.headers["x-mezzotint-arm"] == told.json()["model"]
    assert route["decision_id"] == told.headers["x-mezzotint-decision-id"]
    assert (route["attempts"], told.headers["x-mezzotint-attempts"]) == (1, "1")
    assert [each["arm"] for each in route["candidates"]] == ["canvas", "plain", "exact", "best"]
    assert sum(route["parts_ms"].values()) == pytest.approx(route["time_to_accepted_ms"], abs=0.01)
    assert 0 < metrics["prefill_time_ms"] <= metrics["generation_time_ms"] <= route["time_to_accepted_ms"]
    assert metrics["diffusion"]["semantics"] in ("canvas", "token")


def test_an_arm_that_is_named_answers_as_its_decoder_does_without_a_fleet(http: httpx2.Client) -> None:
    for arm, model, more in (("plain", "lab:ar", {}), ("canvas", "lab", {"x_diffusion": {"steps": 4}})):
        pinned, alone = ask(http, model=arm, seed=3), ask(http, model=model, seed=3, **more)
        assert pinned.json()["choices"] == alone.json()["choices"]
        assert pinned.json()["usage"] == alone.json()["usage"]
        assert pinned.json()["metrics"]["diffusion"] == alone.json()["metrics"]["diffusion"]
        assert pinned.json()["metrics"]["route"]["reason"] == "pinned"


def test_a_whole_routed_reply_is_its_stream_folded(http: httpx2.Client) -> None:
    asked = {"model": "plain", "seed": 5, "stream": True}
    lines = ask(http, **asked, stream_options={"include_usage": True}).text.splitlines()
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    text = "".join(each["delta"].get("content", "") for chunk in chunks for each in chunk["choices"])
    whole = ask(http, model="plain", seed=5).json()
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["usage"] == whole["usage"]
    assert chunks[-1]["metrics"]["route"]["arm"] == "plain"
    bare = [json.loads(line[6:]) for line in ask(http, **asked).text.splitlines() if line.startswith("data: {")]
    assert "usage" not in bare[-1]
    assert bare[-1]["choices"][0]["finish_reason"]
    assert bare[-1]["metrics"]["route"]["arm"] == "plain"


def test_drafts_are_told_to_whoever_asks_and_to_nobody_else(http: httpx2.Client) -> None:
    silent = ask(http, model="canvas", stream=True).text
    assert "x_diffusion" not in silent
    shown = ask(http, model="canvas", stream=True, x_diffusion={"drafts": True}).text
    assert '"progress":"denoising 1 of 4"' in shown
    assert "first_entropy" not in shown


def test_an_answer_is_verified_before_it_leaves(http: httpx2.Client) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
    told = ask(http, x_route={"accept": {"type": "json_schema"}}, response_format=form)
    assert told.status_code == 200, told.text
    route = told.json()["metrics"]["route"]
    assert route["tried"][-1]["outcome"] == "accepted"
    assert route["parts_ms"]["verification"] > 0
    refused = ask(http, x_route={"accept": {"type": "regex", "pattern": "^never this$"}})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "not_accepted")


@pytest.mark.parametrize(
    "accept",
    [
        {"type": "python_tests", "tests": "assert True"},
        {"type": "json_schema"},
        {"type": "command", "name": "rm"},
        {"type": "judge", "rubric": "good"},
        {"type": "regex", "pattern": "("},
        {},
    ],
)
def test_what_nothing_can_be_verified_by_is_refused(http: httpx2.Client, accept: dict[str, Any]) -> None:
    refused = ask(http, x_route={"accept": accept})
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["param"] == "x_route.accept"


def test_responses_are_routed_too(routed: Running) -> None:
    client = OpenAI(base_url=f"{routed.url}/v1", api_key="any", max_retries=0)
    whole = client.responses.create(model="auto:fast", input="Hello", max_output_tokens=32)
    assert whole.model_dump()["metrics"]["route"]["decision_id"]
    with client.responses.stream(model="plain", input="Hello", max_output_tokens=32) as stream:
        assert [event.type for event in stream][-1] in ("response.completed", "response.incomplete")


def test_a_decoder_can_be_asked_for_and_is_held_to(http: httpx2.Client) -> None:
    told = ask(http, x_route={"decoder": "verified"}).json()
    assert told["metrics"]["route"]["arm"] == "exact"
    assert "the request asks for verified" in {each["excluded"] for each in told["metrics"]["route"]["candidates"]}
    for more in ({}, {"model": "plain"}):
        none = ask(http, x_route={"decoder": "mtp"}, **more)
        assert (none.status_code, none.json()["error"]["code"]) == (400, "no_arm")
        assert "plain: the request asks for mtp" in none.json()["error"]["message"]
        assert ("canvas" in none.json()["error"]["message"]) == (more == {})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/completions", {"prompt": "a", "suffix": "b"}),
        ("/v1/infill", {"document": ["a", {}, "b"]}),
        ("/v1/choose", {"prompt": "?", "choices": ["a", "b"]}),
    ],
)
def test_what_cannot_be_routed_says_what_to_name_instead(http: httpx2.Client, path: str, body: dict[str, Any]) -> None:
    refused = http.post(path, json={"model": "auto:best", **body})
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "not_routed"
    assert "name 'lab'" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": []},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"content": "Hello"}]},
        {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": "none"}]},
        {"tools": [{}]},
        {"tools": [{"type": "function", "function": {"name": 3}}]},
        {"tool_choice": {"type": "function"}, "tools": []},
        {"response_format": {"type": "json_schema", "json_schema": 3}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": 3}}},
        {"response_format": {"type": "strange"}},
        {"structured_outputs": {"json": {"type": "object"}, "regex": "a"}},
        {"structured_outputs": {"regex": "("}},
        {"temperature": -1},
        {"max_tokens": 0},
        {"seed": -1},
        {"stop": [""]},
    ],
)
def test_what_a_model_of_this_server_refuses_auto_refuses_too(http: httpx2.Client, wrong: dict[str, Any]) -> None:
    alone, routed_ = ask(http, model="lab", **wrong), ask(http, **wrong)
    assert (alone.status_code, routed_.status_code) == (400, 400), routed_.text
    assert routed_.json()["error"]["type"] == "invalid_request_error"
    assert routed_.json()["error"]["code"] in (None, alone.json()["error"]["code"])


@pytest.mark.parametrize(
    ("wrong", "param"),
    [({"n": 2}, "n"), ({"x_diffusion": {"steps": 3}}, "x_diffusion.steps"), ({"max_tokens": 10**6}, None)],
)
def test_what_an_arm_decides_itself_is_refused_by_name(http: httpx2.Client, wrong: Any, param: str | None) -> None:
    refused = ask(http, **wrong)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["param"] == param


@pytest.mark.parametrize("name", ["max_cost_usd", "max_attempts", "risk", "accept", "explore"])
def test_without_a_fleet_what_only_a_fleet_can_do_is_refused_by_name(http: httpx2.Client, name: str) -> None:
    value: Any = {"accept": {"type": "regex"}, "explore": True, "max_attempts": 2}.get(name, 0.5)
    for path, body in (("/v1/chat/completions", HELLO), ("/v1/responses", {"input": "Hello"})):
        refused = http.post(path, json={**body, "model": "lab", "x_route": {name: value}})
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == f"x_route.{name}"
        assert "--fleet" in refused.json()["error"]["message"]
    assert ask(http, model="lab", x_route={"max_attempts": 1, "explore": False}).status_code == 200


def test_late_verdicts_are_taken_once(http: httpx2.Client) -> None:
    id = ask(http).json()["metrics"]["route"]["decision_id"]
    outcome = {"decision_id": id, "verdict": "rejected", "reason": "wrong", "verify_ms": 3}
    key = {"idempotency-key": "one"}
    told = [http.post("/v1/router/outcomes", json=outcome, headers=key).json()["new"] for _ in range(2)]
    assert told == [True, False]
    other = http.post("/v1/router/outcomes", json={**outcome, "verdict": "accepted"}, headers=key)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "key_reused")
    assert http.post("/v1/router/outcomes", json={**outcome, "decision_id": "x"}).status_code == 404
    assert http.post("/v1/router/outcomes", json={**outcome, "verdict": "fine"}).status_code == 400
    rows = http.get("/v1/router/ledger").json()["data"]
    assert {row["arm"] for row in rows} <= {"canvas", "plain", "exact", "best"}


def test_models_and_figures_tell_of_the_fleet(http: httpx2.Client) -> None:
    ask(http, model="plain")
    names = [each["id"] for each in http.get("/v1/models").json()["data"]]
    assert names[:2] == ["lab", "lab:diffusion"]
    assert names[-8:] == ["auto", "auto:fast", "auto:cheap", "auto:best", "canvas", "plain", "exact", "best"]
    assert http.get("/v1/models/auto:cheap").json()["id"] == "auto:cheap"
    text = http.get("/metrics").text
    assert 'mezzotint_router_attempts_total{arm="plain",outcome="unverified"}' in text
    assert 'mezzotint_router_time_to_accepted_seconds_count{arm="plain",kind=' in text
    assert 'mezzotint_router_cost_usd_total{arm="plain"}' in text
    exposed = http.get("/health", headers={"origin": "http://a.page"})
    assert "x-mezzotint-decision-id" in exposed.headers["access-control-expose-headers"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_a_routed_request_stops_what_was_being_made_for_it(routed: Running, stream: bool) -> None:
    stats = routed.backend.service.stats
    before = stats().failed.get("cancelled", 0)
    long = {**HELLO, "model": "plain", "max_tokens": 3000, "ignore_eos": True, "stream": stream}
    if stream:  # held until the end, and so is the head of the reply
        long["x_route"] = {"accept": {"type": "regex", "pattern": "."}}
    body = json.dumps(long).encode()
    host, port = routed.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as wire:
        head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        wire.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        while not stats().running:
            time.sleep(0.01)
    until = time.monotonic() + 20
    while routed.backend.open or stats().running:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert stats().failed["cancelled"] == before + 1
    with httpx2.Client(base_url=routed.url) as http:
        assert 'mezzotint_router_attempts_total{arm="plain",outcome="cancelled"}' in http.get("/metrics").text


def test_a_request_is_read_though_one_engine_is_full_for_other_arms_may_have_room(routed: Running) -> None:
    routed.backend.open += 10_000
    try:
        told = httpx2.post(f"{routed.url}/v1/chat/completions", content=b"{")
    finally:
        routed.backend.open -= 10_000
    assert told.status_code == 400


def test_a_request_that_a_fleet_has_routed_is_not_routed_again(http: httpx2.Client) -> None:
    for path, asked in (("chat/completions", HELLO), ("responses", {"model": "auto:fast", "input": "Hello"})):
        told = http.post(f"/v1/{path}", json=asked, headers={"x-mezzotint-routed": "1"})
        assert (told.status_code, told.json()["error"]["code"]) == (400, "routed_twice"), told.text
    pinned = http.post("/v1/chat/completions", json={**HELLO, "model": "plain"}, headers={"x-mezzotint-routed": "1"})
    assert pinned.status_code == 200


@pytest.mark.parametrize("field", ["score", "verify_ms"])
def test_a_verdict_without_a_number_where_one_belongs_is_refused(field: str, http: httpx2.Client) -> None:
    decision = ask(http).json()["metrics"]["route"]["decision_id"]
    body = f'{{"decision_id": "{decision}", "verdict": "accepted", "{field}": NaN}}'
    told = http.post("/v1/router/outcomes", content=body, headers={"content-type": "application/json"})
    assert told.status_code == 400
    assert field in told.json()["error"]["message"]
