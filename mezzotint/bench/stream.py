"""What a stream of chunks said: the message, when its pieces came, usage and metrics; judged elsewhere."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mezzotint.bench.wire import Piece


class Event(NamedTuple):
    """One server-sent event, and when its last byte came."""

    at_s: float
    name: str
    data: str


@dataclass
class Said:
    """A whole reply. message: the assistant's, in OpenAI's form. arrivals: of each chunk that added to it; lengths: the
    characters of content that were there by then.

    failure: a category, empty for a reply that is whole; detail: more of it in words.
    """

    message: dict[str, Any] = field(default_factory=lambda: {"role": "assistant", "content": ""})
    arrivals: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    finish_reason: str = ""
    failure: str = ""
    detail: str = ""


def read_stream(pieces: Sequence[Piece]) -> Said:
    """Read a chat's chunks. An event with an error is a failure, and so is an end without a reason to finish."""
    said, calls = Said(), dict[int, dict[str, Any]]()
    for event in split_events(pieces):
        if event.data == "[DONE]":
            break
        try:
            chunk = json.loads(event.data)
        except ValueError:
            return _fail(said, "garbage", event.data)
        if not isinstance(chunk, dict):
            return _fail(said, "garbage", event.data)
        if event.name == "error" or chunk.get("error"):
            return _fail(said, "stream error", event.data)
        try:
            _take(said, calls, chunk, event.at_s)
        except (AttributeError, TypeError):  # JSON, but of a form that no chunk has
            return _fail(said, "garbage", event.data)
    if calls:
        said.message["tool_calls"] = [calls[at] for at in sorted(calls)]
    if faults := said.metrics.get("faults"):
        said.message["faults"] = faults
    return said if said.finish_reason else _fail(said, "broken stream", "it ended without a finish_reason")


def split_events(pieces: Sequence[Piece]) -> Iterator[Event]:
    """The events of a stream wherever its bytes were cut; comments, which keep a stream alive, are none."""
    rest, name, data = b"", "", list[str]()
    for at_s, more in pieces:
        *lines, rest = (rest + more).split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r").decode(errors="replace")
            if not text:
                if data:
                    yield Event(at_s, name, "\n".join(data))
                name, data = "", []
            elif text.startswith("data:"):
                data.append(text[5:].removeprefix(" "))
            elif text.startswith("event:"):
                name = text[6:].strip()


def _take(said: Said, calls: dict[int, dict[str, Any]], chunk: dict[str, Any], at_s: float) -> None:
    """Add what one chunk says. Raises: AttributeError or TypeError for one that has another form."""
    said.usage = {**(chunk.get("usage") or said.usage)}
    said.metrics = {**(chunk.get("metrics") or said.metrics)}
    for choice in chunk.get("choices") or ():
        if _add(said.message, calls, choice.get("delta") or {}):
            said.arrivals.append(at_s)
            said.lengths.append(len(said.message["content"]))
        said.finish_reason = "" + (choice.get("finish_reason") or said.finish_reason)


def _add(message: dict[str, Any], calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> bool:
    """Add a delta to the message. Returns: whether it said anything."""
    added = False
    for key in ("content", "reasoning_content", "reasoning"):
        if text := delta.get(key):
            message[key] = message.get(key, "") + text
            added = True
    for part in delta.get("tool_calls") or ():
        empty: dict[str, Any] = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call, told = calls.setdefault(part.get("index", len(calls)), empty), part.get("function") or {}
        call["id"] = part.get("id") or call["id"]
        for key in ("name", "arguments"):
            call["function"][key] += told.get(key) or ""
        added = True
    return added


def _fail(said: Said, category: str, detail: str) -> Said:
    said.failure, said.detail = category, detail[:500]
    return said
