"""`mezzotint evaluate --suite`: rows for a checkpoint and for a server, a judge, and flags that do not go together."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mezzotint.cli import app
from mezzotint.evaluate.suite_table import LEGEND
from tests.evaluate.scripted import Reply, chat, scripted

EXACT = {"type": "exact", "value": "yes"}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Two tasks; who says yes has both right."""
    tasks = [{"id": id, "prompt": f"{id}?", "max_tokens": 8} for id in "ab"]
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    (tmp_path / "own" / "verifier.json").write_text(json.dumps(EXACT))
    return str(tmp_path / "own")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def evaluate(*arguments: object) -> dict[str, Any]:
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def say(text: str) -> Reply:
    return lambda path, body: chat(text)


def test_a_checkpoint_is_asked_in_epochs_and_goes_on_with_its_file(tiny: Path, folder: str, tmp_path: Path) -> None:
    output = tmp_path / "answers.jsonl"
    options = (tiny, "--suite", folder, "--steps", 2, "--seed", 3, "--output", output)
    [row] = evaluate(*options, "--epochs", 2)["rows"]
    assert (row["suite"], row["model"], row["decoder"], row["sampler"]) == ("own", "tiny", "diffusion", "report")
    assert (row["step_budget"], row["temperature"], row["tasks"], row["epochs"], row["k"]) == (2, 1.0, 2, 2, 2)
    assert (row["answers"], row["errors"], row["pass_rate"]) == (4, 0, 0.0)
    assert row["tokens_per_forward"] > 0
    written = output.read_text()
    assert evaluate(*options, "--epochs", 2)["rows"] == [row]
    assert output.read_text() == written
    records = [json.loads(line) for line in written.splitlines()[1:]]
    assert len({record["seed"] for record in records}) == 4
    refused = invoke(*options, "--decoder", "ar")
    assert refused.exit_code == 2


def test_a_server_is_asked_and_its_row_has_what_it_tells(folder: str) -> None:
    metrics = {"diffusion": {"forwards": 2, "denoise_steps": [2], "sampler": "report", "step_budget": 16}}
    with scripted(lambda path, body: chat("yes" if "a" in str(body) else "no", metrics=metrics)) as server:
        arguments = ("--suite", folder, "--url", server.url, "-m", "lab", "--temperature", "0.5")
        [row] = evaluate(*arguments)["rows"]
        table = invoke(*arguments).stdout
    assert len(server.asked) == 4
    assert {body["temperature"] for _, body in server.asked} == {0.5}
    assert (row["model"], row["url"], row["decoder"], row["step_budget"]) == ("lab", server.url, None, 16)
    assert (row["tokens_per_forward"], row["steps"], row["answers"]) == (2.5, 2.0, 2)
    assert table.rstrip().endswith(LEGEND)


def test_what_a_suite_leaves_out_is_told(data_dir: Path) -> None:
    with scripted(say("no")) as server:
        arguments = ("--suite", "mbpp", "--n", 1, "--data", data_dir, "--url", server.url, "-m", "x", "--unsafe")
        told = evaluate(*arguments)
        shown = invoke(*arguments).stdout
    assert list(told["skipped"]) == ["367"]
    assert "mbpp: left out 367: its own solution fails its own tests" in shown


def test_a_judge_grades_and_compares(folder: str, tmp_path: Path) -> None:
    def judge(path: str, body: dict[str, Any]) -> Any:
        shown = json.loads(body["messages"][1]["content"])
        if "A" in shown:
            return chat(json.dumps({"better": "A" if shown["A"] == "yes" else "B"}))
        return chat(json.dumps({"grade": 5 if shown["answer"] == "yes" else 1}))

    with scripted(judge) as wise, scripted(say("yes")) as good, scripted(say("no")) as bad:
        asked = ("--suite", folder, "-m", "x")
        evaluate(*asked, "--url", bad.url, "--output", tmp_path / "bad")
        judged = (*asked, "--url", good.url, "--judge-url", wise.url, "--judge-model", "wise")
        told = evaluate(*judged, "--against", tmp_path / "bad")
        shown = invoke(*judged, "--retests", 0, "--rubric", "be kind").stdout
    assert (told["judge"]["agreement"], told["judge"]["flips"], told["judge"]["mean_grade"]) == (1.0, 0.0, 5.0)
    assert (told["comparison"]["wins"], told["comparison"]["unscored"]) == (2, 0)
    assert "judge and verifiers agree on 100.0% of 2 answers" in shown
    assert any("Rubric: be kind" in body["messages"][0]["content"] for _, body in wise.asked)


def test_a_task_may_be_judged_by_the_judge_alone(tmp_path: Path) -> None:
    task = {"id": "a", "prompt": "?", "verifier": {"type": "judge", "rubric": "is kind", "grades": 3, "least": 3}}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
    with scripted(say('{"grade": 3}')) as wise, scripted(say("yes")) as server:
        asked = ("--suite", tmp_path, "--url", server.url, "-m", "x")
        refused = invoke(*asked)
        assert "line 1: type is 'judge', but no judge is there" in refused.stderr
        [row] = evaluate(*asked, "--judge-url", wise.url, "--judge-model", "wise")["rows"]
    assert row["pass_rate"] == 1.0


def test_a_file_to_compare_with_that_holds_no_answers_is_refused_before_anything_is_asked(
    folder: str, tmp_path: Path
) -> None:
    other = tmp_path / "thesis.txt"
    other.write_text("{}\n")
    judge = ("--judge-url", "http://x/v1", "--judge-model", "w", "--against", other)
    with scripted(say("Paris")) as server:
        result = invoke("--suite", folder, "--url", server.url, "-m", "x", *judge)
    assert result.exit_code == 2
    assert "thesis.txt holds no answers of `mezzotint evaluate --suite`" in result.stderr
    assert server.asked == []


def test_no_model_judges_itself_unless_that_is_meant(folder: str) -> None:
    with scripted(say("yes")) as server:
        asked = ("--suite", folder, "--url", server.url, "-m", "x:ar")
        judged = (*asked, "--judge-url", server.url, "--judge-model", "x")
        refused = invoke(*judged)
        assert refused.exit_code == 2
        assert "the model under test; name another one, or say --judge-self" in refused.stderr
        assert server.asked == []
        told = evaluate(*judged, "--judge-self")
    assert told["judge"]["unscored"] == 4  # "yes" is no verdict


def test_answers_that_are_missing_are_told_and_the_exit_code_says_so(folder: str) -> None:
    def answer(path: str, body: dict[str, Any]) -> Any:
        return chat("yes") if "a?" in str(body) else (400, {"error": {"message": "too long"}})

    with scripted(answer) as server:
        result = invoke("--suite", folder, "--url", server.url, "-m", "x", "--at-once", 1)
    assert result.exit_code == 1
    assert "1 answers are missing; the same command with --output asks for them again" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--epochs", 2), "--epochs is for suites: name one by --suite, or drop it"),
        (("--judge-self",), "--judge-self is for suites"),
        (("--suite", "extract", "--tasks", "call"), "--tasks is 'call', but --suite 'extract'; give one of them"),
        (("--suite", "chess"), "suite is 'chess'; choose from humaneval"),
        (("--suite", "extract", "--url", "http://x/v1"), "--url needs the model's name there; give it by -m"),
        (("lab:ar", "--suite", "extract", "--url", "http://x/v1", "-m", "x"), "a checkpoint and how it runs are named"),
        (("--suite", "extract", "-m", "x"), "--name is 'x', which is for --url"),
        (("--suite", "extract", "--at-once", 2), "--at-once is 2, but a checkpoint here is asked one by one"),
        (("--suite", "extract", "--steps", "4,8"), "--steps is '4,8'; a suite is asked with one budget"),
        (("--suite", "extract", "--decoder", "ar", "--epochs", 2), "decoder ar at temperature 0 answers alike"),
        (("--suite", "extract", "--form", "loose"), "form is 'loose'; choose from free, grammar"),
        (("--suite", "extract", "--url", "http://x/v1", "-m", "x", "--form", "loose"), "form is 'loose'; choose from"),
        (("--suite", "extract", "--url", "http://x/v1", "-m", "x", "--temperature", "nan"), "temperature is nan; give"),
        (("--suite", "extract", "--url", "ftp://x/v1", "-m", "x"), "--url is 'ftp://x/v1'; write http://HOST"),
        (("--suite", "extract", "--preset", "quick"), "preset is 'quick'; choose from"),
        (("--suite", "extract", "--preset", "best", "--steps", 4), "preset 'best' decides decoder, sampler and steps"),
        (("--suite", "extract", "--decoder", "beam"), "decoder is 'beam'; choose one of"),
        (("--suite", "extract", "--epochs", 2, "--k", 3), "k is 3; take 1 to 2"),
        (("--suite", "extract", "--url", "http://x/v1", "-m", "x", "--at-once", 0), "at_once is 0; ask at least 1"),
        (("--suite", "extract", "--rubric", "be kind"), "a judge needs --judge-url and --judge-model; give both"),
        (("--suite", "extract", "--judge-url", "http://x", "--judge-model", "w", "--retests", -1), "--retests is -1"),
        (("--suite", "extract", "--command", "lint"), "--command is 'lint'; write NAME=COMMAND"),
    ],
)
def test_flags_that_do_not_go_together_are_refused_by_name(
    tiny: Path, arguments: tuple[object, ...], told: str
) -> None:
    asks_here = "--url" not in arguments and "--at-once" not in arguments
    result = invoke(*((tiny,) if asks_here else ()), *arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_code_is_not_run_without_a_sandbox_unless_that_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = {"id": "a", "prompt": "?", "verifier": {"type": "python_tests", "tests": "assert f() == 1"}}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "bwrap" else which(name))
    with scripted(say("def f():\n    return 1")) as server:
        asked = ("--suite", tmp_path, "--url", server.url, "-m", "x")
        refused = invoke(*asked)
        assert refused.exit_code == 2
        assert "bwrap is not installed" in refused.stderr
        assert "with all that this user may do: --unsafe" in refused.stderr
        assert server.asked == []
        [row] = evaluate(*asked, "--unsafe")["rows"]
    assert row["pass_rate"] == 1.0
