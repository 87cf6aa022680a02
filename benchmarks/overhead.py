"""What the server adds to an engine's own time: chats over loopback, answered by an engine that takes none.

    python -m benchmarks.overhead

The server is a process of its own. A request is measured whole; a block is the slope between answers of 1 and of 101.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from multiprocessing.connection import Connection
from statistics import median, quantiles
from typing import Any

import httpx2
import uvicorn

from benchmarks.machine import describe_run
from benchmarks.report import markdown_table, run_table
from mezzotint.decoding.program import Block, Finished, Prefilled
from mezzotint.engine.config import EngineConfig
from mezzotint.llm.checkpoint import load_checkpoint
from mezzotint.llm.entry import Asked
from mezzotint.llm.events import Completion, Event
from mezzotint.llm.fold import Fold, Spent
from mezzotint.server import Backend, ServerConfig, make_app
from mezzotint.server.run import open_socket

FEW, MANY, WIDTH = 1, 101, 16  # blocks of an answer, and tokens of a block
REQUEST_MS, BLOCK_MS = 5.0, 1.0  # what may be added


class NullBackend(Backend):
    """One whose answers cost nothing: as many blocks as 16 go into max_tokens, of one token each repeated."""

    async def answer(
        self, asked: Asked, *, deadline_s: float | None = None, priority: int = 0
    ) -> AsyncGenerator[Event, None]:
        """See Backend.answer."""
        fold = Fold(asked, self.checkpoint, None)
        [token] = self.tokenizer.encode_text("a")
        fold.push(Prefilled(len(asked.ids)))
        for block in range(asked.params.max_tokens // WIDTH):
            for event in fold.push(Block(block, [token] * WIDTH, 1)):
                yield event
        for event in fold.push(Finished("length", 0)):
            yield event
        completion: Completion = fold.complete(Spent())
        self.on_answer(completion.receipt)
        yield completion


def main(arguments: Sequence[str]) -> int:
    """Measure, print Markdown. Returns: 1 if a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="requests of each kind")
    options = parser.parse_args(arguments)
    if options.n < 20:
        parser.error(f"--n is {options.n}; give 20 or more, or a 95th percentile says nothing")
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    url = here.recv()
    print(run_table(describe_run(arguments, "overhead")), flush=True)
    rows, is_met = [], True
    with httpx2.Client(base_url=url) as http:
        for stream in (False, True):
            few, many = measure(http, options.n, stream=stream)
            block = (median(many) - median(few)) / (MANY - FEW)
            is_met &= median(few) <= REQUEST_MS and block <= BLOCK_MS
            p95 = quantiles(few, n=20)[-1]
            rows.append(
                ["streamed" if stream else "whole", f"{median(few):.2f}", f"{p95:.2f}", f"{block:.3f}", str(options.n)]
            )
    process.terminate()
    process.join()
    head = ["reply", f"ms a request, p50 (≤ {REQUEST_MS:g})", "p95", f"ms a block (≤ {BLOCK_MS:g})", "n"]
    print("", markdown_table(head, rows), sep="\n")
    return 0 if is_met else 1


def measure(http: httpx2.Client, n: int, *, stream: bool) -> tuple[list[float], list[float]]:
    """Milliseconds of requests of few blocks and of many, taken in turn."""
    few, many = list[float](), list[float]()
    for turn in range(2 * n + 10):
        blocks = (FEW, MANY)[turn % 2]
        body: dict[str, Any] = {"model": "lab", "messages": [{"role": "user", "content": "Hello"}], "stream": stream}
        body["max_tokens"] = blocks * WIDTH
        started = time.perf_counter()
        text = http.post("/v1/chat/completions", json=body).text
        taken = (time.perf_counter() - started) * 1000
        if text.count("a" * WIDTH) < 1:
            raise RuntimeError(f"the server answered {text[:200]!r}")
        if turn >= 10:  # the first ones open connections and compile what is lazy
            (few if blocks == FEW else many).append(taken)
    return few, many


def _serve(pipe: Connection) -> None:
    checkpoint = load_checkpoint("lab", dtype=None, device="cpu", threads=1, compiled=False, drafter=None)
    backend = NullBackend("lab", checkpoint, ServerConfig(), EngineConfig(memory_bytes=32 << 20))
    listening = open_socket("127.0.0.1", 0)
    pipe.send(f"http://127.0.0.1:{listening.getsockname()[1]}")
    uvicorn.Server(uvicorn.Config(make_app(backend), log_config=None)).run(sockets=[listening])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
