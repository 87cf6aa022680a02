"""Choosing on the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from mezzotint import LLM

Cli = Callable[..., Result]


@pytest.mark.parametrize("decoder", ["diffusion", "ar"])
def test_choices_are_told_the_likeliest_first(cli: Cli, tiny: Path, decoder: str) -> None:
    flags = ("--decoder", decoder, "--seed", "2")
    told = json.loads(cli("choose", "Which?", "red", "blue", "no", "--json", *flags).stdout)["choices"]
    asked = [{"role": "user", "content": "Which?"}]
    found = LLM(str(tiny)).choose(asked, ["red", "blue", "no"], decoder=decoder, seed=2)  # type: ignore[arg-type]
    assert {each["text"]: each["probability"] for each in told} == dict(found)
    shares = [each["probability"] for each in told]
    assert shares == sorted(shares, reverse=True)
    lines = cli("choose", "Which?", "red", "blue", "no", *flags).stdout.splitlines()
    assert [line.split()[1] for line in lines] == [each["text"] for each in told]
    assert lines[0].startswith(f"{shares[0]:7.2%}")


def test_a_single_choice_and_another_decoder_are_refused(cli: Cli) -> None:
    assert "there is something to choose from 2 on" in cli("choose", "Which?", "red").stderr
    assert "decoder is 'mtp'" in cli("choose", "Which?", "red", "blue", "--decoder", "mtp").stderr
