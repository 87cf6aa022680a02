"""Streams of events: whole, kept alive, closed with what feeds them, and readable wherever they are cut."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from mezzotint.server.errors import ApiError
from mezzotint.server.merge import merge
from mezzotint.server.sse import DONE, write_event, write_json, write_stream


class Fed:
    """Chunks with pauses between, and whether their source was closed."""

    def __init__(self, pauses: list[float], error: Exception | None = None) -> None:
        self.pauses, self.error, self.is_closed = pauses, error, False

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            for index, pause in enumerate(self.pauses):
                await asyncio.sleep(pause)
                yield b"%d" % index
            if self.error:
                raise self.error
        finally:
            self.is_closed = True


async def collect(fed: Fed, keep_alive_s: float = 10.0) -> list[bytes]:
    return [piece async for piece in write_stream(fed.chunks(), keep_alive_s, DONE)]


def test_chunks_come_in_order_and_the_end_behind_them() -> None:
    fed = Fed([0, 0, 0])
    assert asyncio.run(collect(fed)) == [b"0", b"1", b"2", DONE]
    assert fed.is_closed


def test_a_silence_is_filled_with_comments_and_loses_nothing() -> None:
    pieces = asyncio.run(collect(Fed([0, 0.1]), keep_alive_s=0.03))
    assert [piece for piece in pieces if not piece.startswith(b":")] == [b"0", b"1", DONE]
    assert pieces.count(b": alive\n\n") >= 2


def test_what_fails_on_the_way_is_told_in_the_stream_and_ends_it() -> None:
    fed = Fed([0], ApiError(504, "too late", kind="timeout", code="deadline"))
    first, last = asyncio.run(collect(fed))
    assert first == b"0"
    assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "deadline"
    assert fed.is_closed


def test_leaving_a_stream_closes_what_feeds_it() -> None:
    async def leave() -> Fed:
        fed = Fed([0, 60])
        stream = write_stream(fed.chunks(), 10.0)
        assert await anext(stream) == b"0"
        task = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return fed

    assert asyncio.run(leave()).is_closed


def test_an_event_can_be_cut_anywhere_and_joined_again() -> None:
    data = {"text": "line\nbreaks\r\n, half a \ud83d pair, \u2028 and \u00e9"}
    written = write_event(data, "name")
    assert written.count(b"\n") == 3
    for cut in range(len(written)):
        name, told, rest = (written[:cut] + written[cut:]).split(b"\n", 2)
        assert (name, rest) == (b"event: name", b"\n")
        assert json.loads(told.removeprefix(b"data: ")) == data


def test_json_that_no_reader_takes_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json({"x": float("nan")})


def test_merged_streams_give_everything_and_close_together_on_an_error() -> None:
    async def both() -> None:
        fed = [Fed([0, 0, 0]), Fed([0, 0])]
        got = [item async for item in merge([each.chunks() for each in fed])]
        assert sorted(got) == [(0, b"0"), (0, b"1"), (0, b"2"), (1, b"0"), (1, b"1")]
        bad = [Fed([0, 60]), Fed([0], ApiError(500, "broken"))]
        with pytest.raises(ApiError, match="broken"):
            _ = [item async for item in merge([each.chunks() for each in bad])]
        assert all(each.is_closed for each in [*fed, *bad])

    asyncio.run(both())
