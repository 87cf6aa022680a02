"""The playground in headless Chromium: playground/check.mjs uses it, and each of its checks is a test here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.conftest import CLIENTS, Served

SCRIPT = Path(__file__).parent / "playground" / "check.mjs"
INSTALLED = CLIENTS / "playground"
CHECKS = (
    "a chat streams its canvas step by step",
    "the scrubber replays every step",
    "a request copied as curl or Python",
    "a schema is judged as it is written, and holds the answer",
    "a text is JSON, its beginning, or neither",
    "a talk goes on, and a new one begins",
    "a completion goes on from its text",
    "a selection is rewritten, kept or left",
    "two decoders race",
    "tabs obey the arrow keys, and a question is asked and stopped without a mouse",
    "an error of the server is told in words",
    "everything that can be used has a name",
    "a key is asked for once and kept for the session",
    "it can be read in light at 1280 pixels",
    "it can be read in dark at 1280 pixels",
    "it can be read in light at 360 pixels",
    "it can be read in dark at 360 pixels",
    "the console stays silent",
    "nothing is asked of another host",
)


class Found(NamedTuple):
    """What came of one check."""

    fault: str | None
    found: Any


@pytest.fixture(scope="module")
def checked(served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Found]:
    node, browser = shutil.which("node"), shutil.which("chromium")
    if node is None or browser is None:
        pytest.skip(f"{'node' if node is None else 'chromium'} is not on this machine; install it")
    if not (INSTALLED / "node_modules" / "playwright-core").is_dir():
        pytest.skip(f"playwright-core is missing; npm install --prefix {INSTALLED} playwright-core")
    shots = Path(os.environ.get("MEZZOTINT_SHOTS") or tmp_path_factory.mktemp("shots"))
    given = [node, str(SCRIPT), served.url, str(INSTALLED), browser, str(shots)]
    done = subprocess.run(given, capture_output=True, text=True, timeout=540, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(list(shots.glob("*.png"))) >= 16
    return {each["name"]: Found(each["fault"], each["found"]) for each in told}


@pytest.mark.parametrize("name", CHECKS)
def test_of_the_playground(checked: dict[str, Found], name: str) -> None:
    assert checked[name].fault is None, checked[name].fault


def test_every_check_of_the_script_is_a_test(checked: dict[str, Found]) -> None:
    assert tuple(checked) == CHECKS


def test_what_is_copied_runs_and_gives_the_same_answer(checked: dict[str, Found]) -> None:
    copied = checked["a request copied as curl or Python"].found
    told = _run(["bash", "-c", copied["chat-curl"]])
    assert json.loads(told)["choices"][0]["message"]["content"] == copied["answer"]
    assert copied["answer"] in _run([sys.executable, "-c", copied["chat-python"]])
    filled = json.loads(_run(["bash", "-c", copied["infill-curl"]]))["text"]
    assert filled in _run([sys.executable, "-c", copied["infill-python"]])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
