"""The paths of a fleet: answers that it routes, verdicts that come later, its ledger; choosing lives in router."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Request
from pydantic import Field
from starlette.responses import Response

from mezzotint.server import chat, responses
from mezzotint.server.errors import ApiError
from mezzotint.server.fleet import Fleet, Opened
from mezzotint.server.form import read_format, read_structured, write_calls
from mezzotint.server.history import read_history
from mezzotint.server.protocol import ROUTED, Body, ChatBody, ResponsesBody
from mezzotint.server.reply import reply, reply_json, until_gone
from mezzotint.server.sse import DONE, write_event


class OutcomeBody(Body):
    """POST /v1/router/outcomes: what became of an answer, told later by whoever asked. reason: in words."""

    decision_id: str
    verdict: Literal["accepted", "rejected"]
    score: float | None = Field(default=None, allow_inf_nan=False)
    reason: str | None = None
    verify_ms: float | None = Field(default=None, ge=0, allow_inf_nan=False)


async def route_chat(request: Request, body: ChatBody, fleet: Fleet, keep_alive_s: float) -> Response:
    """Have a chat answered by an arm. Raises: ApiError."""
    _refuse_loop(request, body.model)
    usage = not body.stream or bool(body.stream_options and body.stream_options.include_usage)
    opened = await until_gone(request, fleet.open(read_routed(body), stream=body.stream, usage=usage))
    _note(request, opened)
    how: dict[str, Any] = {"stream": body.stream, "keep_alive_s": keep_alive_s, "headers": opened.headers}
    return await reply(request, opened.chunks, chat.fold_chat, write_event, done=DONE, **how)


async def route_response(request: Request, body: ResponsesBody, fleet: Fleet, keep_alive_s: float) -> Response:
    """The same, told in items and typed events. Raises: ApiError."""
    _refuse_loop(request, body.model)
    asked = read_routed(responses.read_responses(body))
    opened = await until_gone(request, fleet.open(asked, stream=body.stream, usage=True))
    _note(request, opened)
    events = responses.stream_responses(opened.chunks, body)
    how: dict[str, Any] = {"stream": body.stream, "keep_alive_s": keep_alive_s, "headers": opened.headers}
    return await reply(request, events, responses.fold_responses, responses.write, **how)


def _refuse_loop(request: Request, model: str) -> None:
    """Raises: ApiError where a fleet has sent the request here to be routed again, to itself in the end."""
    if ROUTED in request.headers and model.partition(":")[0] == "auto":
        told = f"model is {model!r}, but a fleet has chosen for this request; let its arm name a model, not auto"
        raise ApiError(400, told, code="routed_twice", param="model")


def read_routed(body: ChatBody) -> dict[str, Any]:
    """What of a chat is handed to an arm: everything that shapes the answer.

    Raises: ApiError for what an arm decides itself, or a fleet cannot do.
    """
    if (body.n or 1) > 1:
        told = f"n is {body.n}, and a fleet answers once; ask several times, or name a model of this server"
        raise ApiError(400, told, param="n")
    if body.x_diffusion is not None:
        for name, value in body.x_diffusion.model_dump(exclude={"drafts"}, exclude_none=True).items():
            told = f"x_diffusion.{name} is {value!r}, and an arm brings its own; name a model of this server"
            raise ApiError(400, f"{told}, or leave it out", param=f"x_diffusion.{name}")
    _check_form(body)
    left_out = set(body.inert) | set(body.refused)
    whole: dict[str, Any] = body.model_dump(exclude=left_out, exclude_unset=True, by_alias=True)
    return {name: value for name, value in whole.items() if value is not None}


def _check_form(body: ChatBody) -> None:
    """Whether what is inside of fields can be read, by whichever arm. Raises: ApiError."""
    read_history(body.messages)
    read_format(body.response_format)
    read_structured(body.structured_outputs)
    write_calls(body.tools or [], body.tool_choice or "auto", parallel=True, thinking=False)


def _note(request: Request, opened: Opened) -> None:
    """Have the log say who answered."""
    request.state.told = {name.removeprefix("x-mezzotint-"): told for name, told in opened.headers.items()}


def make_routing(fleet: Fleet) -> APIRouter:
    """Verdicts in, the ledger out."""
    router = APIRouter()

    @router.post("/v1/router/outcomes")
    async def note(body: OutcomeBody, idempotency_key: Annotated[str | None, Header()] = None) -> Response:
        """Say later whether an answer was what was asked for; the same key a second time changes nothing."""
        outcome: Mapping[str, Any] = {
            "decision_id": body.decision_id,
            "verdict": body.verdict,
            "score": body.score,
            "reason": body.reason,
            "verify_ms": body.verify_ms,
        }
        is_new = await fleet.note_outcome(outcome, idempotency_key)
        return reply_json({"object": "router.outcome", **outcome, "new": is_new})

    @router.get("/v1/router/ledger")
    async def ledger() -> Response:
        """What was measured, a row for each arm and class."""
        return reply_json({"object": "list", "data": list(await fleet.table())})

    return router
