"""What a fleet would do with a prompt, and what it has measured, from the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mezzotint.cli import app
from mezzotint.router.ledger import Ledger
from mezzotint.router.record import Attempt

FLEET = '[[local]]\nname = "canvas"\nsteps = 4\n[[local]]\nname = "plain"\ndecoder = "ar"\n'


@pytest.fixture
def route(tiny: Path, tmp_path: Path) -> Callable[..., Result]:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)

    def run(*arguments: str, text: str | None = None) -> Result:
        if text is not None:
            file.write_text(text)
        return CliRunner().invoke(app, ["route", *arguments, "--fleet", str(file), "--model", str(tiny)])

    return run


def test_a_decision_is_explained_without_running_and_says_that_nothing_is_measured(
    route: Callable[..., Result], tmp_path: Path
) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "properties": {"n": {"type": "integer"}}}')
    done = route("explain", "Hello", "--schema", str(schema), "--max-tokens", "20")
    assert done.exit_code == 0, done.output
    assert "class schema-short" in done.stdout
    assert "nothing is measured yet" in done.stdout
    assert {"canvas", "plain"} <= {line.split()[0] for line in done.stdout.splitlines()}
    pinned = route("explain", "Hello", "--goal", "plain", "--max-tokens", "20")
    assert "plan plain:" in pinned.stdout
    assert Ledger(tmp_path / "ledger.sqlite", "any").attempts(9, is_same=False) == []


def test_what_no_arm_can_take_is_told(route: Callable[..., Result]) -> None:
    done = route("explain", "Hello", "--goal", "nobody")
    assert done.exit_code == 2
    assert "no arm can take this request" in done.stderr


def test_a_table_of_nothing_says_so(route: Callable[..., Result]) -> None:
    assert "Nothing is measured yet" in route("table").stdout
    assert route("table", "--json").stdout == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (FLEET.replace('"plain"', '"tiny:ar"'), "already means the model that is served"),
        (FLEET.replace('"ar"', '"mtp"'), "which 'tiny' has not"),
        (FLEET.replace("steps = 4", 'steps = 4\npreset = "fast"'), "takes none"),
        (
            FLEET + '[[remote]]\nname = "r"\nurl = "http://x"\nmodel = "m"\ncontext = 9\nkey_env = "NO_SUCH_KEY"\n',
            "NO_SUCH_KEY, which is not set",
        ),
    ],
)
def test_a_fleet_that_cannot_be_is_refused(route: Callable[..., Result], text: str, told: str) -> None:
    done = route("table", text=text)
    assert done.exit_code == 2
    assert told in done.stderr


def test_a_row_is_printed_for_each_arm_and_class(
    route: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mezzotint.router.fingerprint.fingerprint", lambda *_: "same")
    ledger = Ledger(tmp_path / "ledger.sqlite", "same")
    ledger.write_attempt(
        Attempt(
            decision="d",
            index=0,
            arm="canvas",
            kind="text-any",
            outcome="accepted",
            seconds=0.5,
            prompt_tokens=5,
            output_tokens=5,
            in_flight=1,
        )
    )
    ledger.close()
    [row] = [json.loads(line) for line in route("table", "--json").stdout.splitlines()]
    assert (row["arm"], row["acceptance"]) == ("canvas", 1.0)
    assert "canvas" in route("table").stdout
