"""`mezzotint train drafter`: the recipe run from flags; how a drafter learns is for the train room."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mezzotint.cli.flags import unfold
from mezzotint.cli.train import HELPS, reporting
from mezzotint.train.config import DrafterConfig

_GUESSES = {"guesses": "How many tokens it learns to guess behind a known one."}


@partial(unfold, helps=HELPS | _GUESSES)
def drafter(
    config: DrafterConfig,
    target: Annotated[
        str, typer.Option(help="The model it is to guess for: a bundled one, a folder or a hub id.")
    ] = "lab",
    output: Annotated[Path, typer.Option(help="The folder of the run.")] = Path("runs/drafter"),
    minutes: Annotated[float | None, typer.Option(help="End after this long, finished or not.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Continue the run that is there, or discard it.")
    ] = True,
) -> None:
    """Train a drafter: a small network that guesses the target's next tokens from its own states.

    The target's weights stay as they are. A run that is continued with other options, --target included, goes on with
    those from the step that it has reached.

    In a terminal a bar shows the progress, else every report is a JSON object on its own line.
    """
    if minutes is not None and not minutes > 0:
        raise ValueError(f"--minutes is {minutes}; give more than 0")
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.train.drafter import train_drafter

    with reporting(Console(), config.steps, minutes, ("loss", "accepted")) as report:
        checkpoint = train_drafter(output, config, report=report, target=target, minutes=minutes, resume=resume)
    print(f"the checkpoint is in {checkpoint}", file=sys.stderr)
