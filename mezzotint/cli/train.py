"""`mezzotint train lab`: the recipe run from flags, its progress told; how a model learns is for the train room."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from mezzotint.cli.flags import unfold
from mezzotint.train.config import TrainConfig

Report = Callable[[dict[str, float]], None]

HELPS = {
    "seed": "Of the random start, the examples and the noise.",
    "steps": "Optimiser steps.",
    "examples": "Examples a step.",
    "canvases": "Noisy canvases an example.",
    "widths": "Canvas lengths to draw from, in tokens.",
    "mixture": "Task families and their shares of the examples.",
    "peak_rate": "Learning rate of AdamW at its highest.",
    "matrix_rate": "Muon's rate for matrices, as a multiple of AdamW's.",
    "final_share": "Learning rate of the last step, as a share of the highest.",
    "warmup": "Steps until the highest rate.",
    "weight_decay": "Weight decay of matrices.",
    "clip": "Largest norm of a gradient.",
    "ema": "Decay of the averaged weights, which the checkpoint holds.",
    "causal_weight": "Weight of the causal loss beside the denoising loss.",
    "prompt_weight": "Weight of prompt tokens beside answer tokens in the causal loss.",
    "easy_until": "Share of the run in which no canvas is very noisy.",
    "easy_noise": "Noise share that such a canvas has at most.",
    "all_noise": "Share of the canvases that are nothing but noise.",
    "span_noise": "Share of the canvases whose noise is one run, not scattered.",
    "conditioned": "Share of the canvases that get a soft embedding from a first pass.",
    "on_policy": "Share of the steps that train on canvases of the model's own sampler.",
    "on_policy_from": "Share of the run that is over before the first of them.",
    "on_policy_budgets": "Step budgets of that sampler to draw from.",
    "mined": "Share of those steps that are spent on what the sampler gets wrong.",
    "sharpen": "Weight of the uncertainty where such a canvas is right already.",
    "log_every": "Steps from one report to the next.",
    "checkpoint_s": "Seconds from one saved state to the next.",
}


@partial(unfold, helps=HELPS)
def lab(
    config: TrainConfig,
    output: Annotated[Path, typer.Option(help="The folder of the run.")] = Path("runs/lab"),
    minutes: Annotated[float | None, typer.Option(help="End after this long, finished or not.")] = None,
    start: Annotated[
        str | None, typer.Option(help="Weights to begin with: a bundled model, a folder or a hub id.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Continue the run that is there, or discard it.")
    ] = True,
    compiled: Annotated[bool, typer.Option("--compiled/--eager", help="Whether torch compiles the layers.")] = True,
) -> None:
    """Train the bundled model: the joint objective on seeded task families.

    A run that is continued with other options, --seed and --mixture included, goes on with those from the step
    that it has reached.

    In a terminal a bar shows the progress, else every report is a JSON object on its own line.
    """
    if minutes is not None and not minutes > 0:
        raise ValueError(f"--minutes is {minutes}; give more than 0")
    if start is not None and resume and (output / "state.pt").exists():
        raise ValueError(f"{output} holds a run, which goes on without --start: drop it, or add --fresh")
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.train.lab import train_lab

    with reporting(Console(), config.steps, minutes) as report:
        checkpoint = train_lab(
            output, config, report=report, minutes=minutes, start=start, resume=resume, compiled=compiled
        )
    print(f"the checkpoint is in {checkpoint}", file=sys.stderr)


@contextmanager
def reporting(
    console: Console, steps: int, minutes: float | None, shown: Sequence[str] = ("causal", "denoise")
) -> Iterator[Report]:
    """What to call with each report: it moves a bar, or prints a JSON object where there is no terminal.

    shown: which of its numbers stand beside the bar.
    """
    if not console.is_terminal:
        yield lambda entry: print(_json_line(entry), flush=True)
        return
    with Progress(console=console) as progress:
        bar = progress.add_task("starting", total=1.0)

        def report(entry: dict[str, float]) -> None:
            spent = 0.0 if minutes is None else entry["elapsed_s"] / 60 / minutes
            numbers = [f"{name} {entry[name]:.3f}" for name in shown]
            told = " · ".join([f"step {entry['step']:.0f} of {steps}", *numbers])
            progress.update(bar, completed=max(entry["step"] / steps, spent), description=told)

        yield report


def _json_line(entry: dict[str, float]) -> str:
    """JSON knows no nan: a loss that is not finite is null."""
    return json.dumps({name: value if isfinite(value) else None for name, value in entry.items()}, allow_nan=False)
