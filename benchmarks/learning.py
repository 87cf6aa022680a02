"""Trains one variant of the recipe for a while of processor time; what is varied and what is scored live elsewhere."""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from math import isfinite
from typing import NamedTuple

import torch

from benchmarks.variants import Variant
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.tasks import Example
from mezzotint.train.config import Plan, TrainConfig
from mezzotint.train.data import Batch, Sample, training_batches
from mezzotint.train.loss import corrupt, joint_loss
from mezzotint.train.state import TrainState

_COMPILING = 4  # batches that torch compiles for, before the clock runs
_EVERY = 20  # steps from one point of the curve to the next


class Point(NamedTuple):
    """Means of the steps since the last point: losses in nats per token; seconds of the processor since the start."""

    step: int
    seconds: float
    causal: float
    denoise: float


class Losses(NamedTuple):
    """Of one step, in nats per token."""

    causal: float
    denoise: float


class Learned(NamedTuple):
    """A run that has ended: its state, processor seconds of its steps, and its curve."""

    state: TrainState[DiffusionGemma]
    seconds: float
    curve: list[Point]


class AdamWState(TrainState[DiffusionGemma]):
    """A state whose matrices are updated by AdamW too, at config.matrix_rate times the rate of the rest."""

    def __init__(self, model: DiffusionGemma, config: TrainConfig) -> None:
        """See TrainState."""
        super().__init__(model, config)
        matrices = self._optimisers["muon"].param_groups[0]["params"]
        self._optimisers["muon"] = torch.optim.AdamW(
            matrices, betas=(0.9, 0.98), eps=1e-9, weight_decay=config.weight_decay, foreach=True
        )


def learn(
    model: DiffusionGemma,
    variant: Variant,
    tokenise: Callable[[Example], Sample],
    seconds: float,
    *,
    report: Callable[[Point], None] = lambda point: None,
    clock: Callable[[], float] = time.process_time,
) -> Learned:
    """Train `model`, whose weights are the run's start, for `seconds` by the clock or until variant.until_loss.

    The clock is the processor's, so that other work on the machine takes nothing from a run; what torch compiles
    at the beginning is not on it. The last step may end behind `seconds`.
    """
    if variant.deaf:
        make_deaf(model)
    state = (AdamWState if variant.optimiser == "adamw" else TrainState)(model, variant.config)
    if not seconds:
        return Learned(state, 0.0, [])
    _compile(state, tokenise)
    batches, curve, window = _batches(state, tokenise), list[Point](), list[Losses]()
    started = clock()
    while (spent := clock() - started) < seconds and not _has_learnt(state, variant):
        window.append(take_step(state, next(batches)))
        if state.step % _EVERY == 0:
            curve.append(_point(state.step, window, clock() - started))
            report(curve[-1])
            window = []
    return Learned(state, spent, curve)


def make_deaf(model: DiffusionGemma) -> None:
    """Take from the denoiser what it hears of its last step; in training, where it hears nothing, this stays so."""
    with torch.no_grad():
        model.self_conditioning.down_proj.weight.zero_()


def take_step(state: TrainState[DiffusionGemma], batch: Batch) -> Losses:
    """One step of `mezzotint train`, to the bit."""
    config = state.config
    losses = _differentiate(state, batch, config.plan(state.step, state.causal_loss))
    state.update()
    if isfinite(losses.causal):
        state.causal_loss = 0.98 * state.causal_loss + 0.02 * losses.causal
    return losses


def _differentiate(state: TrainState[DiffusionGemma], batch: Batch, plan: Plan) -> Losses:
    model, config = state.model, state.config
    generator = torch.Generator().manual_seed(config.seed * 1_000_003 + state.step)
    canvases = corrupt(batch, config, vocab_size=model.config.vocab_size, easy=plan.easy, generator=generator)
    losses = joint_loss(model, batch, canvases, config, plan, generator)
    losses.total.backward()
    return Losses(float(losses.causal), float(losses.denoise))


def _compile(state: TrainState[DiffusionGemma], tokenise: Callable[[Example], Sample]) -> None:
    """Take gradients, and throw them away, so that nothing is left to compile once time counts."""
    budget = min(state.config.on_policy_budgets) if state.config.on_policy else None
    for batch in islice(_batches(state, tokenise), _COMPILING):
        _differentiate(state, batch, Plan(easy=False, causal_weight=1.0, budget=budget, mined=False))
    state.model.zero_grad()


def _batches(state: TrainState[DiffusionGemma], tokenise: Callable[[Example], Sample]) -> Iterator[Batch]:
    shape = state.model.config
    return training_batches(state.config, tokenise, state.step, pad_id=shape.pad_id, fill_id=shape.eos_ids[0])


def _has_learnt(state: TrainState[DiffusionGemma], variant: Variant) -> bool:
    return variant.until_loss is not None and state.causal_loss < variant.until_loss


def _point(step: int, window: list[Losses], seconds: float) -> Point:
    causal, denoise = (round(sum(values) / len(window), 4) for values in zip(*window, strict=True))
    return Point(step, round(seconds, 2), causal, denoise)
