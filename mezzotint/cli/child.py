"""A server of our own beside the command that measures it: started on a free port, and gone when the command ends."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.error import URLError
from urllib.request import urlopen

_READY_S = 300.0  # loading, and machine code where it is not there yet
_PATIENCE_S = 40.0  # more than the server takes to finish what is under way


@contextmanager
def running_server(flags: Sequence[str], log: Path) -> Iterator[str]:
    """Run `mezzotint serve` with flags, and what it says on standard error in the file `log`.

    Yields: its URL, once it is ready. Ctrl-C and SIGTERM end it too.
    Raises: ValueError with the end of what it said, where it does not get ready.
    """
    command = [sys.executable, "-m", "mezzotint", "serve", "--host", "127.0.0.1", "--port", "0", *flags]
    with log.open("w", encoding="utf-8") as file, _exit_on_sigterm():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True, start_new_session=True)
        try:
            yield _await_url(process, log)
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _await_url(process: "subprocess.Popen[str]", log: Path) -> str:
    assert process.stdout is not None  # it was asked for
    said = process.stdout.readline()
    url = said.rsplit(" ", 1)[-1].strip()
    until = time.monotonic() + _READY_S
    while process.poll() is None and url.startswith("http") and time.monotonic() < until:
        try:
            with urlopen(f"{url}/health/ready", timeout=5):
                return url
        except (URLError, TimeoutError):
            time.sleep(0.1)
    last = " ".join(log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:])
    raise ValueError(f"the server that is to be measured did not get ready; {log} ends with: {last[-600:]}")


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    def leave(_signal: int, _frame: FrameType | None) -> NoReturn:
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
