"""`mezzotint bench`: from flags to a report, with a server of its own and with one that is there already."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mezzotint.bench.config import BenchConfig
from mezzotint.bench.play import PlayConfig
from mezzotint.cli import app
from tests.bench.scripted import Body, Reply, say, serving_on_a_thread


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


def answer(body: Body) -> Reply:
    """Repeats the last line, which the family `repeat` wants."""
    return say([body["messages"][-1]["content"].splitlines()[-1]], gap_s=0.002)


@pytest.fixture
def url() -> Iterator[str]:
    with serving_on_a_thread(answer) as there:
        yield there


def test_one_load_is_measured_reported_and_found_finished_the_next_time(url: str, tmp_path: Path) -> None:
    asked = ["run", "--url", url, "-m", "model", "--tasks", "repeat", "--n", 6, "--output", tmp_path]
    first = invoke(*asked, "--json")
    assert first.exit_code == 0, first.output
    told = json.loads(first.stdout)
    [row] = told["rows"]
    assert (row["arm"], row["load"], row["n"]) == ("model", "1 at once", 6)
    assert row["figures"]["e2e_p50"]["value"] >= 0.002
    assert (tmp_path / "run.html").stat().st_size > 1_000_000
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 6
    again = invoke(*asked, "--json")
    assert json.loads(again.stdout)["rows"] == told["rows"], "nothing was measured again"
    (tmp_path / "run.html").unlink()
    shown = invoke("report", "--output", tmp_path)
    assert shown.exit_code == 0
    assert (tmp_path / "run.html").is_file()
    assert "1 at once" in shown.stdout
    other = invoke(*asked, "--max-attempts", 3)
    assert other.exit_code == 2
    assert "play.max_attempts was 2 and is 3; give the same flags, or another --name or --output" in other.stderr


@pytest.mark.parametrize("flags", [[], ["--tell-verdicts"]], ids=["silent", "told"])
def test_a_router_learns_what_became_of_its_answers_where_that_is_asked_for(flags: list[str], tmp_path: Path) -> None:
    told: list[Body] = []

    def script(body: Body) -> Reply:
        if "verdict" not in body:
            return say(["wrong"], metrics={"queue_time_ms": 0.0, "route": {"arm": "ar", "decision_id": "d"}})
        told.append(body)
        return Reply([(0.0, b"{}")], headers={"content-type": "application/json"})

    with serving_on_a_thread(script) as url:
        asked = ["--url", url, "-m", "m", "--tasks", "repeat", "--n", 2, "--warm-up", 0, "--max-attempts", 1]
        assert invoke("run", *asked, "--output", tmp_path, *flags).exit_code == 0
    assert [body["verdict"] for body in told] == ["rejected"] * (2 * len(flags))


def test_a_terminal_sees_a_bar(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich then takes any stream for a terminal
    asked = ["run", "--url", url, "-m", "model", "--tasks", "repeat", "--n", 4, "--output", tmp_path]
    result = invoke(*asked, "--json")
    assert "4/4" in result.stderr
    assert len(json.loads(result.stdout)["rows"]) == 1


def test_arms_are_compared_over_loads_and_at_one(url: str, tmp_path: Path) -> None:
    common = ["--url", url, "-m", "a", "-m", "b,retry=a", "--tasks", "repeat", "--n", 4, "--output", tmp_path, "--json"]
    crossed = json.loads(invoke("crossover", *common, "--concurrency", "2,1").stdout)
    assert [row["load"] for row in crossed["rows"]] == ["1 at once"] * 2 + ["2 at once"] * 2
    assert [each["measure"] for each in crossed["crossovers"]] == ["median", "expected"]
    front = json.loads(invoke("pareto", *common, "--rate", "200", "--arrival", "constant").stdout)
    assert [row["load"] for row in front["rows"]] == ["200/s constant"] * 2
    assert {path.name for path in tmp_path.glob("*.html")} == {"crossover.html", "pareto.html"}


def test_a_users_file_is_asked_with_its_own_verifiers(url: str, tmp_path: Path) -> None:
    lines = [
        {"messages": [{"role": "user", "content": f"Say\n{word}"}], "verifier": {"type": "exact", "value": right}}
        for word, right in (("yes", "yes"), ("no", "yes"))
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    told = invoke("run", "--url", url, "-m", "m", "--tasks", file, "--n", 2, "--output", tmp_path / "out", "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["rows"][0]["figures"]["acceptance_rate"]["value"] == 0.5


def test_a_checkpoint_is_served_for_the_measurement_and_its_server_is_gone_afterwards(
    tiny: Path, tmp_path: Path
) -> None:
    result = invoke("run", tiny, "--tasks", "repeat", "--n", 2, "--max-tokens", 8, "--output", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    [row] = json.loads(result.stdout)["rows"]
    assert row["arm"] == f"{tiny.name}:diffusion"
    assert row["figures"]["e2e_p50"]["semantics"] == "canvas"
    assert row["figures"]["e2e_p50"]["step_budget"] == "6"
    assert row["errors"] == {}
    log = (tmp_path / "run.server.log").read_text()
    assert "Finished server process" in log


def test_a_server_that_does_not_get_ready_is_told_with_its_last_words(tmp_path: Path) -> None:
    result = invoke("run", "no/such/model", "--output", tmp_path)
    assert result.exit_code == 2
    assert "did not get ready" in result.stderr
    assert "no/such/model" in result.stderr


@pytest.mark.slow
def test_ctrl_c_stops_the_server_too_and_keeps_what_is_finished(tiny: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mezzotint", "bench", "run", str(tiny), "--tasks", "repeat", "--n", "400"]
    given = [*command, "--rounds", "200", "--max-tokens", "8", "--output", str(tmp_path)]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stderr is not None
        assert "finished" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        process.wait(60)
    assert process.returncode != 0
    assert "interrupted; the same command goes on" in said
    assert "Finished server process" in (tmp_path / "run.server.log").read_text()
    assert (tmp_path / "run.html").is_file()
    assert (tmp_path / "run.jsonl").read_text().count("\n") >= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--url", "http://x"], "--url is http://x, but no model is named; name those that answer there by -m"),
        (
            ["run", "--url", "http://x", "-m", "m", "--prefix-cache"],
            "--prefix-cache is of a server that is started here",
        ),
        (["run", "--tasks", "chess"], "task is 'chess', which is no family that chats can ask"),
        (["run", "--tasks", "agent", "--scale", "2"], "--scale is for traces, but --tasks is 'agent'; drop it"),
        (["run", "--hops", "3"], "--hops is for agent, but --tasks is 'extract'; drop it"),
        (["run", "--retrieval", "nan"], "--retrieval is nan; give 0 or more seconds"),
        (["run", "--retrieval", "-1"], "--retrieval is -1; give 0 or more seconds"),
        (["run", "--tasks", "agent", "--tool-wait", "nan"], "--tool-wait is nan; give 0 or more seconds"),
        (["run", "--temperature", "nan"], "--temperature is nan; give 0 or more"),
        (["run", "--name", "../x"], "--name is '../x', which names a place and no run; leave out what leads elsewhere"),
        (["run", "--max-in-flight", "4"], "--max-in-flight is 4, which is for --rate and traces; drop it"),
        (["run", "--unsafe"], "--unsafe is for files"),
        (["run", "--concurrency", "1", "--rate", "2"], "--concurrency and --rate both say when tasks arrive"),
        (["run", "--concurrency", "1,2"], "give one load, or compare several by `mezzotint bench crossover`"),
        (["run", "--concurrency", "many"], "--concurrency is 'many'; write numbers"),
        (["run", "--arrival", "poisson"], "--arrival is 'poisson' without --rate"),
        (["run", "--rate", "1", "--arrival", "uniform"], "--arrival is 'uniform'; write poisson or constant"),
        (["run", "--speed", "2"], "--speed is for traces, and extract is none"),
        (["run", "--goal", "tta"], "--goal is tta; write FIGURE=SECONDS"),
        (["run", "--api-key-env", "NO_SUCH_KEY", "--url", "http://x", "-m", "m"], "--api-key-env is NO_SUCH_KEY, but"),
        (["crossover", "--decoder", "ar"], "crossover compares arms, and there is one"),
        (["crossover", "--decoder", "ar", "-m", "a", "-m", "b"], "--decoder is ar, and arms are named by -m"),
        (["pareto", "--steps", "4", "-m", "a"], "--steps is 4, and arms are named by -m; write MODEL@STEPS there"),
        (["report"], "which holds no bench.sqlite"),
    ],
)
def test_what_cannot_be_honoured_is_refused(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = invoke(*arguments, "--output", tmp_path)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_help_names_the_defaults_that_the_room_has() -> None:
    def help_of(*verb: str) -> str:
        shown = CliRunner(env={"COLUMNS": "300", "TERM": "dumb"}).invoke(app, ["bench", *verb, "--help"])
        return " ".join(shown.stdout.split())

    text = help_of("run")
    play = PlayConfig()
    usual: dict[str, Any] = {
        "each load": BenchConfig.tasks,
        "seeds of requests": BenchConfig.seed,
        "then B A": BenchConfig.rounds,
        "is dropped": BenchConfig.max_in_flight,
        "is given up": f"{play.deadline_s:g}",
        "at one hop": play.max_attempts,
        "doubled each time": f"{play.backoff_s:g}",
        "Most tokens of an answer": play.max_tokens,
    }
    for words, value in usual.items():
        assert f"{words}; {value} unless given" in text
