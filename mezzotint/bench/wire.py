"""One request over HTTP, its bytes stamped as they come; nothing is parsed before the last of them is there."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import httpx2

Clock = Callable[[], float]
_REFUSAL_BYTES = 2000  # of a refusal, that are told


class Piece(NamedTuple):
    """Bytes, and when they came."""

    at_s: float
    data: bytes


class Raw(NamedTuple):
    """A reply as it came. failure: a category, empty for a stream that ended by itself; detail: what came with it."""

    sent_s: float
    ended_s: float
    pieces: tuple[Piece, ...]
    failure: str = ""
    detail: str = ""
    retry_after_s: float | None = None


def connect(url: str, api_key: str | None = None) -> httpx2.AsyncClient:
    """A client of an OpenAI-compatible server. url: with or without its /v1."""
    base = url.rstrip("/")
    headers = {"accept-encoding": "identity"} | ({"authorization": f"Bearer {api_key}"} if api_key else {})
    return httpx2.AsyncClient(
        base_url=base if base.endswith("/v1") else f"{base}/v1",
        headers=headers,
        timeout=httpx2.Timeout(None, connect=10.0),  # answers have a deadline of their own
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
    )


async def ask(http: httpx2.AsyncClient, body: Mapping[str, Any], clock: Clock, timeout_s: float) -> Raw:
    """Stream the answer to a chat. Returns: what came of it, whatever it was."""
    pieces: list[Piece] = []
    sent_s = clock()

    def failed(category: str, detail: str = "", retry_after_s: float | None = None) -> Raw:
        return Raw(sent_s, clock(), tuple(pieces), category, detail, retry_after_s)

    try:
        async with (
            asyncio.timeout(max(timeout_s, 0.0)),
            http.stream("POST", "/chat/completions", json=dict(body)) as reply,
        ):
            if reply.status_code != 200:
                text = (await reply.aread())[:_REFUSAL_BYTES].decode(errors="replace")
                return failed(f"http {reply.status_code}", text, _seconds(reply.headers.get("retry-after")))
            async for data in reply.aiter_raw():
                pieces.append(Piece(clock(), data))
    except TimeoutError:
        return failed("timeout")
    except httpx2.ConnectError as error:
        return failed("connection", str(error))
    except httpx2.HTTPError as error:
        return failed("broken stream", f"{type(error).__name__}: {error}")
    return Raw(sent_s, pieces[-1].at_s if pieces else clock(), tuple(pieces))


async def tell_outcome(http: httpx2.AsyncClient, outcome: Mapping[str, Any]) -> None:
    """Tell a router what became of one of its answers. Raises: ValueError saying why it would not hear it."""
    try:
        reply = await http.post("/router/outcomes", json=dict(outcome))
    except httpx2.HTTPError as error:
        raise ValueError(f"the router was not told of an outcome: {type(error).__name__}: {error}") from error
    if reply.status_code != 200:
        text = reply.text[:_REFUSAL_BYTES]
        raise ValueError(f"the router was told of an outcome and said {reply.status_code}: {text}")


def _seconds(header: str | None) -> float | None:
    try:
        return None if header is None else float(header)
    except ValueError:  # a date, which some servers send
        return None
