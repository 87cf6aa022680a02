"""A talk on the command line: what is remembered, what is forgotten, what ends it."""

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from mezzotint import LLM, SamplingParams
from mezzotint.cli import chat as chat_verb
from mezzotint.cli.options import Decoding, Loading

Cli = Callable[..., Result]
SMALL = ("--max-tokens", "4", "--seed", "3", "--decoder", "ar")
PARAMS = SamplingParams(decoder="ar", max_tokens=4, seed=3)


@pytest.fixture(scope="module")
def answers(tiny: Path) -> list[str]:
    """What the model says to `one`, then to `two`, and to `two` as a first word."""
    llm = LLM(str(tiny))
    user = [{"role": "user", "content": word} for word in ("one", "two")]
    [first] = llm.generate(user[:1], PARAMS)
    [second] = llm.generate([user[0], {"role": "assistant", "content": first.text}, user[1]], PARAMS)
    [fresh] = llm.generate(user[1:], PARAMS)
    assert len({first.text, second.text, fresh.text}) == 3
    return [first.text, second.text, fresh.text]


def without_receipts(result: Result) -> str:
    return "".join(line for line in result.stdout.splitlines(keepends=True) if not line.startswith("— "))


def test_a_talk_remembers_what_was_said(cli: Cli, answers: list[str]) -> None:
    result = cli("chat", *SMALL, input="one\ntwo\n")
    assert (result.exit_code, result.stderr) == (0, "")
    assert without_receipts(result) == f"{answers[0]}\n{answers[1]}\n"


def test_a_stop_string_ends_every_turn_and_what_was_cut_is_not_remembered(cli: Cli, tiny: Path) -> None:
    llm = LLM(str(tiny))
    user = [{"role": "user", "content": word} for word in ("one", "two")]
    stop = llm.generate(user[:1], PARAMS)[0].text[-2:]
    [first] = llm.generate(user[:1], PARAMS, stop=stop)
    [second] = llm.generate([user[0], {"role": "assistant", "content": first.text}, user[1]], PARAMS, stop=stop)
    assert first.stop_reason == stop
    result = cli("chat", *SMALL, "--stop", stop, input="one\ntwo\n")
    assert without_receipts(result) == f"{first.text}\n{second.text}\n"


def test_every_turn_ends_with_its_receipt(cli: Cli) -> None:
    lines = cli("chat", *SMALL, input="one\ntwo\n").stdout.splitlines()
    assert sum(line.startswith("— ar · 1.00 tokens per forward") for line in lines) == 2
    assert lines[-1].startswith("— ar")


def test_a_turn_finds_the_talk_before_it_encoded(cli: Cli) -> None:
    lines = cli("chat", *SMALL, input=f"{'one ' * 12}\ntwo\n").stdout.splitlines()
    receipts = [line for line in lines if line.startswith("— ")]
    known = [re.search(r"prefill \d+ ms \((\d+) of \d+ tokens known\)", line) for line in receipts]
    assert known[0] is None
    assert known[1] is not None
    assert int(known[1][1]) == 32, "whole pages of sixteen"


def test_reset_forgets_and_blank_lines_say_nothing(cli: Cli, answers: list[str]) -> None:
    assert without_receipts(cli("chat", *SMALL, input="one\n\n  \n/reset\ntwo\n")) == f"{answers[0]}\n{answers[2]}\n"


def test_quit_ends_the_talk(cli: Cli, answers: list[str]) -> None:
    result = cli("chat", *SMALL, input="one\n/quit\ntwo\n")
    assert result.exit_code == 0
    assert without_receipts(result) == f"{answers[0]}\n"


def test_an_unknown_command_is_not_said_to_the_model(cli: Cli, answers: list[str]) -> None:
    result = cli("chat", *SMALL, input="/forget\none\n")
    assert result.stderr == "error: /forget is no command; there are /reset and /quit\n"
    assert without_receipts(result) == f"{answers[0]}\n"


def test_a_system_message_opens_the_talk_and_outlives_a_reset(cli: Cli, tiny: Path) -> None:
    told = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "one"}]
    [completion] = LLM(str(tiny)).generate(told, PARAMS)
    result = cli("chat", *SMALL, "--system", "Be brief.", input="one\n/reset\none\n")
    assert without_receipts(result) == f"{completion.text}\n{completion.text}\n"


def test_a_watched_turn_says_the_same(cli: Cli, answers: list[str]) -> None:
    result = cli("chat", *SMALL, "--watch", input="one\ntwo\n")
    assert without_receipts(result) == f"{answers[0]}\n{answers[1]}\n"
    assert "token 4 of at most 4" in result.stderr


def test_a_piped_talk_fails_with_a_turn_that_cannot_be_honoured(cli: Cli) -> None:
    result = cli("chat", *SMALL, input="word " * 600 + "\none\n")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "exceed the context of 512" in result.stderr


def test_in_a_terminal_the_talk_goes_on_without_that_turn(
    tiny: Path, answers: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = iter(["word " * 600, "one"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines, "/quit"))
    chat_verb.chat(
        **vars(Loading(model=str(tiny))),
        **vars(Decoding(decoder="ar", max_tokens=4, seed=3)),
        system=None,
        watch=False,
    )
    told = capsys.readouterr()
    assert "exceed the context of 512" in told.err
    assert told.err.endswith("(or /reset)\n")
    assert told.out.startswith(f"{answers[0]}\n— ar")


def test_lines_are_read_where_there_is_no_readline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "readline", None)  # as on Windows: importing it raises
    assert runpy.run_path(chat_verb.__file__)["chat"]
