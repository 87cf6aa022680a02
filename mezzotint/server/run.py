"""A server as a process: its socket, its log, and how it ends; what it answers lives in app."""

import json
import logging
import socket
import sys
import time
from types import FrameType

import uvicorn

from mezzotint.server.app import make_app
from mezzotint.server.backend import Backend
from mezzotint.server.fleet import Fleet

_PATIENCE_S = 30  # that answers under way may take once the server is told to end


def open_socket(host: str, port: int) -> socket.socket:
    """Listen, before a checkpoint is read for nothing. Raises: ValueError where host and port cannot be had."""
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(1024)
    except OSError as error:
        told = f"{host}:{port} cannot be listened on: {error.strerror or error}; choose another --port or --host"
        raise ValueError(told) from error
    return opened


def serve(backend: Backend, listening: socket.socket, fleet: Fleet | None = None) -> None:
    """Answer until SIGTERM or Ctrl-C; answers under way are finished then, for half a minute at most."""
    _set_up_log()
    config = uvicorn.Config(
        make_app(backend, fleet),
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_PATIENCE_S,
        lifespan="on",
    )
    _Server(config, backend).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Uvicorn's, which says that it is not ready any longer as soon as it is told to end."""

    def __init__(self, config: uvicorn.Config, backend: Backend) -> None:
        super().__init__(config)
        self._backend = backend

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._backend.is_ready = False
        self.force_exit = self.should_exit  # told twice, it does not wait; uvicorn's own way would end by the signal
        self.should_exit = True


class _Lines(logging.Formatter):
    """Every record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        told = {"time": round(time.time(), 3), "level": record.levelname.lower(), "event": record.getMessage()}
        told |= getattr(record, "told", {})
        if record.exc_info:
            told["trace"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


def _set_up_log() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
