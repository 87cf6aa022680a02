"""Keys, rates, sizes, queues, and clients that leave."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Iterator
from dataclasses import replace

import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send

from mezzotint.server import ServerConfig
from mezzotint.server.errors import ApiError
from mezzotint.server.guard import Guard
from tests.server.running import SIZES, Running, make_backend, serving

CONFIG = ServerConfig(
    api_keys=("one", "two"), rate="5/minute", max_body_bytes=2000, max_waiting=1, compatible_metrics=True
)
HELLO = {"model": "lab", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}
LONG = {**HELLO, "model": "lab:ar", "max_tokens": 3000, "ignore_eos": True}


@pytest.fixture(scope="module")
def guarded() -> Iterator[Running]:
    with serving(make_backend(CONFIG, replace(SIZES, max_rows=1))) as running:
        yield running


def key(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


def wait_for_idle(running: Running) -> None:
    until = time.monotonic() + 20
    while running.backend.open or running.backend.service.stats().running:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_key_lets_in_and_its_rate_keeps_out(guarded: Running) -> None:
    with httpx2.Client(base_url=guarded.url) as http:
        assert http.get("/v1/models").status_code == 401
        assert http.get("/v1/models", headers=key("three")).json()["error"]["code"] == "invalid_api_key"
        assert http.get("/v1/models", headers={"x-api-key": "two"}).status_code == 200
        assert http.get("/health").status_code == 200
        statuses = [http.get("/v1/models", headers=key("two")).status_code for _ in range(5)]
        assert statuses == [200] * 4 + [429]
        late = http.get("/v1/models", headers=key("two"))
        assert late.json()["error"]["code"] == "rate_limit_exceeded"
        assert 1 <= int(late.headers["retry-after"]) <= 61
        assert http.get("/v1/models", headers=key("one")).status_code == 200
        assert "vllm:num_requests_running" in http.get("/metrics").text


@pytest.fixture(scope="module")
def narrow() -> Iterator[Running]:
    config = replace(CONFIG, api_keys=(), rate=None)
    with serving(make_backend(config, replace(SIZES, max_rows=1))) as running:
        yield running


def test_a_body_that_is_too_large_is_refused_whether_or_not_it_says_so(narrow: Running) -> None:
    body = json.dumps({**HELLO, "user": "x" * 3000}).encode()
    with httpx2.Client(base_url=narrow.url) as http:
        assert http.post("/v1/chat/completions", content=body).status_code == 413
        parts = http.post("/v1/chat/completions", content=(body[at : at + 100] for at in range(0, len(body), 100)))
        assert parts.json()["error"]["code"] == "body_too_large"


def test_more_requests_than_may_wait_are_refused_and_told_when_to_come_again(narrow: Running) -> None:
    async def go() -> None:
        async with httpx2.AsyncClient(base_url=narrow.url, timeout=60) as http:
            tasks = [asyncio.create_task(http.post("/v1/chat/completions", json=LONG)) for _ in range(2)]
            while narrow.backend.open < 2:
                await asyncio.sleep(0.01)
            for stream in (False, True):
                refused = await http.post("/v1/chat/completions", json={**HELLO, "stream": stream})
                assert refused.status_code == 429
                assert refused.json()["error"]["code"] == "queue_full"
                assert int(refused.headers["retry-after"]) >= 1
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(go())
    wait_for_idle(narrow)


def test_a_full_server_refuses_before_it_reads_and_answers_what_needs_no_room(narrow: Running) -> None:
    async def go() -> None:
        async with httpx2.AsyncClient(base_url=narrow.url, timeout=60) as http:
            tasks = [asyncio.create_task(http.post("/v1/chat/completions", json=LONG)) for _ in range(2)]
            while narrow.backend.open < 2:
                await asyncio.sleep(0.01)
            origin = {"origin": "http://a.page"}
            for path in ("chat/completions", "completions", "responses", "choose", "infill"):
                refused = await http.post(f"/v1/{path}", content=b"{", headers=origin)
                assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full")
                assert refused.headers["access-control-allow-origin"] == "*"
            assert (await http.post("/v1/infill", content=b"x" * 3000)).status_code == 413
            assert (await http.post("/tokenize", json={"prompt": "Hello"})).status_code == 200
            counted = (await http.get("/metrics")).text
            assert 'mezzotint_requests_total{path="/v1/infill",status="429"} 1.0' in counted
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(go())
    wait_for_idle(narrow)


def test_the_body_of_a_request_that_finds_no_room_is_not_waited_for() -> None:
    async def receive() -> Message:
        raise AssertionError("it was read")

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("it was let through")

    def full() -> None:
        raise ApiError(429, "full", kind="rate_limit_error", code="queue_full")

    sent = list[Message]()

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/choose", "headers": []}
    asyncio.run(Guard(answer, ServerConfig(), lambda path, status: None, full)(scope, receive, send))
    assert sent[0]["status"] == 429


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_stops_what_was_being_made_for_it(narrow: Running, stream: bool) -> None:
    before = narrow.backend.service.stats().failed.get("cancelled", 0)
    body = json.dumps({**LONG, "stream": stream}).encode()
    host, port = narrow.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as wire:
        head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        wire.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        while not narrow.backend.service.stats().running:
            time.sleep(0.01)
    wait_for_idle(narrow)
    assert narrow.backend.service.stats().failed["cancelled"] == before + 1


def test_a_request_keeps_the_id_it_came_with_and_has_a_line_in_the_log(
    narrow: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "mezzotint.access"), httpx2.Client(base_url=narrow.url) as http:
        told = http.get("/health", headers={"x-request-id": "mine-1"})
        other = http.get("/health", headers={"x-request-id": "is not fit"})
    assert told.headers["x-request-id"] == "mine-1"
    assert len(other.headers["x-request-id"]) == 24
    lines = [record.told for record in caplog.records if record.name == "mezzotint.access"]  # type: ignore[attr-defined]
    assert {"request_id": "mine-1", "method": "GET", "path": "/health", "status": 200}.items() <= lines[0].items()


def test_a_page_elsewhere_may_ask_from_a_browser(narrow: Running) -> None:
    with httpx2.Client(base_url=narrow.url) as http:
        headers = {"origin": "http://a.page", "access-control-request-method": "POST"}
        told = http.options("/v1/chat/completions", headers=headers)
    assert told.status_code == 200
    assert told.headers["access-control-allow-origin"] == "*"
