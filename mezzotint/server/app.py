"""The HTTP application: routes before one backend, what all of them pass, and errors in one shape."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mezzotint import __version__
from mezzotint.server.backend import Backend
from mezzotint.server.errors import ApiError
from mezzotint.server.fleet import Fleet
from mezzotint.server.guard import Guard
from mezzotint.server.prometheus import Metrics
from mezzotint.server.reply import reply_json
from mezzotint.server.routes import make_router

_KIND = re.compile(r"(?:str|int|bool|list\[.*|dict\[.*|\w+Body)")  # of a union, where pydantic names what it tried
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The request is wrong; `error` names the field, its value and the remedy."},
    401: {"description": "No known API key was sent."},
    404: {"description": "No such model."},
    413: {"description": "The body is too large."},
    422: {"description": "No attempt of a fleet was accepted by what the request asked to be verified."},
    429: {"description": "Too many requests wait; Retry-After says when to try again."},
    500: {"description": "The engine failed; the server goes on."},
    502: {"description": "Every arm of a fleet that was tried failed."},
    503: {"description": "The server starts or stops."},
    504: {"description": "The deadline has passed."},
}


def make_app(backend: Backend, fleet: Fleet | None = None) -> FastAPI:
    """Every route before one backend and its fleet, if any, which start and stop with the application."""

    @asynccontextmanager
    async def live(_app: FastAPI) -> AsyncIterator[None]:
        await anyio.to_thread.run_sync(backend.start)
        if fleet is not None:
            await fleet.start()
        yield
        if fleet is not None:
            await fleet.stop()
        await anyio.to_thread.run_sync(backend.stop)

    app = FastAPI(
        title="Mezzotint", version=__version__, lifespan=live, docs_url=None, redoc_url=None, responses=_REFUSALS
    )
    metrics = Metrics(backend)
    backend.on_answer = metrics.count_answer
    if fleet is not None:
        fleet.on_attempt, fleet.on_settled = metrics.count_attempt, metrics.count_settled
    app.include_router(make_router(backend, metrics, int(time.time()), fleet))
    # A fleet may have room elsewhere, of which only its arms can tell.
    check_room = backend.check_room if fleet is None else lambda: None
    app.add_middleware(Guard, config=backend.config, count=metrics.count_request, check_room=check_room)
    app.add_middleware(  # outside the guard, so that pages elsewhere can read its refusals too
        CORSMiddleware,
        allow_origins=list(backend.config.cors_origins),
        allow_methods=["*"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "x-mezzotint-arm", "x-mezzotint-attempts", "x-mezzotint-decision-id"],
    )
    app.exception_handler(ApiError)(_tell_error)
    app.exception_handler(RequestValidationError)(_tell_invalid)
    app.exception_handler(HTTPException)(_tell_http)
    app.exception_handler(Exception)(_tell_bug)
    _name_models(app, [*backend.names, *(() if fleet is None else fleet.names)])
    return app


def _name_models(app: FastAPI, names: list[str]) -> None:
    """Say in the schema which models there are."""
    schema = app.openapi()
    for part in schema["components"]["schemas"].values():
        if "model" in part.get("properties", {}):
            part["properties"]["model"] |= {"examples": names}


async def _tell_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return reply_json(error.body, error.status, error.headers)


async def _tell_invalid(_request: Request, error: Exception) -> Response:
    """The first thing that is wrong with a body, by the name of its field."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:] if not _KIND.fullmatch(str(part)))
    told = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        told = f"{place} is no field that is known here; leave it out"
    elif first["type"] == "json_invalid":
        told, place = f"the body is no JSON: {first.get('ctx', {}).get('error', told)}", ""
    elif first["loc"] == ("body",) and first["type"] in ("model_attributes_type", "missing"):
        told, place = "the body is no JSON object; send one, under content-type: application/json", ""
    elif place:
        told = f"{place}: {told}"
    return reply_json(ApiError(400, told, param=place or _field_of(told)).body, 400)


def _field_of(told: str) -> str | None:
    """The field with which a sentence of ours begins."""
    word = told.split(" ")[0]
    return word if "_" in word or told.startswith(f"{word} is ") else None


async def _tell_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind: Any = "not_found_error" if error.status_code == 404 else "invalid_request_error"
    told = ApiError(error.status_code, str(error.detail), kind=kind)
    return reply_json(told.body, error.status_code, dict(error.headers or {}))


async def _tell_bug(_request: Request, error: Exception) -> Response:
    """What nobody foresaw: the server logs it and goes on."""
    told = ApiError(500, f"the server failed: {type(error).__name__}", kind="server_error", code="bug")
    return reply_json(told.body, 500)
