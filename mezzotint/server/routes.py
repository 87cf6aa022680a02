"""Which path is answered by what; bodies are read in job, answers are made in the files named like the paths."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from mezzotint.server import chat, completions, responses
from mezzotint.server.account import Clock, tell_metrics
from mezzotint.server.backend import Backend
from mezzotint.server.errors import ApiError
from mezzotint.server.fleet import Fleet
from mezzotint.server.history import read_history
from mezzotint.server.job import Job, read_chat, read_completion, read_document, read_infill
from mezzotint.server.pages import make_pages
from mezzotint.server.prometheus import Metrics
from mezzotint.server.protocol import (
    ChatBody,
    ChooseBody,
    CompletionBody,
    DetokenizeBody,
    InfillBody,
    ResponsesBody,
    StreamOptions,
    TokenizeBody,
)
from mezzotint.server.reply import reply, reply_json, until_gone
from mezzotint.server.routing import make_routing, route_chat, route_response
from mezzotint.server.sse import DONE, write_event
from mezzotint.server.target import read_target
from mezzotint.text.prompt import Chat, Prompt


class Figures(Response):
    """Prometheus' text form."""

    media_type = "text/plain; version=0.0.4; charset=utf-8"


def make_router(backend: Backend, metrics: Metrics, started: int, fleet: Fleet | None = None) -> APIRouter:
    """All paths before one backend, and the fleet that it is in, if any.

    started: Unix time, which clients take for the age of a model.
    """
    router = APIRouter()
    _add_texts(router, backend, fleet)
    _add_canvas(router, backend)
    _add_tokens(router, backend)
    _add_models(router, backend, started, fleet)
    _add_state(router, backend, metrics)
    if fleet is not None:
        router.include_router(make_routing(fleet))
    router.include_router(make_pages())
    return router


def _add_texts(router: APIRouter, backend: Backend, fleet: Fleet | None) -> None:
    alive_s = backend.config.keep_alive_s
    routed = () if fleet is None else fleet.names

    @router.post("/v1/chat/completions")
    async def answer_chat(body: ChatBody, request: Request) -> Response:
        """One answer or several to a chat, as OpenAI's clients ask for it."""
        if fleet is not None and body.model in routed:
            return await route_chat(request, body, fleet, alive_s)
        clock, job = Clock(), read_chat(body, backend.name)
        asked = await backend.accept(job)
        usage = _wants_usage(body.stream_options, stream=body.stream)
        chunks = chat.stream_chat(backend, asked, job, chat.head_of(body.model), clock, usage=usage)
        how: dict[str, Any] = {"stream": body.stream, "keep_alive_s": alive_s, "headers": _headers(backend, job)}
        return await reply(request, chunks, chat.fold_chat, write_event, done=DONE, **how)

    @router.post("/v1/completions")
    async def answer_completion(body: CompletionBody, request: Request) -> Response:
        """Text behind text, or between text and its suffix."""
        clock, head = Clock(), completions.head_of(body.model)
        usage = _wants_usage(body.stream_options, stream=body.stream)
        jobs = read_completion(body, backend.name)
        if body.suffix:
            given = str(body.prompt), body.suffix
            chunks = completions.stream_suffix(backend, *given, jobs[0], head, clock, usage=usage)
        else:
            asked = [await backend.accept(job) for job in jobs]
            echo = bool(body.echo)
            chunks = completions.stream_completions(backend, asked, jobs[0], head, clock, usage=usage, echo=echo)
        how: dict[str, Any] = {"stream": body.stream, "keep_alive_s": alive_s, "headers": _headers(backend, jobs[0])}
        return await reply(request, chunks, completions.fold_completions, write_event, done=DONE, **how)

    @router.post("/v1/responses")
    async def answer_response(body: ResponsesBody, request: Request) -> Response:
        """One answer to a talk, in items and typed events."""
        if fleet is not None and body.model in routed:
            return await route_response(request, body, fleet, alive_s)
        clock, asked_chat = Clock(), responses.read_responses(body)
        job = read_chat(asked_chat, backend.name)
        asked = await backend.accept(job)
        chunks = chat.stream_chat(backend, asked, job, chat.head_of(body.model), clock, usage=True)
        events = responses.stream_responses(chunks, body)
        how: dict[str, Any] = {"stream": body.stream, "keep_alive_s": alive_s, "headers": _headers(backend, job)}
        return await reply(request, events, responses.fold_responses, responses.write, **how)


def _add_canvas(router: APIRouter, backend: Backend) -> None:
    @router.post("/v1/choose")
    async def choose(body: ChooseBody, request: Request) -> Response:
        """How likely each of several texts is as the whole answer."""
        target = read_target(body.model, backend.name)
        if target.preset or target.decoder not in (None, "diffusion", "ar"):
            told = f"model is {body.model!r}, but one read of a canvas (diffusion) or the causal pass (ar) chooses"
            raise ApiError(400, told, param="model")
        prompt = _one_prompt(body.prompt, body.messages)
        decoder: Any = target.decoder or "diffusion"
        with backend.admit():
            chosen = await until_gone(request, backend.choose(prompt, body.choices, decoder, body.seed))
        best = max(chosen, key=lambda choice: choice.probability)
        each = [{"index": at, **choice._asdict()} for at, choice in enumerate(chosen)]
        return reply_json({"object": "choice", "model": body.model, "choice": best.text, "choices": each})

    @router.post("/v1/infill")
    async def infill(body: InfillBody, request: Request) -> Response:
        """A document of texts and blanks, the blanks filled."""
        clock, job = Clock(), read_infill(body, backend.name)
        parts = read_document(body.document)
        with backend.admit():
            filled = await until_gone(request, backend.infill(parts, job, body.lengths, raw=body.raw))
        clock.note_first()
        told = {
            "object": "infill",
            "model": body.model,
            "text": filled.text,
            "middles": [middle._asdict() for middle in filled.middles],
            "metrics": tell_metrics([filled.receipt], clock, backend.name),
        }
        return reply_json(told, headers=_headers(backend, job))


def _add_tokens(router: APIRouter, backend: Backend) -> None:
    @router.post("/tokenize")
    async def tokenize(body: TokenizeBody) -> Response:
        """The ids of a prompt, as an answer would follow them."""
        if body.model is not None:
            read_target(body.model, backend.name)
        if body.tools and body.messages is None:
            raise ApiError(400, "tools are given without messages; send the talk", param="tools")
        prompt = _one_prompt(body.prompt, body.messages, body.tools)
        ids = backend.encode(prompt)
        most = backend.checkpoint.limits.max_positions
        return reply_json({"tokens": ids, "count": len(ids), "max_model_len": most})

    @router.post("/detokenize")
    async def detokenize(body: DetokenizeBody) -> Response:
        """The text of ids, control tokens spelled out."""
        if body.model is not None:
            read_target(body.model, backend.name)
        try:
            return reply_json({"prompt": backend.tokenizer.decode(body.tokens, keep_control=True)})
        except ValueError as error:
            raise ApiError(400, str(error), param="tokens") from error


def _add_models(router: APIRouter, backend: Backend, started: int, fleet: Fleet | None) -> None:
    routed = () if fleet is None else fleet.names

    @router.get("/v1/models")
    async def models() -> Response:
        """The model, alone and with each decoder that it knows; what a fleet routes, and its arms."""
        each = [_model(name, backend, started) for name in backend.names]
        return reply_json({"object": "list", "data": [*each, *(_routed(name, started) for name in routed)]})

    @router.get("/v1/models/{name:path}")
    async def model(name: str) -> Response:
        """One of them."""
        if name in routed:
            return reply_json(_routed(name, started))
        read_target(name, backend.name)
        return reply_json(_model(name, backend, started))


def _add_state(router: APIRouter, backend: Backend, metrics: Metrics) -> None:
    @router.get("/health/live")
    async def live() -> Response:
        """Whether the process answers."""
        return reply_json({"status": "live"})

    @router.get("/health")
    @router.get("/health/ready")
    async def ready() -> Response:
        """Whether requests are taken."""
        return reply_json({"status": "ready" if backend.is_ready else "not ready"}, 200 if backend.is_ready else 503)

    @router.get("/metrics", response_class=Figures)
    def scrape() -> Response:
        """Figures for Prometheus."""
        return Figures(metrics.write())


def _wants_usage(options: StreamOptions | None, *, stream: bool) -> bool:
    return not stream or bool(options and options.include_usage)


def _headers(backend: Backend, job: Job) -> dict[str, str]:
    return {"x-mezzotint-arm": backend.arm(job), "x-mezzotint-attempts": "1"}


def _one_prompt(prompt: str | None, messages: Any, tools: Any = None) -> Prompt:
    if (prompt is None) == (messages is None):
        raise ApiError(400, "give one of prompt and messages", param="prompt")
    return Chat(messages=read_history(messages), tools=tools or []) if prompt is None else prompt


def _model(name: str, backend: Backend, started: int) -> dict[str, Any]:
    limits = backend.checkpoint.limits
    told = {"id": name, "object": "model", "created": started, "owned_by": "mezzotint"}
    return {**told, "max_model_len": limits.max_positions, "canvas_length": limits.canvas_length}


def _routed(name: str, started: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": started, "owned_by": "mezzotint"}
