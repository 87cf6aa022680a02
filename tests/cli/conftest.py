"""The checkpoints that the command line is tested with: `lab` made tiny, its weights random."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import mezzotint
from mezzotint.cli import app
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.generation_config import GenerationDefaults
from mezzotint.model.weights import write_checkpoint
from mezzotint.train.lab import initialise, lab_config


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with lab's tokenizer and template, a canvas of 8 and a budget of 6 steps; no vision tower."""
    return write_tiny(tmp_path_factory.mktemp("checkpoints") / "tiny", canvas_length=8, sees=False)


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a canvas of 64 and a vision tower, as `lab` has it."""
    return write_tiny(tmp_path_factory.mktemp("checkpoints") / "wide", canvas_length=64, sees=True)


def write_tiny(folder: Path, *, canvas_length: int, sees: bool) -> Path:
    shape = lab_config(2048)
    layers = tuple(layer._replace(head_dim=8) for layer in shape.layers[1:3])
    sizes: dict[str, Any] = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "moe_intermediate_size": 8,
        "max_positions": 512,
        "vision": shape.vision if sees else None,
    }
    config = replace(shape, layers=layers, canvas_length=canvas_length, **sizes)
    model = initialise(DiffusionGemma(config), seed=0)
    write_checkpoint(model, folder, generation=GenerationDefaults(max_denoising_steps=6, entropy_bound=4.0))
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copyfile(Path(mezzotint.__file__).parent / "checkpoints" / "lab" / name, folder / name)
    return folder


@pytest.fixture
def cli(tiny: Path) -> Callable[..., Result]:
    """Run the command line in this process: a verb with its arguments, on the tiny checkpoint."""

    def run(verb: str, *arguments: str, model: str = str(tiny), **options: Any) -> Result:
        return CliRunner().invoke(app, [verb, *arguments, "--model", model], **options)

    return run
