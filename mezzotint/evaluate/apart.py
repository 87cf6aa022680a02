"""Holds values to JSON Schemas in a process of its own, which is stopped where one takes too long.

Some schemas take more steps than anyone can wait for, and the library that counts them stops for nobody; what a schema
may be is said in verify.
"""

import atexit
import json
import resource
import select
import subprocess
import sys
import threading
from functools import cache, lru_cache
from typing import IO, Any

import jsonschema_rs

# Expressions run in time linear in the text; those that cannot, with backreferences or lookaround, are refused.
EXPRESSIONS = jsonschema_rs.RegexOptions(size_limit=1 << 20)
_TIME_S = 2.0  # that one value may take
_START_S = 30.0  # that the process may take to begin on a busy machine
_MEMORY_BYTES = 1 << 30
_LONGEST_REASON = 300  # characters


def find_fault(schema: str, value: str) -> str | None:
    """Hold a value to a schema, both as JSON.

    Returns: why the schema refuses it; None where it does not.
    Raises: TimeoutError where that took too long.
    """
    return _worker().ask(schema, value)


def compare(schema: str, value: str) -> str | None:
    """What `find_fault` says, worked out in this process however long that takes."""
    try:
        read = json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return f"it is no JSON: {error}"[:_LONGEST_REASON]
    try:
        _compile(schema).validate(read)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        place = "".join(f"/{step}" for step in getattr(error, "instance_path", ()))
        told = getattr(error, "message", str(error))
        return (f"at {place}: {told}" if place else told)[:_LONGEST_REASON]
    return None


def compile_schema(schema: Any) -> jsonschema_rs.Validator:
    """Make a schema ready; nothing is fetched for it, and formats are held to as well.

    Raises: ValueError naming what is wrong with it.
    """
    try:
        return jsonschema_rs.validator_for(schema, pattern_options=EXPRESSIONS, validate_formats=True, offline=True)
    except jsonschema_rs.ValidationError as error:
        place = "".join(f"/{step}" for step in error.instance_path)
        raise ValueError(f"{error.message} (at {place or '/'})") from None


class _Worker:
    """A process that compares one value after another, begun again after it was stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        atexit.register(self.stop)

    def ask(self, schema: str, value: str) -> str | None:
        with self._lock:
            process = self._process = self._process or _begin()
            try:
                print(json.dumps([schema, value]), file=process.stdin, flush=True)
                said = _read_line(process.stdout, _TIME_S)
            except (OSError, TimeoutError):
                self.stop()
                told = f"more than {_TIME_S:g} s or {_MEMORY_BYTES >> 20} MB"
                raise TimeoutError(f"holding the answer to its schema took {told}") from None
        fault: str | None = json.loads(said)
        return fault

    def stop(self) -> None:
        if (process := self._process) is None:
            return
        self._process = None
        process.kill()
        process.communicate()


def _begin() -> subprocess.Popen[str]:
    command = [sys.executable, "-P", __file__]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    _read_line(process.stdout, _START_S)
    return process


def _read_line(stream: IO[str] | None, time_s: float) -> str:
    """The one line that an answer is. Raises: TimeoutError unless it comes in time."""
    assert stream is not None  # it is a pipe
    ready, _, _ = select.select([stream], [], [], time_s)
    if not ready or not (line := stream.readline()):
        raise TimeoutError
    return line


@cache
def _worker() -> _Worker:
    return _Worker()


@lru_cache(maxsize=64)
def _compile(schema: str) -> jsonschema_rs.Validator:
    return compile_schema(json.loads(schema))


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number in JSON")


def _serve() -> None:
    """Answer the questions of the process that began this one, until it is gone."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    print(flush=True)
    for line in sys.stdin:
        print(json.dumps(compare(*json.loads(line))), flush=True)


if __name__ == "__main__":
    _serve()
