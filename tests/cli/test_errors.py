"""How a verb ends when it fails."""

import errno

import pytest
import typer
from typer.testing import CliRunner, Result

from mezzotint.cli.errors import Verbs
from mezzotint.model.fields import CheckpointError


def fail(error: BaseException) -> Result:
    app = typer.Typer(cls=Verbs, pretty_exceptions_enable=False)

    @app.callback()
    def start() -> None: ...

    @app.command()
    def verb() -> None:
        raise error

    return CliRunner().invoke(app, ["verb"])


@pytest.mark.parametrize("error", [ValueError("no\n  good"), CheckpointError("no good"), FileNotFoundError("no good")])
def test_what_a_user_can_mend_is_one_line(error: Exception) -> None:
    result = fail(error)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", "error: no good\n")


def test_a_bug_is_not_dressed_up_as_a_wrong_value() -> None:
    result = fail(RuntimeError("bug"))
    assert isinstance(result.exception, RuntimeError)
    assert result.stderr == ""


def test_a_reader_that_leaves_is_no_error() -> None:
    result = fail(BrokenPipeError(errno.EPIPE, "gone"))
    assert (result.exit_code, result.stderr) == (1, "")


def test_an_interrupt_is_exit_code_130() -> None:
    result = fail(KeyboardInterrupt())
    assert (result.exit_code, result.stderr) == (130, "")
