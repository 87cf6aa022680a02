"""Real clients before a real server: a process of its own, asked by programs from venvs of their own."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from tests.disk import ROOT

CLIENTS = ROOT / ".venv-e2e"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get("MEZZOTINT_E2E"):
        reason = pytest.mark.skip(reason="real clients are asked by `make e2e`, which installs them")
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(reason)


class Served(NamedTuple):
    """A server as its clients see it."""

    url: str
    process: "subprocess.Popen[str]"

    @property
    def v1(self) -> str:
        return f"{self.url}/v1"


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    given = [sys.executable, "-m", "mezzotint", "serve", "--port", "0", "--kv-bytes", str(256 << 20)]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().rsplit(" ", 1)[-1].strip()
        until = time.monotonic() + 60
        while True:
            try:
                if httpx2.get(f"{url}/health/ready").status_code == 200:
                    break
            except httpx2.HTTPError:
                assert time.monotonic() < until, "the server is not ready after a minute"
                time.sleep(0.05)
        yield Served(url, process)
        process.terminate()
        assert process.wait(timeout=40) == 0


@pytest.fixture(scope="session")
def run() -> Callable[..., str]:
    """Run a program of a client's venv. Returns: what it printed, errors too."""

    def run_program(client: str, *command: str, folder: Path = ROOT, timeout_s: float = 240, **environment: str) -> str:
        program = CLIENTS / client / "bin" / command[0]
        assert program.is_file(), f"{program} is missing; run `make e2e`"
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        done = subprocess.run(
            [str(program), *command[1:]],
            env=plain | {"OMP_NUM_THREADS": "1"} | environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return run_program
