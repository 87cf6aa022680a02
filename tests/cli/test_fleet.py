"""What a server, with a fleet or without, refuses before it reads a checkpoint or listens."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mezzotint.cli import app

LOCAL = '[[local]]\nname = "plain"\ndecoder = "ar"\n'


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere:ar"], "model is 'nowhere:ar', but clients choose the decoder"),
        (["--model", "nowhere:ar"], "model is 'nowhere:ar', but clients choose the decoder"),
        (["nowhere", "--host", "0.0.0.0"], "there is no api_key"),
        (["nowhere", "--fleet", "no-such-file.toml"], "no-such-file.toml"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_loaded(arguments: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["serve", *arguments])
    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        (LOCAL.replace("plain", "lab:ar"), "lab", "call it otherwise, such as 'ar'"),
        (LOCAL, "auto", "give it another --name"),
        (f"{LOCAL}\nspeed = 3\n", "lab", "no such key is known"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused_before_anything_is_loaded(
    tmp_path: Path, text: str, name: str, told: str
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(text)
    done = CliRunner().invoke(app, ["serve", "nowhere", "--name", name, "--fleet", str(file)])
    assert done.exit_code == 2
    assert told in done.stderr
