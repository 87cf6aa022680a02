"""The command line: one verb a file, wired together here; what the verbs do lives in the other rooms."""

from typing import Annotated

import typer

from mezzotint import __version__
from mezzotint.cli import (
    batch,
    bench,
    calibrate,
    chat,
    choose,
    drafter,
    evaluate,
    generate,
    infill,
    models,
    plan,
    route,
    serve,
    train,
)
from mezzotint.cli.errors import Verbs

app = typer.Typer(cls=Verbs, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

recipes = typer.Typer(no_args_is_help=True, help="Train the bundled model, or a drafter that guesses what it says.")
recipes.command("lab")(train.lab)
recipes.command("drafter")(drafter.drafter)

routes = typer.Typer(no_args_is_help=True, help="What a fleet would do with a prompt, and what it has measured.")
routes.command("explain")(route.explain)
routes.command("table")(route.table)

benches = typer.Typer(no_args_is_help=True, help="Measure how fast tasks are accepted, and by which arm.")
benches.command("run")(bench.run)
benches.command("crossover")(bench.crossover)
benches.command("pareto")(bench.pareto)
benches.command("report")(bench.report)


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
app.add_typer(routes, name="route")
app.command("calibrate")(calibrate.calibrate)
app.command("batch")(batch.batch)
app.command("models")(models.models)
app.add_typer(recipes, name="train")
app.command("plan")(plan.plan)
app.command("evaluate")(evaluate.evaluate)
app.add_typer(benches, name="bench")
