"""A server on a thread, for tests that speak HTTP to it; no test lives here."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import uvicorn

from mezzotint.engine.config import EngineConfig
from mezzotint.llm.checkpoint import load_checkpoint
from mezzotint.server import Backend, ServerConfig, make_app
from mezzotint.server.fleet import Fleet
from mezzotint.server.run import open_socket

SIZES = EngineConfig(memory_bytes=64 << 20)


class Running(NamedTuple):
    """Where a server listens, and what answers there."""

    url: str
    backend: Backend


def make_backend(config: ServerConfig | None = None, sizes: EngineConfig = SIZES) -> Backend:
    """lab's weights, not started."""
    checkpoint = load_checkpoint("lab", dtype="float32", device="cpu", threads=None, compiled=False, drafter=None)
    return Backend("lab", checkpoint, config or ServerConfig(), sizes)


@contextmanager
def serving(backend: Backend, fleet: Fleet | None = None) -> Iterator[Running]:
    """Serve over HTTP until the block ends."""
    listening: socket.socket = open_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_app(backend, fleet), log_config=None, timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield Running(f"http://127.0.0.1:{listening.getsockname()[1]}", backend)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
