"""Streams of chunks, wherever their bytes are cut."""

import json
from typing import Any

import pytest

from mezzotint.bench.stream import Event, read_stream, split_events
from mezzotint.bench.wire import Piece
from tests.bench.scripted import event

WHOLE = (
    b': alive\n\nevent: note\ndata: {"a":\ndata: 1}\n\n'
    + "data: ÿ✓\n\n".encode()
    + b"data: [DONE]\r\n\r\ndata: half an event"
)


def test_events_are_the_same_wherever_the_bytes_are_cut() -> None:
    wanted = [("note", '{"a":\n1}'), ("", "ÿ✓"), ("", "[DONE]")]
    for at in range(len(WHOLE)):
        events = split_events([Piece(0.0, WHOLE[:at]), Piece(1.0, WHOLE[at:])])
        assert [(each.name, each.data) for each in events] == wanted


def test_an_event_comes_when_its_last_byte_does() -> None:
    pieces = [Piece(1.0, b"data: a\n"), Piece(2.0, b"\ndata: b\n\nda"), Piece(3.0, b"ta: c\n\n")]
    assert list(split_events(pieces)) == [Event(2.0, "", "a"), Event(2.0, "", "b"), Event(3.0, "", "c")]


def delta(**said: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": said}])


END = event(choices=[{"index": 0, "delta": {}, "finish_reason": "tool_calls"}])


def test_a_message_is_put_together_from_its_deltas_and_only_those_that_say_something_arrive() -> None:
    call: list[dict[str, Any]] = [
        {"index": 0, "id": "x", "function": {"name": "find", "arguments": '{"a"'}},
        {"index": 0, "function": {"arguments": ": 1}"}},
    ]
    parts = [
        delta(role="assistant", content=""),
        delta(reasoning_content="so"),
        delta(content="ye"),
        delta(content="s"),
        event(choices=[{"index": 0, "delta": {}}], x_diffusion={"text": "draft"}),
        delta(tool_calls=call[:1]),
        delta(tool_calls=call[1:]),
        END,
        event(choices=[], usage={"completion_tokens": 3}, metrics={"faults": ["odd"]}),
    ]
    said = read_stream([Piece(float(at), part) for at, part in enumerate(parts)])
    assert said.failure == ""
    assert said.message["content"] == "yes"
    assert said.message["reasoning_content"] == "so"
    assert said.message["faults"] == ["odd"]
    [made] = said.message["tool_calls"]
    assert (made["id"], json.loads(made["function"]["arguments"])) == ("x", {"a": 1})
    assert said.arrivals == [1, 2, 3, 5, 6]
    assert said.lengths == [0, 2, 3, 3, 3]
    assert (said.finish_reason, said.usage) == ("tool_calls", {"completion_tokens": 3})


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        (b'event: error\ndata: {"message": "broke"}\n\n', "stream error"),
        (b'data: {"error": {"message": "broke"}}\n\n', "stream error"),
        (b"data: <html>\n\n", "garbage"),
        (b"data: [1]\n\n", "garbage"),
        (b"", "broken stream"),
        (b"data: [DONE]\n\n", "broken stream"),
    ],
)
def test_a_stream_that_breaks_is_a_failure_though_text_came_before(data: bytes, failure: str) -> None:
    said = read_stream([Piece(0.0, delta(content="yes")), Piece(1.0, data)])
    assert said.failure == failure


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"content": "a"}, "finish_reason": 7}]},
        {"choices": [3]},
        {"choices": 3},
        {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": {}, "name": 5}}]}}]},
        {"metrics": 7},
        {"usage": "much"},
    ],
)
def test_a_chunk_of_another_form_is_garbage_and_no_crash(chunk: dict[str, Any]) -> None:
    said = read_stream([Piece(0.0, event(**chunk))])
    assert said.failure == "garbage"
