"""Our task runner beside AIPerf, before one server whose delays are known: without retries they measure the same."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mezzotint.cli import app
from mezzotint.tasks import FAMILIES
from tests.bench.scripted import Body, Reply, say, serving_on_a_thread
from tests.disk import ROOT

PROMPTS, PIECES = 24, 4
TEXTS = [str(FAMILIES["extract"].generate(seed, "test").messages[0]["content"]) for seed in range(PROMPTS)]


def known_s(text: str) -> float:
    """What the server takes to answer: 80 to 240 ms, by the prompt."""
    return 0.08 + len(text) % 17 / 100


def answer(body: Body) -> Reply:
    [message] = body["messages"]
    content = message["content"]
    text = content if isinstance(content, str) else content[0]["text"]
    return say(["piece "] * PIECES, gap_s=known_s(text) / PIECES)


@pytest.fixture
def url() -> Iterator[str]:
    with serving_on_a_thread(answer) as there:
        yield there


def seconds_of_aiperf(run: Callable[..., str], url: str, folder: Path) -> list[float]:
    prompts = folder / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    asked = ["--model", "lab", "--url", url, "--endpoint-type", "chat", "--streaming", "--use-server-token-count"]
    asked += ["--tokenizer", str(ROOT / "mezzotint/checkpoints/lab"), "--input-file", str(prompts)]
    asked += ["--custom-dataset-type", "single_turn", "--request-count", str(PROMPTS), "--concurrency", "1"]
    run(
        "aiperf",
        "aiperf",
        "profile",
        *asked,
        "--ui",
        "none",
        "--output-artifact-dir",
        str(folder / "out"),
        folder=folder,
    )
    lines = (folder / "out" / "profile_export.jsonl").read_text().splitlines()
    return [json.loads(line)["metrics"]["request_latency"]["value"] / 1000 for line in lines]


def seconds_of_ours(url: str, folder: Path) -> list[float]:
    tasks = folder / "tasks.jsonl"
    tasks.write_text("\n".join(json.dumps({"messages": [{"role": "user", "content": text}]}) for text in TEXTS))
    asked = ["--tasks", str(tasks), "--n", str(PROMPTS), "--rounds", "1", "--max-attempts", "1"]
    told = CliRunner().invoke(app, ["bench", "run", "--url", url, "-m", "lab", *asked, "--output", str(folder)])
    assert told.exit_code == 0, told.output
    requests = [json.loads(line)["requests"] for line in (folder / "run.jsonl").read_text().splitlines()]
    assert all(len(each) == 1 for each in requests)
    return [each[0]["ended_s"] - each[0]["sent_s"] for each in requests]


def interval(seconds: Sequence[float]) -> tuple[float, float]:
    """Of the mean, 95 %."""
    picked = np.random.default_rng(0).integers(len(seconds), size=(2000, len(seconds)))
    low, high = np.quantile(np.array(seconds)[picked].mean(1), (0.025, 0.975))
    return float(low), float(high)


def test_requests_take_as_long_by_our_runner_as_by_aiperf(url: str, run: Callable[..., str], tmp_path: Path) -> None:
    theirs, ours = seconds_of_aiperf(run, url, tmp_path), seconds_of_ours(url, tmp_path)
    assert len(theirs) == len(ours) == PROMPTS
    known = float(np.mean([known_s(text) for text in TEXTS]))
    assert known <= np.mean(ours) < 1.25 * known
    (low, high), (least, most) = interval(ours), interval(theirs)
    assert abs(np.mean(ours) - np.mean(theirs)) <= 0.1 * np.mean(theirs), (np.mean(ours), np.mean(theirs))
    assert low <= most
    assert least <= high
