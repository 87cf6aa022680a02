"""The figures of many requests at once, from end to end on a tiny model: what is printed, stored and refused."""

import json
from pathlib import Path

import pytest

from benchmarks import workload
from benchmarks.concurrency import main
from benchmarks.crossover import Curve, Interval, Point
from benchmarks.sweep_report import say_crossing
from benchmarks.traffic import DECODERS
from benchmarks.workload import TASKS, draw_asks
from mezzotint.evaluate.config import EvaluateConfig
from mezzotint.llm import LLM
from mezzotint.text.parse import encode_reply
from tests.cli.conftest import write_tiny

INF = float("inf")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_tiny(tmp_path_factory.mktemp("concurrency") / "tiny", canvas_length=8, sees=False))


def test_every_decoder_is_measured_at_every_concurrency_over_the_same_prompts(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "answer_limit", lambda llm, example: 12)
    file = tmp_path / "found.json"
    asked = ["--model", model, "--prompts", "3", "--concurrency", "2,1", "--decoders", "diffusion,ar,verified"]
    main([*asked, "--tasks", "extract,call", "--json", str(file)])
    printed = capsys.readouterr().out
    for level in (1, 2):
        for decoder in ("diffusion", "ar", "verified"):
            assert f"\n| {level} | {decoder} | " in printed
        for decoder in ("diffusion", "verified"):
            assert f"\n| {level} | {decoder} ÷ ar | " in printed
    assert "\n| verified ÷ ar | none in range" in printed or "\n| verified ÷ ar | 1." in printed
    assert "n = 3: a 95th percentile rests on 1 answers" in printed
    found = json.loads(file.read_text())
    assert "benchmarks.concurrency" in found["run"]["command"]
    points = {(point["concurrency"], point["decoder"]): point for point in found["points"]}
    assert len(points) == 6
    for (level, _), point in points.items():
        answers = point["answers"]
        assert point["n"] == len(answers["tokens"]) == 3
        rate = level * sum(answers["tokens"]) / sum(answers["latency_s"])
        assert point["tokens_per_s"] == pytest.approx(rate)
    assert points[1, "ar"]["tokens_per_forward"] == 1
    assert points[1, "diffusion"]["step_budget"] == 6
    assert len(found["ratios"]) == 2 * 2 * 3
    assert len(found["crossings"]) == 2 * 3


def test_a_bundled_drafter_is_measured_too(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--prompts", "2", "--concurrency", "2", "--decoders", "mtp"])
    [row] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| 2 | mtp | ")]
    accepted = row.split(" | ")[-2]
    assert accepted == "2 of 2"
    assert float(row.split(" | ")[7]) > 1


def test_a_right_answer_is_taken_and_a_wrong_one_is_not(model: str) -> None:
    llm = LLM(model)
    tasks = TASKS[:2]  # the third takes seconds to begin
    asks = draw_asks(llm, tasks, 6)
    assert [(ask.task, ask.seed) for ask in asks] == [(task, seed) for seed in (0, 1, 2) for task in tasks]
    assert llm.tokenizer is not None
    for ask in asks:
        right = encode_reply(ask.example.reply, llm.tokenizer)
        assert ask.is_right(right, llm)
        assert not ask.is_right(right[1:], llm)
        assert len(right) < ask.max_tokens
        requests = [ask.request(arm) for arm in EvaluateConfig(decoders=("diffusion", "ar")).arms]
        assert [request.params.temperature for request in requests] == [1, 0]
        assert len({request.prompt for request in requests}) == 1


@pytest.mark.parametrize(
    ("ratios", "crossing", "interval", "said"),
    [
        ((2.0, 0.5), 2.0, (1.5, 3.2), "2.0 (1.5 to 3.2), above 1 before it"),
        ((0.5, 2.0), 2.0, (0.0, INF), "2.0 (< 1 to > 4), below 1 before it"),
        ((2.0, 1.5), None, (INF, INF), "none in range (above 1 from 1 to 4)"),
        ((0.9, 0.2), None, (0.0, INF), "none in range (below 1 from 1 to 4)"),
    ],
)
def test_a_crossing_is_said_with_its_side(
    ratios: tuple[float, float], crossing: float | None, interval: tuple[float, float], said: str
) -> None:
    points = [Point(level, ratio, Interval(ratio, ratio)) for level, ratio in zip((1, 4), ratios, strict=True)]
    assert say_crossing(Curve(points, crossing, Interval(*interval))) == said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--versus-transformers", "lab", "--prompts", "3"], "--prompts is for runs without --versus-transformers"),
        (["--versus-transformers", "lab", "--model", "lab"], "--model is for runs without --versus-transformers"),
        (["--rounds", "3"], "--rounds is for runs with --versus-transformers; drop one"),
        (["--prompts", "0"], "--prompts is 0; give 1 or more"),
        (["--versus-transformers", "lab", "--rounds", "0"], "--rounds is 0; give 1 or more"),
        (["--concurrency", "1,x"], "'x' is no whole number from 1 up; give some, with commas"),
        (["--concurrency", "0"], "'0' is no whole number from 1 up"),
        (["--decoders", "ar,beam"], f"'beam' is none of {', '.join(DECODERS)}"),
        (["--tasks", "infill"], f"'infill' is none of {', '.join(TASKS)}"),
        (["--threads", "0"], "'0' is no number of threads; give 1 or more"),
    ],
)
def test_what_a_run_would_ignore_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err
