"""Programs that people use, unmodified, each from a venv of its own: they must work, and what they print be true."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from mezzotint.tasks import FAMILIES
from tests.disk import ROOT
from tests.e2e.conftest import Served

Run = Callable[..., str]
PROGRAMS = Path(__file__).parent / "programs"
SAMPLES = 8


@pytest.fixture(scope="module")
def extract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prompts of one family with their answers, as both evaluation programs read them."""
    file = tmp_path_factory.mktemp("samples") / "extract.jsonl"
    with file.open("w") as lines:
        for seed in range(SAMPLES):
            example = FAMILIES["extract"].generate(seed, "test")
            [message] = example.messages
            lines.write(json.dumps({"input": message["content"], "target": example.answer}) + "\n")
    return file


@pytest.fixture(scope="module")
def right(served: Served, extract: Path) -> float:
    """The share of the samples that greedy ar has right, which both programs have to find."""
    with OpenAI(base_url=served.v1, api_key="none") as client:
        samples = [json.loads(line) for line in extract.read_text().splitlines()]
        asked: list[Any] = [[{"role": "user", "content": sample["input"]}] for sample in samples]
        answers = [
            client.chat.completions.create(model="lab:ar", messages=each, max_tokens=64, temperature=0)
            for each in asked
        ]
    said = [answer.choices[0].message.content for answer in answers]
    share = sum(text == sample["target"] for text, sample in zip(said, samples, strict=True)) / SAMPLES
    assert share >= 0.75
    return share


def test_the_llm_command_prints_an_answer_and_lists_the_models(served: Served, run: Run, tmp_path: Path) -> None:
    home = {"LLM_USER_PATH": str(tmp_path)}
    listed = run("llm", "llm", "openai", "endpoint", served.v1, "--models", **home)
    assert {"lab", "lab:ar", "lab:verified", "lab:mtp"} <= set(listed.split())
    told = "Repeat the line.\nVesper Lund, 2031-04-17"
    answer = run("llm", "llm", "openai", "endpoint", served.v1, "-m", "lab", "-o", "temperature", "0", told, **home)
    assert "Vesper Lund, 2031-04-17" in answer


def test_inspect_scores_the_model(served: Served, run: Run, extract: Path, right: float, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    asked = ["--model", "openai-api/mezzotint/lab:ar", "--temperature", "0", "--max-tokens", "64", "--display", "plain"]
    given = {"MEZZOTINT_BASE_URL": served.v1, "MEZZOTINT_API_KEY": "none", "EXTRACT": str(extract)}
    asked += ["--log-dir", str(logs), "--log-format", "json"]
    run("inspect", "inspect", "eval", "extract.py", *asked, folder=PROGRAMS, **given)
    [log] = logs.glob("*.json")
    results = json.loads(log.read_text())["results"]
    assert results["completed_samples"] == SAMPLES
    accuracy = results["scores"][0]["metrics"]["accuracy"]["value"]
    assert accuracy == pytest.approx(right)


def test_inspect_keeps_the_metrics_and_the_budget_with_our_provider(
    served: Served, run: Run, extract: Path, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    asked = ["--model", "mezzotint/lab", "-M", "steps=4", "--temperature", "0", "--max-tokens", "64", "--seed", "1"]
    asked += ["--log-dir", str(logs), "--log-format", "json", "--display", "plain", "--epochs", "2"]
    given = {"MEZZOTINT_BASE_URL": served.v1, "EXTRACT": str(extract)}
    run("inspect", "inspect", "eval", "extract.py", *asked, folder=PROGRAMS, **given)
    [file] = logs.glob("*.json")
    log = json.loads(file.read_text())
    assert log["status"] == "success"
    assert log["eval"]["model_args"] == {"steps": 4}
    outputs = [sample["output"] for sample in log["samples"]]
    assert len(outputs) == 2 * SAMPLES
    for output in outputs:
        assert output["metadata"]["step_budget"] == 4
        work = output["metadata"]["metrics"]["diffusion"]
        assert max(work["denoise_steps"]) <= 4
        assert work["tokens_per_forward"] == pytest.approx(
            output["usage"]["output_tokens"] / work["forwards"], abs=1e-3
        )


def test_an_agent_goes_through_three_tools_and_reports(served: Served, run: Run) -> None:
    def play(seed: int) -> dict[str, list[str]]:
        lines = run("agent", "python", str(PROGRAMS / "agent.py"), served.v1, "lab:ar", str(seed)).splitlines()
        told: dict[str, list[str]] = json.loads(lines[-1])
        return told

    for seed in range(1, 25):
        played = play(seed)
        assert {hop.split(" ")[0] for hop in played["hops"]} <= {"find_city", "read_weather", "tell_time"}
        if len(played["hops"]) == 3:
            break
    assert len(played["hops"]) == 3
    assert play(seed) == played  # the seed is the only chance in it


def test_schemathesis_finds_no_answer_that_the_schema_does_not_describe(served: Served, run: Run) -> None:
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    asked = ["--max-examples", "8", "--phases", "coverage,fuzzing", "--max-time", "60", "--seed", "1"]
    config = ["--config-file", str(PROGRAMS / "schemathesis.toml")]
    told = run("schema", "st", *config, "run", f"{served.url}/openapi.json", *asked, "--checks", checks)
    tested = re.search(r"Tested: (\d+)", told)
    assert tested is not None
    assert int(tested[1]) >= 13


TASK = """
task: mezzotint_extract
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: generate_until
doc_to_text: "{{{{input}}}}"
doc_to_target: "{{{{target}}}}"
generation_kwargs: {{until: [], max_gen_toks: 64, do_sample: false, temperature: 0}}
metric_list:
  - {{metric: exact_match, aggregation: mean, higher_is_better: true}}
"""


def test_lm_eval_scores_the_model(served: Served, run: Run, extract: Path, right: float, tmp_path: Path) -> None:
    (tmp_path / "extract.yaml").write_text(TASK.format(file=extract))
    model = f"model=lab:ar,base_url={served.v1}/chat/completions,num_concurrent=4,tokenized_requests=False"
    asked = ["--model", "local-chat-completions", "--model_args", model, "--tasks", "mezzotint_extract"]
    asked += ["--include_path", str(tmp_path), "--apply_chat_template", "--output_path", str(tmp_path / "out")]
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": "none"}
    run("lmeval", "lm_eval", *asked, **offline)
    [file] = (tmp_path / "out").rglob("results_*.json")
    results = json.loads(file.read_text())
    assert results["n-samples"]["mezzotint_extract"]["effective"] == SAMPLES
    assert results["results"]["mezzotint_extract"]["exact_match,none"] == pytest.approx(right)


def test_aiperf_prints_tokens_per_forward(served: Served, run: Run, extract: Path, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    told = [json.loads(line)["input"] for line in extract.read_text().splitlines()]
    prompts.write_text("".join(json.dumps({"text": text}) + "\n" for text in told))
    asked = ["--model", "lab", "--url", served.url, "--endpoint-type", "mezzotint_chat", "--streaming"]
    asked += ["--use-server-token-count", "--tokenizer", str(ROOT / "mezzotint/checkpoints/lab")]
    asked += ["--input-file", str(prompts), "--custom-dataset-type", "single_turn", "--extra-inputs", "temperature:0"]
    asked += ["--request-count", str(SAMPLES), "--concurrency", "2", "--ui", "none"]
    run("aiperf", "aiperf", "profile", *asked, "--output-artifact-dir", str(tmp_path / "out"), folder=tmp_path)
    figures = json.loads((tmp_path / "out" / "profile_export_aiperf.json").read_text())
    assert figures["request_count"]["avg"] == SAMPLES
    per_forward = figures["spec_decode_acceptance_length"]["avg"]
    assert 4 < per_forward < 24
    records = [json.loads(line) for line in (tmp_path / "out" / "profile_export.jsonl").read_text().splitlines()]
    means = [record["metrics"]["spec_decode_acceptance_length"]["value"] for record in records]
    assert sum(means) / len(means) == pytest.approx(per_forward)
