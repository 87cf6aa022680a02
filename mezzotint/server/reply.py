"""How an answer leaves: as one body, or as a stream; and what becomes of it when the client leaves first."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

import anyio
from fastapi import Request
from starlette.responses import Response, StreamingResponse

from mezzotint.server.errors import ApiError
from mezzotint.server.sse import HEADERS, MEDIA_TYPE, write_json, write_stream

T = TypeVar("T")
Chunk = dict[str, Any]
Chunks = AsyncGenerator[Chunk, None]


async def reply(
    request: Request,
    chunks: Chunks,
    fold: Callable[[Chunks], Coroutine[Any, Any, Chunk]],
    write: Callable[[Chunk], bytes],
    *,
    stream: bool,
    keep_alive_s: float,
    headers: Mapping[str, str],
    done: bytes = b"",
) -> Response:
    """Chunks as a stream, or folded into one body. Whoever leaves cancels what is being made for him.

    write: a chunk as an event. What is refused before the first chunk has a status of its own. Raises: ApiError.
    """
    if not stream:
        return reply_json(await until_gone(request, fold(chunks)), headers=headers)
    first = await anext(chunks)

    async def written() -> AsyncGenerator[bytes, None]:
        try:
            yield write(first)
            async for chunk in chunks:
                yield write(chunk)
        finally:
            await chunks.aclose()

    body = write_stream(written(), keep_alive_s, done)
    return StreamingResponse(body, media_type=MEDIA_TYPE, headers={**HEADERS, **headers})


async def until_gone(request: Request, work: Awaitable[T]) -> T:
    """Do something for as long as the client is there.

    Raises: ApiError 499, which nobody reads, once it is gone; the work is cancelled then.
    """
    done: list[T] = []
    raised: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            done.append(await work)
        except Exception as error:  # as it is, not as one of a group
            raised.append(error)
        tasks.cancel_scope.cancel()
    if raised:
        raise raised[0]
    if not done:
        raise ApiError(499, "the client left", kind="server_error", code="disconnected")
    return done[0]


def reply_json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """One body."""
    return Response(write_json(body), status, headers, "application/json")
