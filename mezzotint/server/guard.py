"""What every request passes before a route sees it: its key, its size, room for it, its id, its line in the log."""

import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mezzotint.server.config import ServerConfig
from mezzotint.server.errors import ApiError
from mezzotint.server.sse import write_json

_ID = re.compile(r"[\w.:-]{1,128}")
_ANSWERS = frozenset(f"/v1/{name}" for name in ("chat/completions", "completions", "responses", "choose", "infill"))
_OPEN = ("/health", "/metrics", "/assets/")  # asked by what has no key: probes, scrapers, a page before it has one
_LOG = logging.getLogger("mezzotint.access")


class Guard:
    """An ASGI application before another one."""

    def __init__(
        self, app: ASGIApp, config: ServerConfig, count: Callable[[str, int], None], check_room: Callable[[], None]
    ) -> None:
        """count: told the path and status of every request. check_room: raises ApiError where no answer can be begun.

        Raises: ValueError for a rate that cannot be read.
        """
        self._app, self._config, self._count, self._check_room = app, config, count, check_room
        self._keys = [key.encode() for key in config.api_keys]
        self._rate = None if config.rate is None else _read_rate(config.rate)
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        id = given if _ID.fullmatch(given) else secrets.token_hex(12)
        scope.setdefault("state", {})["request_id"] = id
        started, status = time.perf_counter(), 0

        async def tell(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(raw=message["headers"])["x-request-id"] = id
            await send(message)

        try:
            try:
                self._admit(scope["method"], scope["path"], headers)
                _check_head(headers, self._config.max_body_bytes)
                if scope["method"] == "POST" and scope["path"] in _ANSWERS:
                    self._check_room()  # before its body is read, parsed and made ids of for nothing
                body = await _read_body(receive, self._config.max_body_bytes)
            except ApiError as error:
                await send_error(error, tell)
            else:
                await self._app(scope, _replay(body, receive), tell)
        finally:
            told: dict[str, Any] = {"request_id": id, "method": scope["method"], "path": scope["path"]}
            told |= {"status": status, "ms": round((time.perf_counter() - started) * 1000, 3)}
            route = scope.get("route")  # of paths that are not ours there may be any number
            known = scope["path"] if scope["path"] in _ANSWERS else "other"
            self._count(known if route is None else route.path, status)
            _LOG.info("request", extra={"told": told | scope["state"].get("told", {})})

    def _admit(self, method: str, path: str, headers: Headers) -> None:
        if not self._keys or method == "OPTIONS" or path == "/" or path.startswith(_OPEN):
            return
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        shown = shown.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
        # Each is compared, and each in the same time, so that an answer's delay says nothing of a key.
        known = [hmac.compare_digest(shown.encode(errors="replace"), key) for key in self._keys]
        if not any(known):
            told = "no known API key was sent; send one as 'Authorization: Bearer KEY'"
            raise ApiError(401, told, kind="authentication_error", code="invalid_api_key")
        if self._rate is not None and not self._limiter.hit(self._rate, str(known.index(True))):
            [reset, _] = self._limiter.get_window_stats(self._rate, str(known.index(True)))
            told = f"this key has had its {self._config.rate}; try again later"
            wait = max(1, int(reset - time.time()) + 1)
            raise ApiError(429, told, kind="rate_limit_error", code="rate_limit_exceeded", retry_after_s=wait)


async def send_error(error: ApiError, send: Send) -> None:
    """Answer with an error."""
    body = write_json(error.body)
    told = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
    headers: Sequence[tuple[bytes, bytes]] = [(key.encode(), value.encode()) for key, value in told.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


def _read_rate(rate: str) -> Any:
    try:
        return parse(rate)
    except ValueError as error:
        raise ValueError(f"rate is {rate!r}, which cannot be read; write it as '60/minute'") from error


def _check_head(headers: Headers, most: int) -> None:
    """Refuse a body by what its head tells of it."""
    coding = headers.get("content-encoding", "identity")
    if coding != "identity":
        raise ApiError(415, f"content-encoding is {coding!r}; send the body as it is", code="unsupported_encoding")
    told = headers.get("content-length", "0")
    _check_size(int(told) if told.isdigit() else 0, most)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise ApiError(413, f"the body has more than {most} bytes; send less", code="body_too_large")


async def _read_body(receive: Receive, most: int) -> bytes:
    """A body, no further than it may go."""
    parts, size, is_whole = list[bytes](), 0, False
    while not is_whole:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ApiError(400, "the client left before its request was whole", code="disconnected")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        _check_size(size, most)
        is_whole = not message.get("more_body")
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body at once, then whatever else comes: a disconnect."""
    sent = False

    async def give() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
