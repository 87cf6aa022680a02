"""One prompt on the command line: what it prints, what it refuses, and that every flag is honoured."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from mezzotint import LLM, SamplingParams
from mezzotint.cli.receipt import receipt_line

Cli = Callable[..., Result]
ASKED = [{"role": "user", "content": "Hello [bold]"}]
SMALL = ("--max-tokens", "12", "--seed", "3")
PARAMS = SamplingParams(max_tokens=12, seed=3)


@pytest.fixture(scope="module")
def llm(tiny: Path) -> LLM:
    return LLM(str(tiny))


def test_the_text_form_is_the_answer_and_a_last_line_with_its_cost(cli: Cli, llm: LLM) -> None:
    [completion] = llm.generate(ASKED, PARAMS)
    result = cli("generate", "Hello [bold]", *SMALL)
    assert (result.exit_code, result.stderr) == (0, "")
    answer, receipt, end = result.stdout.rsplit("\n", 2)
    assert (answer, end) == (completion.text, "")
    told = receipt_line(replace(completion.receipt, prefill_s=0, generation_s=0)).split(" · ")
    assert receipt.split(" · ")[:4] == told[:4]
    assert receipt.split(" · ")[-1] == "seed 3"


@pytest.mark.parametrize("decoder", ["diffusion", "ar"])
def test_json_is_one_object_with_the_same_answer(cli: Cli, llm: LLM, decoder: Any) -> None:
    [completion] = llm.generate(ASKED, replace(PARAMS, decoder=decoder))
    result = cli("generate", "Hello [bold]", *SMALL, "--json", "--decoder", decoder)
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    assert list(found) == ["text", "token_ids", "finish_reason", "stop_reason", "usage", "metrics"]
    assert found["text"] == completion.text
    assert found["token_ids"] == completion.token_ids
    assert (found["finish_reason"], found["stop_reason"]) == (completion.finish_reason, None)
    assert found["usage"]["prompt_tokens"] == completion.receipt.prompt_tokens
    assert found["metrics"]["seed"] == 3
    first, whole = found["metrics"]["time_to_first_token_ms"], found["metrics"]["generation_time_ms"]
    assert found["metrics"]["prefill_time_ms"] < first < found["metrics"]["prefill_time_ms"] + whole + 1000
    assert found["metrics"]["diffusion"]["blocks"] == (0 if decoder == "ar" else 2)


@pytest.mark.parametrize("decoder", ["diffusion", "ar"])
def test_a_stop_string_ends_the_answer_before_it(cli: Cli, llm: LLM, decoder: Any) -> None:
    [whole] = llm.generate(ASKED, replace(PARAMS, decoder=decoder))
    stop = whole.text[3:6]
    before = whole.text.split(stop)[0]
    asked = ("generate", "Hello [bold]", *SMALL, "--decoder", decoder, "--stop", "never written", "--stop", stop)
    found = json.loads(cli(*asked, "--json").stdout)
    assert (found["text"], found["finish_reason"], found["stop_reason"]) == (before, "stop", stop)
    assert found["token_ids"] == whole.token_ids[: len(found["token_ids"])]
    assert cli(*asked).stdout.rsplit("\n", 2)[0] == before
    watched = cli(*asked, "--watch")
    assert watched.stdout.rsplit("\n", 2)[0] == before


def test_a_dash_reads_the_prompt_from_standard_input(cli: Cli) -> None:
    given = cli("generate", "two\nlines", *SMALL).stdout.splitlines()[:-1]
    assert cli("generate", "-", *SMALL, input="two\nlines\n").stdout.splitlines()[:-1] == given


def test_a_raw_prompt_keeps_its_last_line_break(cli: Cli) -> None:
    def prompt_tokens(*arguments: str, given: str) -> int:
        found = json.loads(cli("generate", "-", "--json", *arguments, *SMALL, input=given).stdout)
        return int(found["usage"]["prompt_tokens"])

    assert prompt_tokens("--raw", given="two\n") == prompt_tokens("--raw", given="two") + 1
    assert prompt_tokens(given="two\n") == prompt_tokens(given="two")


def test_a_vision_tower_that_is_left_out_is_told_unless_the_model_is_bundled(
    cli: Cli, wide: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = r"text only for now: \d+ vision tensors of this checkpoint are left out\n"
    assert re.fullmatch(told, cli("generate", "Hello", "--json", *SMALL, model=str(wide)).stderr)
    assert re.fullmatch(told, cli("chat", *SMALL, model=str(wide), input="one\ntwo\n").stderr)
    monkeypatch.setattr("mezzotint.cli.answer.BUNDLED", wide.parent)
    assert cli("generate", "Hello", "--json", *SMALL, model=str(wide)).stderr == ""


def test_a_raw_prompt_meets_no_template(cli: Cli, llm: LLM) -> None:
    [completion] = llm.generate("Hello", PARAMS)
    assert json.loads(cli("generate", "Hello", "--raw", "--json", *SMALL).stdout)["text"] == completion.text


def test_a_system_message_goes_before_the_prompt(cli: Cli, llm: LLM) -> None:
    [completion] = llm.generate([{"role": "system", "content": "Be brief."}, *ASKED], PARAMS)
    found = json.loads(cli("generate", "Hello [bold]", "--system", "Be brief.", "--json", *SMALL).stdout)
    assert found["text"] == completion.text


def test_the_model_string_may_name_the_decoder(cli: Cli, tiny: Path) -> None:
    by_flag = cli("generate", "Hello", "--decoder", "ar", *SMALL).stdout
    assert by_flag.splitlines()[-1].startswith("— ar · 1.00 tokens per forward")
    by_name = cli("generate", "Hello", *SMALL, model=f"{tiny}:ar").stdout
    both = cli("generate", "Hello", "--decoder", "ar", *SMALL, model=f"{tiny}:ar").stdout
    assert by_name.splitlines()[:-1] == by_flag.splitlines()[:-1] == both.splitlines()[:-1]


def test_without_a_seed_the_receipt_tells_one_that_gives_the_same_answer(cli: Cli) -> None:
    first = cli("generate", "Hello", "--max-tokens", "12").stdout.splitlines()
    seed = first[-1].rpartition("seed ")[2]
    again = cli("generate", "Hello", "--max-tokens", "12", "--seed", seed).stdout.splitlines()
    assert first[:-1] == again[:-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--raw", "--system", "x"], "--raw"),
        (["--decoder", "ar", "--sampler", "hf"], "sampler"),
        (["--frequency-penalty", "1"], "frequency_penalty"),
        (["--max-tokens", "0"], "max_tokens is 0"),
        (["--max-tokens", "100000"], "exceed the context of 512"),
        (["--decoder", "mtp"], "decoder is 'mtp'"),
        (["--model", "lab:fast"], "decoder is 'fast'"),
        (
            ["--model", "lab:ar", "--decoder", "diffusion"],
            "error: model is 'lab:ar', but --decoder is 'diffusion'",
        ),
        (["--model", "nowhere"], "no folder 'nowhere'"),
        (["--model", "."], "config.json does not exist"),
        (["--device", "nonsense"], "device is 'nonsense'"),
        (["--dtype", "int8"], "dtype is 'int8'"),
        (["--threads", "0"], "threads is 0"),
        (["--steps", "0"], "steps is 0"),
        (["--stop", ""], "stop holds an empty string"),
        (["--stop", "x", "--regex", "a"], "stop strings are given, but a grammar's answer has to be whole"),
        (["--thinking-budget", "-1"], "thinking_budget is -1"),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",), ("--watch",)])
def test_what_cannot_be_honoured_is_one_line_and_exit_code_2(
    cli: Cli,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
    form: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    model = arguments[1] if arguments[0] == "--model" else str(tiny)
    result = cli("generate", "Hello", *arguments, *form, model=model)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("decoder", ["diffusion", "ar"])
def test_watching_changes_neither_the_answer_nor_standard_output(cli: Cli, decoder: str) -> None:
    plain = cli("generate", "Hello", *SMALL, "--decoder", decoder)
    watched = cli("generate", "Hello", *SMALL, "--decoder", decoder, "--watch")
    assert plain.stderr == ""
    assert watched.stdout.splitlines()[:-1] == plain.stdout.splitlines()[:-1]
    as_json = cli("generate", "Hello", *SMALL, "--decoder", decoder, "--watch", "--json")
    assert as_json.stderr == watched.stderr
    assert json.loads(as_json.stdout)["text"] == "\n".join(plain.stdout.splitlines()[:-1])


def test_watching_without_a_terminal_writes_a_line_a_step(cli: Cli) -> None:
    lines = cli("generate", "Hello", *SMALL, "--watch").stderr.splitlines()
    assert [line.split(" · ")[0] for line in lines[:6]] == [f"denoising {step} of 6" for step in range(1, 7)]
    assert lines[6].startswith("block 1 final after 6 steps │ ")
    assert lines[-1].startswith("finished: length │ ")
    assert "\x1b" not in "".join(lines)


def test_an_interrupt_leaves_a_clean_terminal_and_exit_code_130(tiny: Path) -> None:
    command = [sys.executable, "-m", "mezzotint", "generate", "Hello", "--model", str(tiny), "--watch"]
    endless = ["--sampler", "ddim", "--steps", "1000000"]
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen([*command, *endless], stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    seen = b""
    for piece in pieces(master):
        seen += piece
        if b"denoising 2 of 1000000" in seen:
            process.send_signal(signal.SIGINT)
            break
    seen += b"".join(pieces(master))
    os.close(master)
    assert process.wait() == 130, seen.decode()
    assert b"Traceback" not in seen
    assert b"\x1b[?25l" in seen, "the cursor was hidden while the canvas settled"
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l"), "and is back"


def pieces(terminal: int) -> Iterator[bytes]:
    """What is written to a pseudo terminal, until nobody holds it open."""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            return
        if not piece:
            return
        yield piece
