"""A server on this machine that answers as a test says, and what it was asked; no test lives here."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

Reply = Callable[[str, dict[str, Any]], tuple[int, Mapping[str, Any]]]


class Scripted(NamedTuple):
    """Where it listens, and the path and body of each request."""

    url: str
    asked: list[tuple[str, dict[str, Any]]]


def chat(content: str, *, reason: str = "stop", **more: Any) -> tuple[int, dict[str, Any]]:
    """A whole answer in OpenAI's form."""
    message = {"role": "assistant", "content": content, **more.pop("message", {})}
    choice = {"index": 0, "finish_reason": reason, "message": message}
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    return 200, {**head, "choices": [choice], "usage": usage, **more}


@contextmanager
def scripted(reply: Reply) -> Iterator[Scripted]:
    asked: list[tuple[str, dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append((self.path, body))
            status, told = reply(self.path, body)
            said = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            if status in (429, 503):
                self.send_header("retry-after", "7")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield Scripted(f"http://127.0.0.1:{server.server_address[1]}/v1", asked)
        finally:
            server.shutdown()
            thread.join()
