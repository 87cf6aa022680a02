"""The training loop: batches in, updates and a learning curve out."""

import json
import time
from collections.abc import Callable
from math import isfinite
from pathlib import Path

import torch

from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.tasks import Example
from mezzotint.train.config import TrainConfig
from mezzotint.train.data import Batch, Sample, training_batches
from mezzotint.train.loss import corrupt, joint_loss
from mezzotint.train.state import Model, TrainState


def train(
    model: DiffusionGemma,
    config: TrainConfig,
    tokenise: Callable[[Example], Sample],
    folder: Path,
    report: Callable[[dict[str, float]], None],
    *,
    until_s: float | None = None,
) -> TrainState[DiffusionGemma]:
    """Train `model` in place up to config.steps, or for until_s seconds, from folder/state.pt if it is there.

    Writes folder/state.pt every config.checkpoint_s and at the end. Every config.log_every steps a line goes
    to folder/curve.jsonl and to `report`: means since the last one, and seconds since this start.
    A step depends on the config, its number and the state only, so a run resumed with the same config continues
    the straight one to the bit, and with another one, seed and mixture included, goes on by that from the step
    that it has reached. Steps that were lost with an interrupted run appear in the curve twice.
    Returns: the state after the last step.
    """
    state = continued(model, config, folder)
    pad, fill = model.config.pad_id, model.config.eos_ids[0]
    batches = training_batches(config, tokenise, state.step, pad_id=pad, fill_id=fill)
    run_steps(state, lambda: _take_step(state, next(batches)), folder, report, until_s=until_s)
    return state


def continued(model: Model, config: TrainConfig, folder: Path) -> TrainState[Model]:
    """The state of the run in `folder`, which is made; that of a beginning where it holds none."""
    folder.mkdir(parents=True, exist_ok=True)
    file, state = folder / "state.pt", TrainState(model, config)
    if file.exists():
        state.load(file)
    return state


def run_steps(
    state: TrainState[Model],
    take: Callable[[], dict[str, float]],
    folder: Path,
    report: Callable[[dict[str, float]], None],
    *,
    until_s: float | None,
) -> None:
    """Take steps, each of which updates `state` and returns what is to be told, as `train` says."""
    file, config = folder / "state.pt", state.config
    started = saved = time.monotonic()
    window: list[dict[str, float]] = []
    while state.step < config.steps and (until_s is None or time.monotonic() - started < until_s):
        window.append(take())
        if state.step % config.log_every == 0:
            report(_log(folder, state, window, time.monotonic() - started))
            window = []
        if time.monotonic() - saved > config.checkpoint_s:
            state.save(file)
            saved = time.monotonic()
    state.save(file)


def _take_step(state: TrainState[DiffusionGemma], batch: Batch) -> dict[str, float]:
    """Draw noise, differentiate, update; returns losses in nats per token and the gradient's norm."""
    model, config = state.model, state.config
    generator = torch.Generator().manual_seed(config.seed * 1_000_003 + state.step)
    plan = config.plan(state.step, state.causal_loss)
    canvases = corrupt(batch, config, vocab_size=model.config.vocab_size, easy=plan.easy, generator=generator)
    losses = joint_loss(model, batch, canvases, config, plan, generator)
    losses.total.backward()
    norm, causal = state.update(), float(losses.causal)
    if isfinite(causal):
        state.causal_loss = 0.98 * state.causal_loss + 0.02 * causal
    return {"causal": causal, "denoise": float(losses.denoise), "norm": norm}


def _log(folder: Path, state: TrainState[Model], window: list[dict[str, float]], elapsed_s: float) -> dict[str, float]:
    means = {key: round(sum(entry[key] for entry in window) / len(window), 4) for key in window[0]}
    examples = state.step * state.config.examples
    entry = {"step": state.step, "examples": examples, "elapsed_s": round(elapsed_s, 1), **means}
    with (folder / "curve.jsonl").open("a") as file:
        file.write(json.dumps(entry) + "\n")
    return entry
