"""A draft on a canvas: where it starts, its denoising steps and what they propose; who accepts it is verify."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.decoding.canvas import pin_positions
from mezzotint.decoding.guide import Guide
from mezzotint.decoding.policy import Plan, Policy
from mezzotint.decoding.program import Denoise, Draft
from mezzotint.decoding.random import SeededCanvas, position_uniforms
from mezzotint.decoding.sampler import Draws, Sampler, as_row, start_canvas, update_canvas
from mezzotint.decoding.stop import cut_answer
from mezzotint.types import Reading

_DOUBT = 2.0  # nats that a draft's token may surprise the causal pass and still start the next canvas


@dataclass(frozen=True, kw_only=True)
class Drafting:
    """How a request drafts: the sampler between steps, ar's temperature and seed, what sliding layers show."""

    sampler: Sampler
    temperature: float
    seed: int
    vocab_size: int
    window: int | None
    keep_soft: bool


class Place(NamedTuple):
    """Where a draft goes: behind `at` encoded tokens, `tokens` that are settled but not encoded, and those due behind
    them; `round` counts.
    """

    tokens: list[int]
    due: list[int]
    at: int
    round: int


class Tail(NamedTuple):
    """What a rejected draft leaves to the next canvas: token ids by offset, and its soft embedding or None."""

    tokens: dict[int, int]
    soft: Tensor | None


class Drafted(NamedTuple):
    """Tokens behind the pinned ones up to the first end, their entropies in nats, Â after each step, and the last soft
    embedding [w, D] from the last pinned one on.
    """

    tokens: list[int]
    entropies: list[float]
    expected: list[float]
    soft: Tensor | None


NO_DRAFT = Drafted([], [], [], None)
FRESH = Tail({}, None)


def draft_canvas(
    place: Place, plan: Plan, tail: Tail, policy: Policy, drafting: Drafting, guide: Guide
) -> Generator[Denoise | Draft, Reading, Drafted]:
    """Denoise a canvas whose first positions are pinned to what is known there, as long as it pays.

    Proposals are drawn as ar draws at these positions, with its numbers and at its temperature, so that they agree
    with it wherever both believe the same. What the guide would not let ar draw is no draft.
    """
    at, known, due = place.at, len(place.tokens) + len(place.due), place.due
    pins = pin_positions(dict(enumerate([*place.tokens, *due])), plan.width)
    noise = SeededCanvas(seed=drafting.seed, block=place.round, width=plan.width, vocab_size=drafting.vocab_size)
    uniforms = position_uniforms(drafting.seed, at, plan.width)
    state = start_canvas(_begin(noise.first_canvas(), tail)[None], pins)
    soft = None if tail.soft is None else tail.soft[: plan.width]
    expected: list[float] = []
    while True:
        step = state.step
        reading = yield Denoise(
            canvas=state.canvas[0],
            at=at,
            soft=soft,
            temperature=drafting.sampler.temperature(step),
            proposal_temperature=drafting.temperature,
            uniforms=uniforms,
            with_soft=drafting.keep_soft or step + 1 < plan.steps,
            pins=pins,
            window=drafting.window,
        )
        soft = reading.soft
        draws = Draws(noise.noise(step)[None], noise.routes(step)[None])
        state = update_canvas(drafting.sampler, state, as_row(reading), draws, pins, drafting.vocab_size)
        proposed = reading.proposal[known:].tolist()
        tokens = cut_answer(proposed, len(proposed), guide.ends).tokens
        tokens = tokens[: guide.count_valid([*due, *tokens]) - len(due)]
        entropies = reading.entropy[known : known + len(tokens)].tolist()
        expected.append(policy.acceptance.expect(entropies))
        yield Draft(place.round, state.step, proposed, state.accepted[0, known:].tolist())
        if bool(state.done.all()) or not policy.goes_on(plan, expected):
            kept = None if soft is None or not drafting.keep_soft else soft[known - 1 :]
            return Drafted(tokens, entropies, expected, kept)


def keep_tail(drafts: Sequence[int], accepted: int, logits: Tensor, soft: Tensor | None, longest: int) -> Tail:
    """What of drafts [k] behind the first rejected one stands where it stood, `accepted` + 1 positions further left.

    logits [k + 1, V]: row j is what the causal pass says of draft j. A draft stays if it surprises by less than 2 nats.
    soft: [w, D] or None; where nothing stays it is zero as on a first step.
    """
    beliefs = logits[: len(drafts)].log_softmax(-1)
    own = torch.tensor(drafts, dtype=torch.long, device=beliefs.device)[:, None]
    surprising, first = (beliefs.gather(-1, own)[:, 0] <= -_DOUBT).tolist(), accepted + 1  # one wait for a device
    tokens = {index - accepted: token for index, token in enumerate(drafts) if index >= first and not surprising[index]}
    if soft is None or not tokens:
        return Tail(tokens, None)
    shifted = soft.new_zeros(longest, soft.shape[-1])
    for offset in tokens:
        shifted[offset] = soft[offset + first]
    return Tail(tokens, shifted)


def _begin(noise: Tensor, tail: Tail) -> Tensor:
    kept = torch.tensor([tail.tokens.get(offset, -1) for offset in range(len(noise))])
    return torch.where(kept < 0, noise, kept)
