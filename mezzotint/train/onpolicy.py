"""Canvases that the model's own sampler produced: what it must repair when steps are few."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from mezzotint.decoding.canvas import Pins
from mezzotint.decoding.sampler import Draws, Sampler, start_canvas, update_canvas
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.vocabulary import read_logits
from mezzotint.train.context import Contexts
from mezzotint.types import Reading


class States(NamedTuple):
    """N canvases as denoising steps meet them: ids [N, C], soft [N, C, D]; soft is zero on a first step."""

    ids: Tensor
    soft: Tensor


class Visits(NamedTuple):
    """States that a sampler met, those of one canvas together; ended [B, C]: what each canvas came to."""

    states: States
    ended: Tensor


class Trace(NamedTuple):
    """All states of a rollout of B canvases: ids [S, B, C], soft [S, B, C, D], live [S, B]; and ended [B, C]."""

    ids: Tensor
    soft: Tensor
    live: Tensor
    ended: Tensor


def visit_states(
    model: DiffusionGemma,
    contexts: Contexts,
    sampler: Sampler,
    pins: Pins,
    *,
    kept: int,
    generator: Generator,
) -> Visits:
    """Roll out `sampler` on a canvas behind each of B contexts, its pins [B, C]; keep `kept` states of each.

    They are drawn from the canvas's live states, none twice where there are enough.
    Returns: B · kept states, and what they led to.
    """
    trace = roll_out(model, contexts, sampler, pins, generator=generator)
    chance = torch.where(trace.live, torch.rand(trace.live.shape, generator=generator), -1.0)
    steps = chance.topk(min(kept, chance.shape[0]), 0).indices
    steps = steps[torch.arange(kept) % steps.shape[0]].T.flatten()
    rows = torch.arange(trace.live.shape[1]).repeat_interleave(kept)
    steps = torch.where(trace.live[steps, rows], steps, 0)
    return Visits(States(trace.ids[steps, rows], trace.soft[steps, rows]), trace.ended)


@torch.no_grad()
def roll_out(model: DiffusionGemma, contexts: Contexts, sampler: Sampler, pins: Pins, *, generator: Generator) -> Trace:
    """Denoise a fresh canvas behind each of B contexts, its pins [B, C], until all are done.

    sampler: any whose rule draws no routes. A canvas that is done moves on, but is no longer live.
    Returns: the states as the forwards met them, the first one pure noise.
    Source: the step is decoding.sampler's own, so that the states are those of inference.
    """
    shape, vocab_size = pins.mask.shape, model.config.vocab_size
    given = model.embed(pins.tokens)
    state = start_canvas(torch.randint(vocab_size, shape, generator=generator), pins)
    soft = torch.zeros(*shape, model.config.hidden_size, dtype=model.dtype)
    ended = state.canvas
    met, live = [], []
    while not bool(state.done.all()):
        met.append(States(state.canvas, soft))
        live.append(~state.done)
        hidden = model.denoise(state.canvas, contexts.kv, soft, lengths=contexts.lengths)
        reading = read_logits(
            model.head,
            model.logits(hidden.flatten(0, 1)),
            temperature=sampler.temperature(state.step),
            proposal_temperature=sampler.proposal_temperature(state.step, 1.0),
            uniforms=torch.rand(shape.numel(), generator=generator, dtype=torch.float64),
            with_soft=True,
        )
        assert reading.soft is not None
        soft = pins.write_soft(reading.soft.view(soft.shape), given)
        draws = Draws(torch.randint(vocab_size, shape, generator=generator), None)
        moved = update_canvas(sampler, state, _as_rows(reading, shape), draws, pins, vocab_size)
        ended = torch.where(state.done[:, None], ended, moved.output)
        state = moved._replace(done=moved.done | state.done)
    ids, soft = torch.stack([each.ids for each in met]), torch.stack([each.soft for each in met])
    return Trace(ids, soft, torch.stack(live), ended)


def _as_rows(reading: Reading, shape: torch.Size) -> Reading:
    argmax, proposal, entropy, log_prob = (part.view(shape) for part in reading[:4])
    return Reading(argmax, proposal, entropy, log_prob, None)
