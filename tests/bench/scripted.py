"""A server that answers chats as a script says, with known delays; on the test's own event loop, and no test."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from mezzotint.bench.task import Hop, Task, Workload
from mezzotint.types import Verdict

Body = dict[str, Any]
CANVAS: dict[str, Any] = {"semantics": "canvas", "canvas": 8, "step_budget": 6}
METRICS: dict[str, Any] = {"queue_time_ms": 0.0, "diffusion": CANVAS}


@dataclass(frozen=True)
class Reply:
    """What is sent, each part after its delay in seconds. cut: the connection ends before the reply does."""

    parts: Sequence[tuple[float, bytes]]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


Script = Callable[[Body], Reply]


def event(**chunk: Any) -> bytes:
    return b"data: " + json.dumps({"object": "chat.completion.chunk", **chunk}).encode() + b"\n\n"


def say(
    texts: Iterable[str], *, gap_s: float = 0.0, metrics: dict[str, Any] | None = None, tokens: int | None = None
) -> Reply:
    """A whole answer in pieces."""
    pieces = list(texts)
    parts = [(gap_s, event(choices=[{"index": 0, "delta": {"content": text}}])) for text in pieces]
    usage = {"prompt_tokens": 10, "completion_tokens": len(pieces) if tokens is None else tokens}
    last = event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    end = event(choices=[], usage=usage, **({} if metrics is None else {"metrics": metrics}))
    return Reply([*parts, (0.0, last + end + b"data: [DONE]\n\n")])


class Scripted:
    """Answers by its script, and remembers what it was asked."""

    def __init__(self, script: Script) -> None:
        self.asked: list[Body] = []
        self.going = self.most_going = 0
        self._script = script

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n"):
                length = next((int(line[15:]) for line in head if line.startswith(b"content-length:")), 0)
                if not head[0].startswith(b"post"):
                    await self._reply(writer, Reply([(0.0, b"")], status=404))
                    continue
                body = json.loads(await reader.readexactly(length))
                self.asked.append(body)
                self.going += 1
                self.most_going = max(self.most_going, self.going)
                try:
                    await self._reply(writer, self._script(body))
                finally:
                    self.going -= 1
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has left, or the test is over
        finally:
            writer.close()

    async def _reply(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        headers = {"content-type": "text/event-stream", **reply.headers, "transfer-encoding": "chunked"}
        told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {reply.status} said\r\n{told}\r\n".encode())
        for delay_s, data in reply.parts:
            await asyncio.sleep(delay_s)
            if not data:
                continue
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
        if reply.cut:
            raise ConnectionError
        writer.write(b"0\r\n\r\n")


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[tuple[Scripted, str]]:
    """Yields: the server and its URL."""
    scripted = Scripted(script)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    try:
        yield scripted, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@contextmanager
def serving_on_a_thread(script: Script) -> Iterator[str]:
    """Yields: the URL of a server that answers whoever asks, this thread too."""
    loop, ended, urls = asyncio.new_event_loop(), asyncio.Event(), list[str]()

    async def serve() -> None:
        async with serving(script) as (_, url):
            urls.append(url)
            await ended.wait()

    thread = Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    while not urls:
        time.sleep(0.005)
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


class Says:
    """Accepts one text."""

    def __init__(self, right: str) -> None:
        self._right = right

    async def verify(self, messages: Any, answer: Any) -> Verdict:
        is_right = answer["content"] == self._right
        return Verdict(is_right, "" if is_right else "another text")


def hop(question: str = "?", right: str = "yes", **more: Any) -> Hop:
    return Hop(messages=({"role": "user", "content": question},), verifier=Says(right), **more)


def task(index: int = 0, *hops: Hop, **more: Any) -> Task:
    return Task(id=f"task {index}", family="test", seed=index, hops=hops or (hop(),), **more)


def workload(size: int | None = None) -> Workload:
    return Workload(name="test", make=task, note="says yes", digest="test", size=size)
