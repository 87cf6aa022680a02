"""`mezzotint batch`: a file of requests answered into another file; goes on where it was when started again."""

import os
from pathlib import Path
from typing import Annotated

import typer

from mezzotint.cli.flags import unfold
from mezzotint.cli.options import Loading, choose_target
from mezzotint.cli.serve import CACHES


@unfold
def batch(
    requests: Annotated[Path, typer.Argument(help="JSON lines as OpenAI's batches have them: custom_id, url, body.")],
    loading: Loading,
    output: Annotated[
        Path | None, typer.Option(help="Where answers go; beside the requests, as NAME.answers.jsonl, unless given.")
    ] = None,
    at_once: Annotated[int, typer.Option(min=1, help="Requests answered at once.")] = 16,
) -> None:
    """Answer a file of requests, at the lowest priority of this machine; an answer is written as soon as it is whole.

    Started again, it answers what has no answer yet. Exit code 1 if some lines were refused or failed.
    """
    for cache, size in CACHES.items():
        os.environ.setdefault(cache, size)
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    import asyncio

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    from mezzotint.cli.answer import load_alone
    from mezzotint.engine.config import EngineConfig
    from mezzotint.server import Backend, ServerConfig
    from mezzotint.server.batch import Progress, read_lines, run_batch

    lines = read_lines(requests)
    target = choose_target(loading.model, None)
    if target.decoder is not None:
        raise ValueError(
            f"model is {loading.model!r}; each line names its decoder, as MODEL:DECODER: name the model alone"
        )
    os.nice(19)
    checkpoint = load_alone(loading)
    config = ServerConfig(max_waiting=16 * at_once, deadline_s=10**9)
    backend = Backend(Path(target.model).name, checkpoint, config, EngineConfig(max_rows=at_once, drafts=False))
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    backend.start()
    try:
        with Bar(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("answers")

            def show(progress: Progress) -> None:
                failed = f", {progress.errors} refused or failed" if progress.errors else ""
                bar.update(task, total=progress.lines, completed=progress.written, description=f"answers{failed}")

            ended = asyncio.run(
                run_batch(backend, lines, output or requests.with_suffix(".answers.jsonl"), at_once, show)
            )
    finally:
        backend.stop()
    print(f"{ended.written} of {ended.lines} lines are answered, {ended.errors} of them with an error")
    if ended.errors:
        raise typer.Exit(1)
