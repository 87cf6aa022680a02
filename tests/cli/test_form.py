"""Answers of a form on the command line: schema, expression, Lark, and their log-probabilities."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from mezzotint import LLM, SamplingParams
from mezzotint.tasks import FAMILIES

Cli = Callable[..., Result]
SMALL = ("--max-tokens", "30", "--seed", "3")
PERSON = {"type": "object", "properties": {"age": {"type": "integer", "maximum": 99}}, "required": ["age"]}
LIGHT = {
    "type": "function",
    "function": {"name": "set_light", "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}}},
}


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    file = tmp_path / "person.json"
    file.write_text(json.dumps(PERSON))
    return file


@pytest.mark.parametrize("decoder", ["diffusion", "ar", "verified"])
def test_an_answer_follows_the_schema_in_a_file(cli: Cli, schema: Path, decoder: str) -> None:
    result = cli("generate", "Hello", "--schema", str(schema), "--decoder", decoder, "--json", *SMALL)
    told = json.loads(result.stdout)
    assert list(json.loads(told["text"])) == ["age"]
    assert told["finish_reason"] == "stop"
    assert told["metrics"]["diffusion"]["forced_tokens"] > 0


def test_an_answer_follows_an_expression_or_a_lark_file(cli: Cli, tmp_path: Path) -> None:
    told = json.loads(cli("generate", "Hello", "--regex", "[ab]{3}", "--json", *SMALL).stdout)
    assert re.fullmatch("[ab]{3}", told["text"])
    lark = tmp_path / "pair.lark"
    lark.write_text('start: "<" /[xy]/ ">"')
    told = json.loads(cli("generate", "Hello", "--grammar", str(lark), "--json", *SMALL).stdout)
    assert told["text"] in ("<x>", "<y>")


@pytest.mark.parametrize("choice", ["required", "set_light"])
def test_calls_of_declared_tools_are_told_as_objects(cli: Cli, tmp_path: Path, choice: str) -> None:
    (tools := tmp_path / "tools.json").write_text(json.dumps([LIGHT]))
    flags = ("--tools", str(tools), "--tool-choice", choice, "--json", "--max-tokens", "200", "--seed", "3")
    told = json.loads(cli("generate", "Hello", *flags).stdout)
    assert told["finish_reason"] == "stop"
    assert told["calls"]
    assert all(call["name"] == "set_light" and call["arguments"].keys() <= {"on"} for call in told["calls"])
    assert all(isinstance(value, bool) for call in told["calls"] for value in call["arguments"].values())


@pytest.mark.parametrize("flags", [(), ("--tool-choice", "auto")])
def test_lab_calls_a_tool_through_the_command_line_as_its_task_expects(
    cli: Cli, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    example = FAMILIES["call"].generate(3, "test")
    (tools := tmp_path / "tools.json").write_text(json.dumps(example.tools))
    [asked] = example.messages
    asking = ("--tools", str(tools), *flags, "--decoder", "ar", "--temperature", "0", "--json")
    told = json.loads(cli("generate", asked["content"], *asking, model="lab").stdout)
    assert [(call["name"], call["arguments"]) for call in told["calls"]] == [tuple(call) for call in example.calls]
    assert told["metrics"]["diffusion"]["forced_tokens"] > 0 or not flags


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--regex", "a", "--grammar", "x"], "--regex and --grammar each say what the answer must follow"),
        (["--regex", "("], "regex"),
        (["--tool-choice", "auto"], "--tool-choice is 'auto', but no tools are declared"),
        (["--tools", "{broken}"], "holds no JSON"),
        (["--tools", "{unknown}"], "declares no tools"),
        (["--tools", "{tools}", "--raw"], "--raw leaves out the chat template, which --tools needs"),
        (["--tools", "{tools}", "--tool-choice", "fly"], "the tool 'fly' is not declared; declared are set_light"),
        (["--tools", "{tools}", "--tool-choice", "auto", "--regex", "a"], "--regex and --tool-choice each say"),
        (["--schema", "missing.json"], "missing.json"),
        (["--schema", "{broken}"], "holds no JSON"),
        (["--schema", "{unknown}"], "uniqueItems"),
        (["--regex", "a", "--sampler", "ddim"], "sampler is 'ddim', which cannot follow a grammar"),
        (["--regex", "a", "--min-tokens", "2"], "min_tokens is 2, but a grammar decides"),
    ],
)
def test_a_form_that_cannot_be_honoured_is_one_line_and_exit_code_2(
    cli: Cli, tmp_path: Path, flags: list[str], told: str
) -> None:
    broken, unknown = tmp_path / "broken.json", tmp_path / "unknown.json"
    broken.write_text("{")
    unknown.write_text(json.dumps({"type": "array", "items": {}, "uniqueItems": True}))
    (tools := tmp_path / "tools.json").write_text(json.dumps([LIGHT]))
    files = {"{broken}": str(broken), "{unknown}": str(unknown), "{tools}": str(tools)}
    result = cli("generate", "Hello", *[files.get(flag, flag) for flag in flags], *SMALL)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("decoder", ["diffusion", "ar"])
def test_log_probabilities_are_told_token_by_token(cli: Cli, tiny: Path, decoder: Any) -> None:
    flags = ("--decoder", decoder, "--logprobs", "2", "--prompt-logprobs", "0")
    told = json.loads(cli("generate", "Hello", "--json", *flags, *SMALL).stdout)
    params = SamplingParams(decoder=decoder, max_tokens=30, seed=3, logprobs=2, prompt_logprobs=0)
    [completion] = LLM(str(tiny)).generate([{"role": "user", "content": "Hello"}], params)
    assert completion.scores is not None
    assert [one["logprob"] for one in told["logprobs"]] == [score.logprob for score in completion.scores]
    assert [one["token_id"] for one in told["logprobs"]] == completion.token_ids
    assert all(len(one["top_logprobs"]) == 2 for one in told["logprobs"])
    assert all((one["uncertainty"] is None) == (decoder == "ar") for one in told["logprobs"])
    assert told["prompt_logprobs"][0] is None
    assert len(told["prompt_logprobs"]) == completion.receipt.prompt_tokens


def test_in_text_form_log_probabilities_are_a_table_behind_the_answer(cli: Cli) -> None:
    result = cli("generate", "Hello", "--logprobs", "1", "--max-tokens", "4", "--seed", "3", "--ignore-eos")
    lines = result.stdout.splitlines()
    assert any(line.split() == ["token", "logprob", "uncertainty", "likeliest"] for line in lines)
    assert lines[-1].startswith("— diffusion")


def test_a_talk_and_a_prompts_scores_are_told_in_text_form_too(cli: Cli) -> None:
    flags = ("--logprobs", "1", "--prompt-logprobs", "1", "--max-tokens", "4", "--seed", "3", "--ignore-eos")
    for result in (cli("generate", "Hello", *flags), cli("chat", *flags, input="Hello\n")):
        heads = [line.split() for line in result.stdout.splitlines()]
        assert ["prompt", "logprob", "likeliest"] in heads
        assert ["token", "logprob", "uncertainty", "likeliest"] in heads


def test_without_asking_nothing_is_told_of_log_probabilities(cli: Cli) -> None:
    told = json.loads(cli("generate", "Hello", "--json", *SMALL).stdout)
    assert not {"logprobs", "prompt_logprobs"} & told.keys()
