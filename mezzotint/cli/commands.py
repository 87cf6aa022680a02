"""Commands that verifiers may run, as flags name them."""

import shlex
from collections.abc import Sequence


def read_commands(given: Sequence[str]) -> dict[str, list[str]]:
    """NAME=COMMAND each, as argv by name. Raises: ValueError for another form."""
    pairs = [one.partition("=") for one in given]
    if wrong := [name for name, _, command in pairs if not name or not shlex.split(command)]:
        raise ValueError(f"--command is {wrong[0]!r}; write NAME=COMMAND, as lint='ruff check -'")
    return {name: shlex.split(command) for name, _, command in pairs}
