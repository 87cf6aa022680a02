"""The joint objective: causal cross-entropy on the sequence and denoising cross-entropy on noisy canvases.

    one encode a row:   prompt | answer                        causal loss on every next token
    K canvases a row:   prompt (and earlier blocks) | canvas   denoising loss on every canvas token

A canvas sees what was encoded before its block and itself: never the answer tokens it is to restore, never
another canvas. No token is weighted by whether noise replaced it: the network cannot know that, and would
come to doubt what it sees.
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

from mezzotint.decoding.canvas import Pins
from mezzotint.decoding.sampler import SAMPLERS
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.train.config import Plan, TrainConfig
from mezzotint.train.context import Contexts, RecordedKV
from mezzotint.train.data import Batch
from mezzotint.train.onpolicy import States, visit_states


class Canvases(NamedTuple):
    """N noisy copies of blocks: ids, targets and pinned [N, C]; rows [N], whose they are; noise [N], its share t."""

    ids: Tensor
    targets: Tensor
    pinned: Tensor
    rows: Tensor
    noise: Tensor


class Losses(NamedTuple):
    """Scalar losses in nats per token; `total` is the one to differentiate."""

    total: Tensor
    causal: Tensor
    denoise: Tensor


def corrupt(batch: Batch, config: TrainConfig, *, vocab_size: int, easy: bool, generator: Generator) -> Canvases:
    """Draw K noisy canvases a row, those of one row together, their noise shares stratified over [0, 1).

    Either each token becomes a uniform id with probability t, or one run of a share t of the tokens does.
    A share config.all_noise has t 1, unless `easy`: then no t is above config.easy_noise. Pins stay as they are.
    """
    B = batch.block.shape[0]
    rows = torch.arange(B).repeat_interleave(config.canvases)
    targets, pinned = batch.block[rows], batch.pinned[rows]
    count, width = targets.shape
    strata = torch.arange(config.canvases) / config.canvases
    noise = ((torch.rand(B, 1, generator=generator) + strata) % 1).reshape(-1)
    pure = torch.rand(count, generator=generator) < config.all_noise
    noise = noise * config.easy_noise if easy else torch.where(pure, 1.0, noise)
    scattered = torch.rand(count, width, generator=generator) < noise[:, None]
    start = (torch.rand(count, generator=generator) * width).long()[:, None]
    run = (torch.arange(width) - start) % width < (noise * width)[:, None]
    in_a_run = torch.rand(count, 1, generator=generator) < config.span_noise
    replaced = torch.where(in_a_run, run, scattered) & ~pinned
    random_ids = torch.randint(vocab_size, (count, width), generator=generator)
    return Canvases(torch.where(replaced, random_ids, targets), targets, pinned, rows, noise)


def joint_loss(
    model: DiffusionGemma,
    batch: Batch,
    canvases: Canvases,
    config: TrainConfig,
    plan: Plan,
    generator: Generator,
) -> Losses:
    """Both losses of one batch.

    A share of the canvases gets a soft embedding from a first pass. With a budget in the plan, half of each row's
    canvases are replaced by states that the sampler meets on its way through that many steps; if mined, all of the
    rows that it gets wrong, and none of the others.
    """
    kv = RecordedKV()
    causal = _causal_loss(model, model.encode(batch.ids, kv), batch, config, generator)
    blocks = Contexts(kv, batch.context)
    contexts = blocks.rows(canvases.rows)
    states = _first_pass(model, canvases, contexts, config.conditioned, generator)
    if plan.budget is not None:
        pins = Pins(batch.pinned, batch.block)
        states = _visit(model, states, blocks, pins, plan, generator)
    hidden = model.denoise(states.ids, contexts.kv, states.soft, lengths=contexts.lengths)
    logits = model.logits(hidden)
    denoise = F.cross_entropy(logits.flatten(0, 1), canvases.targets.flatten())
    total = denoise + plan.causal_weight * causal
    if config.sharpen and plan.budget is not None:
        total = total + config.sharpen * _doubt_where_right(logits, canvases.targets)
    return Losses(total, causal.detach(), denoise.detach())


def _causal_loss(
    model: DiffusionGemma, hidden: Tensor, batch: Batch, config: TrainConfig, generator: Generator
) -> Tensor:
    """Mean over answer tokens plus prompt_weight × mean over a drawn share of the prompt tokens."""
    positions = torch.arange(1, batch.ids.shape[1])[None]
    in_prompt = positions < batch.prompt_lengths[:, None]
    in_answer = (positions < batch.lengths[:, None]) & ~in_prompt
    kept = in_prompt | in_answer
    if config.prompt_share < 1:
        kept &= in_answer | (torch.rand(kept.shape, generator=generator) < config.prompt_share)
    errors = F.cross_entropy(model.logits(hidden[:, :-1][kept]), batch.ids[:, 1:][kept], reduction="none")
    answer = in_answer[kept]
    return errors[answer].mean() + config.prompt_weight * errors[~answer].sum() / (~answer).sum().clamp(min=1)


@torch.no_grad()
def _first_pass(
    model: DiffusionGemma, canvases: Canvases, contexts: Contexts, share: float, generator: Generator
) -> States:
    """Soft embeddings for `share` of the canvases, and exact zeros for the others, as on a first step.

    The temperature is the one that the sampler has at a canvas's noise.
    """
    count, sampler = canvases.ids.shape[0], SAMPLERS["report"]
    soft = torch.zeros(*canvases.ids.shape, model.config.hidden_size, dtype=model.dtype)
    chosen = torch.randperm(count, generator=generator)[: round(share * count)]
    if len(chosen):
        behind = contexts.rows(chosen)
        hidden = model.denoise(canvases.ids[chosen], behind.kv, lengths=behind.lengths)
        temperature = sampler.t_min + (sampler.t_max - sampler.t_min) * canvases.noise[chosen]
        expected = _soft_embedding(model, model.logits(hidden) / temperature[:, None, None])
        pins = Pins(canvases.pinned[chosen], canvases.targets[chosen])
        soft[chosen] = pins.write_soft(expected, model.embed(pins.tokens))
    return States(canvases.ids, soft)


def _soft_embedding(model: DiffusionGemma, logits: Tensor) -> Tensor:
    """Expected scaled embedding [..., D] under softmax(logits [..., V])."""
    weights = logits.softmax(-1).to(model.dtype)
    return weights @ model.embed_tokens.weight * model.embedding_scale


def _visit(
    model: DiffusionGemma, states: States, blocks: Contexts, pins: Pins, plan: Plan, generator: Generator
) -> States:
    """The states, of each row the first half, or if mined all of a wrong one, replaced by what a sampler meets.

    pins: [B, C], whose tokens are the right ones everywhere.
    """
    assert plan.budget is not None
    rows = len(blocks.lengths)
    canvases = states.ids.shape[0] // rows
    kept = canvases if plan.mined else canvases // 2
    sampler = replace(SAMPLERS["report"], budget=plan.budget)
    visits = visit_states(model, blocks, sampler, pins, kept=kept, generator=generator)
    chosen = (visits.ended != pins.tokens).any(-1) if plan.mined else torch.ones(rows, dtype=torch.bool)
    places = torch.arange(states.ids.shape[0]).view(rows, canvases)[:, :kept][chosen].flatten()
    met = torch.arange(rows * kept).view(rows, kept)[chosen].flatten()
    ids, soft = visits.states.ids[met], visits.states.soft[met]
    return States(states.ids.index_copy(0, places, ids), states.soft.index_copy(0, places, soft))


def _doubt_where_right(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean entropy at temperature 0.5 over positions whose argmax is the target already, in nats."""
    log_p = (logits / 0.5).log_softmax(-1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    right = log_p.argmax(-1) == targets
    return (entropy * right).sum() / right.sum().clamp(min=1)
