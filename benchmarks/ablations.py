"""`make ablations`: short runs that each change one part of the training recipe, scored on held-out examples.

    python -m benchmarks.ablations            # about 160 minutes of one core; finished runs are not run again
    python -m benchmarks.ablations --table    # what is finished, as tables

Runs of one start see the same examples in the same order for the same seconds of the processor.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from benchmarks.ablation_table import tables
from benchmarks.arguments import names_of
from benchmarks.held_out import as_json, held_out_losses, pass_rates, store
from benchmarks.learning import Learned, Point, learn
from benchmarks.machine import describe_run
from benchmarks.markers import rewrite_document
from benchmarks.variants import COPYING, SHAPES, VARIANTS, Variant, small_config
from mezzotint.model.config import ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.locate import BUNDLED
from mezzotint.model.weights import load_model
from mezzotint.tasks import Example
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.train.compiled import compile_parts
from mezzotint.train.data import Sample
from mezzotint.train.lab import initialise, lab_config, tokenise

ANSWERS, LOSSES = 60, 100  # held-out prompts of each task that are answered, and that losses are taken on


class Experiment:
    """A folder of finished runs and of the weights that runs begin with; one model a shape, compiled once."""

    def __init__(self, folder: Path, *, scale: float = 1.0, answers: int = ANSWERS, compiled: bool = True) -> None:
        """scale: of every run's seconds. answers: prompts of each task. compiled: whether parts are machine code."""
        self.folder, self._scale, self._answers, self._compiled = folder, scale, answers, compiled
        self._models: dict[ModelConfig, DiffusionGemma] = {}
        texts = BUNDLED / "lab"
        tokenizer = Tokenizer.from_directory(texts)
        template = ChatTemplate.from_directory(texts, tokenizer)
        self._shapes = {"nothing": small_config, "copying": small_config, "lab": lab_config}
        self._vocab_size = tokenizer.vocab_size
        self._tokenise: Callable[[Example], Sample] = partial(tokenise, tokenizer=tokenizer, template=template)

    def file(self, variant: Variant) -> Path:
        """Where a finished run is told."""
        return self.folder / f"{variant.name.replace(' ', '-')}.json"

    def run(self, variant: Variant, report: Callable[[Point], None]) -> dict[str, Any]:
        """Train and score one variant, or read what is finished.

        Raises: ValueError if the folder holds a run of this name that was told something else, or lacks the start.
        """
        file, asked = self.file(variant), self._asked(variant)
        if file.exists():
            done: dict[str, Any] = json.loads(file.read_text())
            if done["asked"] != asked:
                raise ValueError(f"{file} is of a run that was told otherwise; remove it, or name another --folder")
            return done
        model = self._first_weights(variant)
        learned = learn(model, variant, self._tokenise, self._seconds(variant), report=report)
        averaged = learned.state.averaged(DiffusionGemma(model.config)).to(torch.bfloat16)
        if variant.name == COPYING:
            store(averaged, self.folder / "starts" / "copying")
        told = {"asked": asked, **self._describe(variant, learned), "tasks": self._score(averaged, variant)}
        _write(file, told | {"run": describe_run(sys.argv[1:], "ablations")})
        return told

    def _asked(self, variant: Variant) -> dict[str, Any]:
        plain = asdict(variant) | {"scale": self._scale, "answers": self._answers}
        read: dict[str, Any] = json.loads(json.dumps(plain))
        return read

    def _seconds(self, variant: Variant) -> float:
        if variant.as_long_as is None:
            return variant.seconds * self._scale
        [other] = [each for each in VARIANTS if each.name == variant.as_long_as]
        file = self.file(other)
        if not file.exists():
            raise ValueError(f"{variant.name} is as long as {other.name}, which is not finished; run that one first")
        return float(json.loads(file.read_text())["seconds"])

    def _start(self, variant: Variant) -> Path | None:
        """The folder of the first weights. Those of lab are kept, lest another release of them be mixed in."""
        if variant.start == "nothing" or variant.start in SHAPES:
            return None
        folder = self.folder / "starts" / variant.start
        if not folder.is_dir():
            if variant.start == "copying":
                raise ValueError(f"{variant.name} begins where {COPYING} ended, which is not finished; run that first")
            shutil.copytree(BUNDLED / "lab", folder)
        return folder

    def _shape(self, variant: Variant) -> ModelConfig:
        start = variant.start
        return (SHAPES[start] if start in SHAPES else self._shapes[start])(self._vocab_size)

    def _first_weights(self, variant: Variant) -> DiffusionGemma:
        shape, start = self._shape(variant), self._start(variant)
        first = initialise(DiffusionGemma(shape), 0) if start is None else load_model(start, dtype=torch.bfloat16)
        model = self._model(shape)
        model.load_state_dict(first.state_dict())
        return model

    def _model(self, shape: ModelConfig) -> DiffusionGemma:
        if shape not in self._models:
            model = DiffusionGemma(shape).to(torch.bfloat16)
            if self._compiled:
                compile_parts(model)
            self._models[shape] = model
        return self._models[shape]

    def _describe(self, variant: Variant, learned: Learned) -> dict[str, Any]:
        start = self._start(variant)
        weights = None if start is None else sha256((start / "model.safetensors").read_bytes()).hexdigest()[:12]
        return {
            "start_weights": weights,
            "seconds": round(learned.seconds, 1),
            "steps": learned.state.step,
            "examples": learned.state.step * variant.config.examples,
            "curve": learned.curve,
        }

    def _score(self, model: DiffusionGemma, variant: Variant) -> dict[str, Any]:
        rows = pass_rates(model, variant.tasks, self._answers, compiled=self._compiled)
        width = model.config.canvas_length
        return {
            task: as_json(
                held_out_losses(model, task, self._tokenise, LOSSES, width=width),
                [row for row in rows if row.task == task],
            )
            for task in variant.tasks
        }


def finished(experiment: Experiment) -> list[dict[str, Any]]:
    """What the finished runs told, in the order of VARIANTS."""
    files = [experiment.file(variant) for variant in VARIANTS]
    return [json.loads(file.read_text()) for file in files if file.exists()]


def main(arguments: Sequence[str]) -> None:
    """Run what is not finished, or show what is."""
    options = _parse(arguments)
    torch.set_num_threads(1)  # a run's clock counts the time of every thread
    torch.set_flush_denormal(True)
    experiment = Experiment(options.folder, scale=options.scale, answers=options.n, compiled=not options.eager)
    if not options.table:
        for variant in VARIANTS:
            if not options.only or variant.name in options.only:
                experiment.run(variant, partial(_tell, variant))
    text = tables(finished(experiment))
    print(text)
    if options.write:
        rewrite_document(options.write, "ablations", text)


def _tell(variant: Variant, point: Point) -> None:
    print(variant.name, *point, flush=True)


def _write(file: Path, told: dict[str, Any]) -> None:
    partial_file = file.with_suffix(".partial")
    partial_file.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n")
    os.replace(partial_file, file)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablations", description=(__doc__ or "").split("\n")[0])
    names = [variant.name for variant in VARIANTS]
    parser.add_argument("--folder", type=Path, default=Path("runs/ablations"), help="where finished runs are kept")
    parser.add_argument("--only", type=names_of(names), default=(), help="some runs, with commas: " + ", ".join(names))
    parser.add_argument("--n", type=int, default=ANSWERS, help="held-out prompts of each task to answer")
    parser.add_argument("--scale", type=float, default=1.0, help="of every run's seconds, to try things out")
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    parser.add_argument("--table", action="store_true", help="run nothing, show what is finished")
    parser.add_argument("--write", type=Path, help="write the tables into this document, between its markers")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
