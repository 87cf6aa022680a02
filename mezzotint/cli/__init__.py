"""The command line: one verb a file, wired together here; what the verbs do lives in the other rooms."""

from typing import Annotated

import typer

from mezzotint import __version__
from mezzotint.cli import batch, chat, choose, drafter, evaluate, generate, infill, models, serve, train
from mezzotint.cli.errors import Verbs

app = typer.Typer(cls=Verbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

recipes = typer.Typer(no_args_is_help=True, help="Train the bundled model, or a drafter that guesses what it says.")
recipes.command("lab")(train.lab)
recipes.command("drafter")(drafter.drafter)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mezzotint {__version__}")
        raise typer.Exit


@app.callback()
def _mezzotint(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Run block-diffusion language models: whole blocks of tokens, brought out of noise at once."""


app.command("generate")(generate.generate)
app.command("chat")(chat.chat)
app.command("infill")(infill.infill)
app.command("choose")(choose.choose)
app.command("serve")(serve.serve)
app.command("batch")(batch.batch)
app.command("models")(models.models)
app.add_typer(recipes, name="train")
app.command("evaluate")(evaluate.evaluate)
