"""The HTTP application: which path is answered by what; what answers are lives in the rooms' other files."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from mezzotint.server import chat, completions
from mezzotint.server.account import Clock
from mezzotint.server.backend import Backend
from mezzotint.server.errors import ApiError
from mezzotint.server.guard import Guard
from mezzotint.server.job import read_chat, read_completion
from mezzotint.server.prometheus import Metrics
from mezzotint.server.protocol import ChatBody, CompletionBody
from mezzotint.server.sse import DONE, HEADERS, MEDIA_TYPE, write_event, write_json, write_stream

T = TypeVar("T")
Chunk = dict[str, Any]


def make_app(backend: Backend) -> FastAPI:
    """Every route before one backend, which starts and stops with the application."""

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        backend.start()
        yield
        await anyio.to_thread.run_sync(backend.stop)

    app = FastAPI(title="Mezzotint", lifespan=live, docs_url=None, redoc_url=None)
    metrics = Metrics(backend)
    _add_texts(app, backend)
    app.add_middleware(
        CORSMiddleware, allow_origins=list(backend.config.cors_origins), allow_methods=["*"], allow_headers=["*"]
    )
    app.add_middleware(Guard, config=backend.config)
    app.exception_handler(ApiError)(_tell_error)
    app.exception_handler(RequestValidationError)(_tell_invalid)
    app.exception_handler(HTTPException)(_tell_http)
    app.state.metrics = metrics
    return app


def _add_texts(app: FastAPI, backend: Backend) -> None:
    @app.post("/v1/chat/completions")
    async def answer_chat(body: ChatBody, request: Request) -> Response:
        clock, job = Clock(), read_chat(body, backend.name)
        asked = await backend.accept(job)
        usage = not body.stream or bool(body.stream_options and body.stream_options.include_usage)
        chunks = chat.stream_chat(backend, asked, job, chat.head_of(body.model), clock, usage=usage)
        return await reply(request, chunks, chat.fold_chat, backend, stream=body.stream)

    @app.post("/v1/completions")
    async def answer_completion(body: CompletionBody, request: Request) -> Response:
        clock, head = Clock(), completions.head_of(body.model)
        usage = not body.stream or bool(body.stream_options and body.stream_options.include_usage)
        jobs = read_completion(body, backend.name)
        asked = [await backend.accept(job) for job in jobs]
        chunks = completions.stream_completions(
            backend, asked, jobs[0], head, clock, usage=usage, echo=bool(body.echo)
        )
        return await reply(request, chunks, completions.fold_completions, backend, stream=body.stream)


async def reply(
    request: Request,
    chunks: AsyncGenerator[Chunk, None],
    fold: Callable[[AsyncGenerator[Chunk, None]], Awaitable[Chunk]],
    backend: Backend,
    *,
    stream: bool,
) -> Response:
    """Chunks as a stream, or folded into one body. Whoever leaves cancels what is being made for him.

    What is refused before the first chunk has a status of its own.
    """
    if not stream:
        return _json(await until_gone(request, fold(chunks)))
    first = await anext(chunks)

    async def all_of_them() -> AsyncGenerator[bytes, None]:
        try:
            yield write_event(first)
            async for chunk in chunks:
                yield write_event(chunk)
        finally:
            await chunks.aclose()

    body = write_stream(all_of_them(), backend.config.keep_alive_s, DONE)
    return StreamingResponse(body, media_type=MEDIA_TYPE, headers=HEADERS)


async def until_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do something for as long as the client is there. Raises: ApiError 499, which nobody reads, once it is gone."""
    done: list[T] = []
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        done.append(await work)
        tasks.cancel_scope.cancel()
    if not done:
        raise ApiError(499, "the client left", kind="server_error", code="disconnected")
    return done[0]


def _json(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(write_json(body), status, headers, "application/json")


async def _tell_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _json(error.body, error.status, error.headers)


async def _tell_invalid(_request: Request, error: Exception) -> Response:
    """The first thing that is wrong with a body, by the name of its field."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])
    told = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        told = f"{place} is no field that is known here; leave it out"
    elif first["type"] == "json_invalid":
        told, place = f"the body is no JSON: {first.get('ctx', {}).get('error', told)}", ""
    elif place:
        told = f"{place}: {told}"
    return _json(ApiError(400, told, param=place or told.split(" ")[0]).body, 400)


async def _tell_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = "not_found_error" if error.status_code == 404 else "invalid_request_error"
    told = ApiError(error.status_code, str(error.detail), kind=kind)  # type: ignore[arg-type]
    return _json(told.body, error.status_code, dict(error.headers or {}))
