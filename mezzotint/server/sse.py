"""Server-sent events: chunks as a stream that comments keep alive while nothing comes; what they say is elsewhere."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any

from mezzotint.server.errors import ApiError

MEDIA_TYPE = "text/event-stream"
HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
DONE = b"data: [DONE]\n\n"
_ALIVE = b": alive\n\n"


def write_event(data: Any, event: str | None = None) -> bytes:
    """One event. JSON has no raw line break, so a reader may cut the stream anywhere and join it again."""
    name = b"" if event is None else b"event: " + event.encode() + b"\n"
    return name + b"data: " + write_json(data) + b"\n\n"


def write_json(data: Any) -> bytes:
    """Compact JSON in UTF-8; half a surrogate pair, which UTF-8 has not, is escaped."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        errors="backslashreplace"
    )


async def write_stream(
    chunks: AsyncGenerator[bytes, None], keep_alive_s: float, done: bytes = b""
) -> AsyncIterator[bytes]:
    """Chunks as they come, a comment after each silence, `done` behind the last.

    What fails on the way becomes an event with an `error`, after which nothing comes: the status has been sent.
    Closing it closes `chunks`, which cancels what they are made from.
    """
    pending: asyncio.Task[bytes] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(chunks))
            ready, _ = await asyncio.wait({pending}, timeout=keep_alive_s)
            if not ready:
                yield _ALIVE
                continue
            arrived, pending = pending, None
            try:
                yield arrived.result()
            except StopAsyncIteration:
                break
        yield done
    except ApiError as error:
        yield write_event(error.body)
    finally:
        if pending is not None:
            pending.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, ApiError):
                await pending
        await chunks.aclose()
