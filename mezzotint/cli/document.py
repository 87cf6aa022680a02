"""`python -m mezzotint.cli.document` prints docs/cli.md; what the page says is written in the commands."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from mezzotint.cli import app

_HEAD = """# The command line

Written by `make docs` from the commands themselves; a test fails when it is stale.
"""


def page() -> str:
    """docs/cli.md: every command with its usage, its help and a table of its arguments and flags."""
    group: Any = typer.main.get_command(app)
    return "\n".join([_HEAD, *_sections(group, typer.Context(group, info_name="mezzotint"))])


def _sections(command: Any, context: typer.Context) -> Iterator[str]:
    yield _section(command, context)
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            part: Any = command.get_command(context, name)
            yield from _sections(part, typer.Context(part, parent=context, info_name=name))


def _section(command: Any, context: typer.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"## {context.command_path}", "", f"`{usage}`", "", command.help, "", *_table(command, context)]
    return "\n".join(lines)


def _table(command: Any, context: typer.Context) -> Iterator[str]:
    yield "| argument or flag | meaning |"
    yield "|---|---|"
    for parameter in command.get_params(context):
        name, meaning = parameter.get_help_record(context)
        yield f"| `{name}` | {' '.join(meaning.split())} |"
    yield ""


if __name__ == "__main__":
    print(page(), end="")
