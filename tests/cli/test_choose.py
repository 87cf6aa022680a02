"""Choosing on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from mezzotint import LLM

Cli = Callable[..., Result]


@pytest.mark.parametrize(("decoder", "seed"), [("diffusion", 2), ("ar", None)])
def test_choices_are_told_the_likeliest_first(cli: Cli, tiny: Path, decoder: Any, seed: int | None) -> None:
    flags = ("--decoder", decoder, *(() if seed is None else ("--seed", str(seed))))
    told = json.loads(cli("choose", "Which?", "red", "blue", "no", "--json", *flags).stdout)["choices"]
    asked = [{"role": "user", "content": "Which?"}]
    found = LLM(str(tiny)).choose(asked, ["red", "blue", "no"], decoder=decoder, seed=seed)
    assert {each["text"]: each["probability"] for each in told} == dict(found)
    shares = [each["probability"] for each in told]
    assert shares == sorted(shares, reverse=True)
    lines = cli("choose", "Which?", "red", "blue", "no", *flags).stdout.splitlines()
    assert [line.split()[1] for line in lines] == [each["text"] for each in told]
    assert lines[0].startswith(f"{shares[0]:7.2%}")


def test_a_single_choice_another_decoder_and_a_seed_that_draws_nothing_are_refused(cli: Cli) -> None:
    assert "there is something to choose from 2 on" in cli("choose", "Which?", "red").stderr
    assert "decoder is 'mtp'" in cli("choose", "Which?", "red", "blue", "--decoder", "mtp").stderr
    refused = cli("choose", "Which?", "red", "blue", "--decoder", "ar", "--seed", "2")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "seed is 2, but decoder 'ar' draws nothing" in refused.stderr
