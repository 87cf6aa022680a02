"""How a verb fails: what a user can mend is one line and exit code 2; a bug keeps its traceback."""

import sys
from typing import Any

import typer
from typer.core import TyperGroup


class Verbs(TyperGroup):
    """The commands, with errors told in one line on standard error."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the chosen command.

        Raises: Exit 2 for a value that a room refused or a file that is not there.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader has left, which is no error: typer ends quietly
            raise
        except (ValueError, OSError) as error:
            print(error_line(error), file=sys.stderr)
            raise typer.Exit(2) from error


def error_line(error: Exception) -> str:
    """What went wrong on a single line, whatever line breaks the message has."""
    return f"error: {' '.join(str(error).split())}"
