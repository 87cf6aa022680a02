"""`mezzotint evaluate`: rows, records, what agrees between them and between runs, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from typer.testing import CliRunner, Result

from mezzotint.cli import app
from mezzotint.cli.evaluate import Asked, read
from mezzotint.evaluate.config import EvaluateConfig
from mezzotint.evaluate.table import LEGEND
from mezzotint.llm import LLM, PRESETS
from mezzotint.tasks import FAMILIES
from mezzotint.types import tokens_per_forward

TIMES = {"seconds", "prefill_s", "generation_s"}


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def evaluate(*arguments: object) -> list[dict[str, Any]]:
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    rows: list[dict[str, Any]] = json.loads(result.stdout)
    return rows


def without_times(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in TIMES} for row in rows]


def test_there_is_one_row_a_task_and_decoder(tiny: Path) -> None:
    rows = evaluate(tiny, "--tasks", "extract,parallel_rule", "--decoder", "diffusion,ar", "--n", 1)
    assert [(row["task"], row["decoder"], row["sampler"], row["step_budget"], row["n"]) for row in rows] == [
        ("extract", "diffusion", "report", 6, 1),
        ("extract", "ar", None, 0, 1),
        ("parallel_rule", "diffusion", "report", 6, 1),
        ("parallel_rule", "ar", None, 0, 1),
    ]
    for row in rows:
        assert row["interval"][0] <= row["pass_rate"] <= row["interval"][1]
        assert row["seconds"] == pytest.approx(row["prefill_s"] + row["generation_s"])
        assert (row["steps"] == 0) == (row["decoder"] == "ar")
        assert row["tokens_per_forward"] == 1 or row["decoder"] == "diffusion"


def test_each_step_budget_has_a_row_and_ar_a_single_one(tiny: Path) -> None:
    options = ("--steps", "1,2", "--sampler", "hf", "--temperature", "0.5")
    rows = evaluate(tiny, "--tasks", "parallel_rule", "--n", 1, *options)
    assert [(row["decoder"], row["sampler"], row["step_budget"], row["temperature"]) for row in rows] == [
        ("diffusion", "hf", 1, 0.5),
        ("diffusion", "hf", 2, 0.5),
        ("ar", None, 0, 0.5),
    ]
    assert [row["steps"] <= row["step_budget"] for row in rows] == [True] * 3


def test_a_run_repeated_agrees_in_all_but_times_and_another_seed_does_not(tiny: Path, tmp_path: Path) -> None:
    def run(seed: int) -> tuple[list[dict[str, Any]], list[str]]:
        file = tmp_path / "records"
        file.unlink(missing_ok=True)
        options = ("--decoder", "diffusion", "--steps", "2", "--seed", seed, "--output", file)
        rows = evaluate(tiny, "--tasks", "parallel_rule", "--n", 2, *options)
        return without_times(rows), [json.loads(line)["text"] for line in file.read_text().splitlines()]

    first, again, other = run(3), run(3), run(4)
    assert first == again
    assert first[1] != other[1]


def test_the_rows_are_what_the_records_add_up_to(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    options = ("--n", 2, "--steps", "1,2", "--output", file)
    rows = evaluate(tiny, "--tasks", "parallel_rule,sequential_rule", *options)
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(records) == 2 * len(rows) == 12
    for row in rows:
        names = ("task", "decoder", "step_budget")
        mine = [record for record in records if all(record[name] == row[name] for name in names)]
        assert sorted(record["seed"] for record in mine) == [0, 1]
        tokens, forwards = (sum(record[name] for record in mine) for name in ("output_tokens", "forwards"))
        assert row["tokens_per_forward"] == tokens_per_forward(tokens, forwards)
        assert row["pass_rate"] == sum(record["accepted"] for record in mine) / 2
        assert row["seconds"] == pytest.approx(sum(r["prefill_s"] + r["generation_s"] for r in mine) / 2)


def test_answers_that_are_there_are_not_written_over(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text("an answer that took hours\n")
    refused = invoke(tiny, "--tasks", "parallel_rule", "--n", 1, "--output", file)
    assert refused.exit_code == 2
    assert "holds answers already; name another file" in " ".join(refused.output.split())
    assert file.read_text() == "an answer that took hours\n"


def test_a_record_holds_what_the_model_says_to_that_prompt_and_seed(tiny: Path, tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    evaluate(tiny, "--tasks", "parallel_rule", "--decoder", "diffusion", "--n", 2, "--seed", 1, "--output", file)
    record = json.loads(file.read_text(encoding="utf-8").splitlines()[1])
    example = FAMILIES["parallel_rule"].generate(1_000_001, "test")
    llm = LLM(str(tiny))
    limit = -(-len(llm.encode(example.answer)) // 8) * 8 + 8
    params = EvaluateConfig().arms[0].params(max_tokens=limit, seed=1_000_001)
    [completion] = llm.generate(list(example.messages), params)
    assert (record["text"], record["expected"]) == (completion.text, example.answer)


def test_people_get_a_table_with_its_legend(tiny: Path) -> None:
    result = invoke(tiny, "--tasks", "parallel_rule", "--n", 1)
    assert result.exit_code == 0
    heads, diffusion, ar, *_ = result.stdout.splitlines()
    assert heads.split()[:2] == ["task", "decoder"]
    assert diffusion.split()[:3] == ["parallel_rule", "diffusion", "report"]
    assert ar.split()[:2] == ["parallel_rule", "ar"]
    assert result.stdout.endswith(f"{LEGEND}\n")


def test_a_terminal_sees_a_bar_that_leaves_standard_output_alone(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich then takes any stream for a terminal
    result = invoke(tiny, "--tasks", "parallel_rule", "--n", 1, "--json")
    assert "2/2" in result.stderr
    assert len(json.loads(result.stdout)) == 2


def test_each_preset_has_a_row_and_alone_they_leave_out_decoders_and_blanks(tiny: Path) -> None:
    rows = evaluate(tiny, "--tasks", "parallel_rule", "--preset", "fast,best", "--n", 1)
    assert [(row["preset"], row["step_budget"]) for row in rows] == [("fast", 4), ("best", PRESETS["best"]["steps"])]
    both = evaluate(tiny, "--tasks", "parallel_rule", "--preset", "balanced", "--decoder", "ar", "--n", 1)
    assert [(row["decoder"], row["preset"]) for row in both] == [("ar", None), ("diffusion", "balanced")]
    told = read(Asked(preset="balanced"))
    assert told.tasks == tuple(task for task in FAMILIES if task != "infill")
    assert told.decoders == ()


def test_the_model_may_name_the_decoder(tiny: Path) -> None:
    [row] = evaluate(f"{tiny}:ar", "--tasks", "parallel_rule", "--n", 1)
    assert row["decoder"] == "ar"
    result = invoke(f"{tiny}:ar", "--decoder", "diffusion,ar")
    assert (result.exit_code, "diffusion,ar" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--tasks", "extract,chess"],
            f"task is 'chess'; choose from {', '.join(FAMILIES)}",
        ),
        (["--decoder", "beam"], "decoder is 'beam'; choose one of diffusion, ar"),
        (["--sampler", "euler"], "sampler is 'euler'; choose one of report, hf, jax, refine, ddim"),
        (["--steps", "4,many"], "--steps is '4,many'; write whole numbers"),
        (["--decoder", "ar", "--steps", "4"], "steps is 4, but only diffusion has a canvas"),
        (["--n", "0"], "n is 0; ask for 1"),
    ],
)
def test_what_cannot_be_honoured_is_refused_before_a_model_is_sought(arguments: list[str], message: str) -> None:
    result = invoke("no/such/model", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
    assert result.stdout == ""


def test_records_of_an_earlier_run_survive_a_model_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text("kept\n")
    assert invoke("no/such/model", "--output", file).exit_code == 2
    assert file.read_text() == "kept\n"


def test_the_help_names_the_defaults_that_the_room_has() -> None:
    help = " ".join(
        CliRunner(env={"COLUMNS": "300", "TERM": "dumb"}).invoke(app, ["evaluate", "--help"]).stdout.split()
    )
    config = EvaluateConfig()
    for default in (
        f"{','.join(config.decoders)} unless",
        f"task; {config.n} unless",
        f"answers; {config.seed} unless",
    ):
        assert default in help
    ar, diffusion = EvaluateConfig(decoders=("ar", "diffusion")).arms
    assert f"{diffusion.temperature:g} for diffusion and {ar.temperature:g} for the others unless" in help
    assert config.tasks == tuple(FAMILIES)


def test_every_default_that_a_flag_tells_is_the_one_of_the_config() -> None:
    hints = get_type_hints(Asked, include_extras=True)
    helps = {name: hint.__metadata__[0].help for name, hint in hints.items()}
    told = {name: found[1] for name, text in helps.items() if (found := re.search(r"; (\S+) unless given", text))}
    config = EvaluateConfig()
    numbers = {"n": str(config.n), "seed": str(config.seed)}
    names = {"decoder": ",".join(config.decoders), "form": ",".join(config.forms)}
    assert told == {"tasks": "all", **names, **numbers}
    assert (config.steps, config.sampler, config.temperature) == ((), None, None), "whose helps name the model's"
