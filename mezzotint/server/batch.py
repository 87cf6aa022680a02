"""Bulk work without HTTP: a file of requests, as OpenAI's batches have them, answered line by line into another file.

    {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {...}}

Each answer is written as soon as it is whole. Started again, it goes on where it was: what has an answer, or was
refused, is not asked again; what failed on our side is.
"""

import asyncio
import fcntl
import json
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from pydantic import ValidationError

from mezzotint.server import chat, completions, responses
from mezzotint.server.account import Clock
from mezzotint.server.backend import Backend
from mezzotint.server.errors import ApiError
from mezzotint.server.job import read_chat, read_completion
from mezzotint.server.protocol import Body, ChatBody, CompletionBody, ResponsesBody

_BEGINS = '{"id": "batch_req_'  # every answer
_LOG = logging.getLogger(__name__)
_BODIES: dict[str, type[Body]] = {
    "/v1/chat/completions": ChatBody,
    "/v1/completions": CompletionBody,
    "/v1/responses": ResponsesBody,
}


class Line(NamedTuple):
    """One request of a file."""

    custom_id: str
    url: str
    body: Mapping[str, Any]


class Progress(NamedTuple):
    """How far a file has come: lines in all, and those that are written, of which some are errors."""

    lines: int
    written: int
    errors: int


def read_lines(file: Path) -> list[Line]:
    """Read a file of requests whole, before any is answered.

    Raises: ValueError naming the line and what is wrong with it.
    """
    lines: dict[str, Line] = {}
    for number, text in enumerate(file.read_text(encoding="utf-8-sig").split("\n"), 1):
        if not text.strip():
            continue
        where = f"{file}, line {number}"
        try:
            given = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{where} is no JSON: {error}; correct or remove it") from error
        line = _read_line(given, where)
        if line.custom_id in lines:
            raise ValueError(f"{where} has the custom_id {line.custom_id!r} of an earlier line; give each its own")
        lines[line.custom_id] = line
    return list(lines.values())


def _read_line(given: Any, where: str) -> Line:
    if not isinstance(given, dict) or not isinstance(given.get("custom_id"), str):
        raise ValueError(f'{where} has no custom_id; write {{"custom_id": ..., "url": ..., "body": {{...}}}}')
    if given.get("method", "POST") != "POST" or given.get("url") not in _BODIES:
        told = f"{given.get('method', 'POST')} {given.get('url')}"
        raise ValueError(f"{where} asks for {told}; known are POST {', '.join(_BODIES)}")
    if not isinstance(given.get("body"), dict):
        raise ValueError(f"{where} has the body {given.get('body')!r}; send an object")
    return Line(given["custom_id"], given["url"], given["body"])


async def run_batch(
    backend: Backend, lines: list[Line], output: Path, at_once: int, show: Callable[[Progress], None]
) -> Progress:
    """Answer what `output` does not hold yet, `at_once` lines at a time, each written when it is whole.

    Returns: where it ended. Raises: ValueError if another process writes that file, or it is of other requests.
    """
    with _open_output(output) as (file, done):
        if strangers := done.keys() - {line.custom_id for line in lines}:
            told = f"it holds an answer to {min(strangers)!r}, which is not asked for here; name another --output"
            raise ValueError(f"{output} is of other requests: {told}")
        errors = sum(status != 200 for status in done.values())
        progress = Progress(len(lines), len(done), errors)
        show(progress)
        left = iter([line for line in lines if line.custom_id not in done])

        async def work() -> None:
            nonlocal progress
            for line in left:
                status, told = await _answer(backend, line)
                _write(file, line, status, told)
                written, failed = progress.written + 1, progress.errors + (status != 200)
                progress = Progress(len(lines), written, failed)
                show(progress)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(at_once):
                tasks.create_task(work())
        return progress


async def _answer(backend: Backend, line: Line) -> tuple[int, dict[str, Any]]:
    """Returns: the status that HTTP would have, and the body."""
    try:
        if line.body.get("stream"):
            raise ApiError(400, "stream is true, and a line is answered whole; leave it out", param="stream")
        return 200, await answer_whole(backend, _BODIES[line.url].model_validate(line.body))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return 400, ApiError(400, f"{place}: {first['msg']}", param=place).body
    except ApiError as error:
        return error.status, error.body
    except Exception as error:  # of one line; the others are answered all the same
        _LOG.exception("a line could not be answered")
        told = f"the answer failed: {type(error).__name__}"
        return 500, ApiError(500, told, kind="server_error", code="bug").body


async def answer_whole(backend: Backend, body: Body) -> dict[str, Any]:
    """The whole reply to a body, as its path gives it. Raises: ApiError."""
    clock = Clock()
    if isinstance(body, CompletionBody):
        jobs = read_completion(body, backend.name)
        head = completions.head_of(body.model)
        if body.suffix:
            given = str(body.prompt), body.suffix
            filled = completions.stream_suffix(backend, *given, jobs[0], head, clock, usage=True)
            return await completions.fold_completions(filled)
        asked = [await backend.accept(job) for job in jobs]
        echo = bool(body.echo)
        return await completions.fold_completions(
            completions.stream_completions(backend, asked, jobs[0], head, clock, usage=True, echo=echo)
        )
    assert isinstance(body, ChatBody | ResponsesBody)
    job = read_chat(body if isinstance(body, ChatBody) else responses.read_responses(body), backend.name)
    head = chat.head_of(body.model)
    chunks = chat.stream_chat(backend, await backend.accept(job), job, head, clock, usage=True)
    if isinstance(body, ChatBody):
        return await chat.fold_chat(chunks)
    return await responses.fold_responses(responses.stream_responses(chunks, body))


@contextmanager
def _open_output(path: Path) -> Iterator[tuple[TextIO, dict[str, int]]]:
    """A file to append to, alone, and the status of each line that it holds for good.

    A last line that a kill cut short, and what failed on our side, are taken out first: what is kept is written beside
    the file and takes its place whole. Raises: ValueError if another process writes it, or it holds anything else.
    """
    with path.open("a+", encoding="utf-8") as file:
        _lock(file, path)
        file.seek(0)
        held = file.read()
        answers = _read_answers(held, path)
        kept = [each for each in answers if each.status < 500 and each.status != 429]
        text = "".join(each.text for each in kept)
        statuses = {each.custom_id: each.status for each in kept}
        if text == held:
            yield file, statuses
            return
    beside = path.with_name(f"{path.name}.kept")
    with beside.open("w", encoding="utf-8") as file:
        _lock(file, path)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        beside.replace(path)
        yield file, statuses


def _lock(file: TextIO, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ValueError(f"{path} is being written by another process; wait, or name another --output") from error


class _Held(NamedTuple):
    custom_id: str
    status: int
    text: str


def _read_answers(held: str, path: Path) -> list[_Held]:
    """The answers of a file, without a last one that was cut short."""
    *lines, rest = held.split("\n")
    answers = [_read_answer(f"{line}\n") for line in lines]
    is_ours = rest.startswith(_BEGINS[: len(rest)])
    for line, answer in zip([*lines, rest], [*answers, is_ours], strict=True):
        if not answer:
            raise ValueError(f"{path} holds {line[:60]!r}, which is no answer; name another --output")
    return [answer for answer in answers if answer is not None]


def _read_answer(text: str) -> _Held | None:
    try:
        told = json.loads(text)
        return _Held(told["custom_id"], told["response"]["status_code"], text)
    except (ValueError, KeyError, TypeError):
        return None


def _write(file: TextIO, line: Line, status: int, told: dict[str, Any]) -> None:
    response = {"status_code": status, "request_id": secrets.token_hex(12), "body": told}
    error = None if status == 200 else told["error"]
    whole = {
        "id": f"batch_req_{secrets.token_hex(12)}",
        "custom_id": line.custom_id,
        "response": response,
        "error": error,
    }
    file.write(json.dumps(whole) + "\n")
    file.flush()
    os.fsync(file.fileno())
