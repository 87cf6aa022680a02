"""A server that answers by a script: text, latency and faults, in plain asyncio; no test lives here."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

Fault = Literal["", "reset", "cut", "stall", "no_json", "no_chunk", "html", "error", "no_end", "no_done"]
USAGE = {"prompt_tokens": 8, "completion_tokens": 4, "total_tokens": 12}


@dataclass(frozen=True, kw_only=True)
class Script:
    """What happens to one request.

    pieces: of the answer's text. first_s: before the first, between_s: before each other. fault: what happens instead
    of piece `at`: a connection that is reset or cut, a stall, data that are no JSON or no chunk, a page instead of a
    stream, an error event; or an end without a finish reason, or a stream that is never closed behind its end.
    usage: as it is told; None tells none.
    """

    pieces: tuple[str, ...] = ("Hello", " world", ".")
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    first_s: float = 0.0
    between_s: float = 0.0
    fault: Fault = ""
    at: int = 0
    usage: Mapping[str, Any] | None = field(default_factory=lambda: USAGE)
    deltas: tuple[Mapping[str, Any], ...] = ()
    metrics: Any = None


class Replay:
    """One server: the script of each request in turn, the last one for all further."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts: Sequence[Script] = scripts or (Script(),)
        self.asked: list[dict[str, Any]] = []
        self.heads: list[str] = []
        self.left = self.waits = self.answered = self.open = self.most_open = 0
        self.is_healthy = True
        self.url = ""
        self._tasks: list[Any] = []
        self._writers: list[asyncio.StreamWriter] = []

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator["Replay"]:
        """Listen until the block ends."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.gather(*self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.append(asyncio.current_task())
        self._writers.append(writer)
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                self.heads.append(head)
                sizes = [line.split(":")[1] for line in head.lower().splitlines() if line.startswith("content-length")]
                body = await reader.readexactly(int(sizes[0]) if sizes else 0)
                if head.startswith("GET"):
                    status = 200 if self.is_healthy else 503
                    writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode())
                    continue
                self.asked.append(json.loads(body))
                script = self.scripts[min(len(self.asked), len(self.scripts)) - 1]
                self.open += 1
                self.most_open = max(self.open, self.most_open)
                try:
                    await self._answer(script, reader, writer)
                finally:
                    self.open -= 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if script.status != 200 or script.fault == "html":
            await self._wait(script.first_s, reader)
            body = b"<html>sorry</html>" if script.fault == "html" else b'{"error": {"message": "the script says no"}}'
            lines = [f"{name}: {value}" for name, value in script.headers.items()]
            told = [f"HTTP/1.1 {script.status} X", f"content-length: {len(body)}", *lines]
            writer.write("\r\n".join(told).encode() + b"\r\n\r\n" + body)
            return
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for at, piece in enumerate((*script.pieces, "")):
            await self._wait(script.between_s if at else script.first_s, reader)
            if script.fault and at == script.at and script.fault not in ("no_end", "no_done"):
                await self._fail(script.fault, reader, writer)
                return
            if piece:
                _event(writer, {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
                await writer.drain()
        for event in _ends(script):
            _event(writer, event)
        if script.fault == "no_done":
            await self._wait(30.0, reader)
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()
        self.answered += 1

    async def _fail(self, fault: Fault, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        match fault:
            case "stall":
                await self._wait(30.0, reader)
            case "no_json":
                _raw(writer, "data: {no json\n\n")
            case "no_chunk":
                _event(writer, {"choices": "none"})
            case "error":
                _event(writer, {"error": {"message": "the script failed"}})
        await writer.drain()
        if fault == "reset":
            writer.transport.abort()
        raise ConnectionResetError

    async def _wait(self, seconds: float, reader: asyncio.StreamReader) -> None:
        """Sleep, unless the client leaves meanwhile."""
        if not seconds:
            return
        self.waits += 1
        try:
            async with asyncio.timeout(seconds):
                await reader.read(1)
        except TimeoutError:
            return
        self.left += 1
        raise ConnectionResetError


def _ends(script: Script) -> Iterator[dict[str, Any]]:
    for delta in script.deltas:
        yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    if script.fault != "no_end":
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    if script.usage is not None:
        yield {"choices": [], "usage": script.usage, "metrics": script.metrics}


def _event(writer: asyncio.StreamWriter, event: Mapping[str, Any]) -> None:
    _raw(writer, f"data: {json.dumps(event)}\n\n")


def _raw(writer: asyncio.StreamWriter, text: str) -> None:
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
