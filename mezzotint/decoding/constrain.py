"""A canvas under a grammar: a valid prefix grows from the left, and what stands behind it is shaped.

    pinned, settled ──┬── frontier, masked ──┬── open: proposals and noise, as in any canvas
    forced text       └─ what the model believes, where it is allowed and jointly sure, is settled with it

Nothing of a canvas is cached before it is encoded; only settled tokens are, and the next canvas starts behind them.
"""

from collections.abc import Callable, Generator, Iterator
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.decoding.canvas import Pins, pin_positions
from mezzotint.decoding.generate import seeded_blocks
from mezzotint.decoding.guide import Guide
from mezzotint.decoding.limits import Limits, required_positions
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.prefix import Prefix
from mezzotint.decoding.program import Block, Denoise, Draft, Event, Program, drive
from mezzotint.decoding.propose import draw_next
from mezzotint.decoding.random import CanvasRandomness
from mezzotint.decoding.sampler import SAMPLERS, CanvasState, Draws, Sampler, as_row, start_canvas, update_canvas
from mezzotint.decoding.score import commit_block, encode_prompt
from mezzotint.decoding.shape import Shape, shape_canvas
from mezzotint.types import Constraint, Network, Reading

_SHIFT = 16  # places within which a draft may already hold what is forced
_PATIENCE = 4  # steps that the model may stay unsure of the frontier before it is settled all the same


class Settled(NamedTuple):
    """What a canvas gave: its settled tokens, at least one, its denoising steps, and how unsure it was of each token.

    uncertainty: entropy in nats among what the grammar allowed when it was settled; 0 where it left no choice.
    """

    tokens: list[int]
    steps: int
    uncertainty: tuple[float, ...]


def generate_constrained(
    network: Network,
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    constraint: Constraint,
    *,
    defaults: Sampler = SAMPLERS["report"],
    window: int | None = None,
) -> Iterator[Event]:
    """Denoise an answer that follows a grammar, at its beginning, block after block; see generate_blocks.

    It is whole wherever one could be whole within max_tokens, and else the beginning of a whole one.
    Raises: ValueError if prompt and max_tokens exceed the context.
    """
    capacity = required_positions(len(prompt), params, limits, is_constrained=True)
    limits = limits.of(params)
    guide = Guide(prompt, params, seed, limits, constraint)
    program = constrain_blocks(
        prompt, params, seeded_blocks(seed, limits), limits, guide, defaults=defaults, window=window
    )
    events: Iterator[Event] = drive(program, network, network.new_kv(1, capacity))
    yield from events


def constrain_blocks(
    prompt: list[int],
    params: SamplingParams,
    randomness: Callable[[int], CanvasRandomness],
    limits: Limits,
    guide: Guide,
    *,
    defaults: Sampler,
    window: int | None = None,
) -> Program:
    """The program of decoder `diffusion` under a grammar.

    A block is what its canvas settled; a canvas whose steps are spent gives what it has.
    """
    sampler = params.resolve_sampler(defaults)
    scored = params.logprobs is not None
    encoded = yield from encode_prompt(prompt, params, read=int(scored), width=limits.canvas_length)
    at = len(prompt)
    for block in count():
        settled = yield from constrain_canvas(
            at,
            sampler,
            randomness(block),
            guide,
            limits,
            temperature=params.temperature,
            window=window,
            shape=shape_canvas(params, limits, at - len(prompt)),
            block=block,
        )
        told = Block(block, settled.tokens, settled.steps, uncertainty=settled.uncertainty if scored else None)
        encoded = yield from commit_block(told, at, encoded, params, is_last=bool(guide.reason))
        if guide.reason:
            yield guide.finish(encodes=block + scored)
            return
        at += len(settled.tokens)


def constrain_canvas(
    at: int,
    sampler: Sampler,
    randomness: CanvasRandomness,
    guide: Guide,
    limits: Limits,
    *,
    temperature: float,
    window: int | None,
    shape: Shape | None,
    block: int,
) -> Generator[Denoise | Draft, Reading, Settled]:
    """The program of one canvas behind `at` tokens: denoise until all of it is settled, the answer over or steps spent.

    A step settles the valid run of which it is jointly sure, ΣH ≤ the entropy bound; once the canvas has converged,
    all that is valid. A frontier of which it stays unsure for 4 steps is settled too, and one when the steps are spent.
    A step that finds a mistake in what is settled takes back all from there on instead.
    Source: contract 29.
    """
    width, budget = limits.canvas_length, sampler.budget
    prefix = Prefix(guide, width)
    state = start_canvas(randomness.first_canvas()[None], _pin(prefix.tokens, width))
    soft: Tensor | None = None
    while not (guide.reason or len(prefix.tokens) == width or state.step == budget):
        pins, noise, before = _pin(prefix.tokens, width), randomness.noise(state.step), state.argmax
        need = Denoise(
            canvas=state.canvas[0],
            at=at,
            soft=soft,
            temperature=sampler.temperature(state.step),
            proposal_temperature=sampler.proposal_temperature(state.step, temperature),
            uniforms=randomness.uniforms(state.step),
            with_soft=state.step + 1 < budget,
            pins=pins,
            window=window,
            shape=shape,
            logits_at=(len(prefix.tokens),),
        )
        reading = yield need
        masked = _mask_frontier(reading, need, guide, prefix)
        state = update_canvas(sampler, state, as_row(masked.reading), Draws(noise[None], None), pins, limits.vocab_size)
        open_ = _Open(state.canvas[0], reading.soft)
        mistake = None
        if state.step < budget and before is not None:
            mistake = prefix.find_mistake(masked.mass, reading, before[0])
        if mistake is not None:
            prefix.take_back(mistake)
            open_ = open_.clear(mistake, noise)
        else:
            _settle_run(masked.reading, reading, guide, sampler, state, prefix)
        open_ = _follow(open_, prefix, guide, noise)
        state, soft = state._replace(canvas=open_.canvas[None]), open_.soft
        is_settled = [offset < len(prefix.tokens) for offset in range(width)]
        yield Draft(block, state.step, open_.canvas.tolist(), is_settled, masked.reading.entropy.tolist())
    return Settled(prefix.tokens, state.step, tuple(prefix.doubts))


class _Open(NamedTuple):
    """A canvas [C] between steps, and its soft embedding [C, D] or None."""

    canvas: Tensor
    soft: Tensor | None

    def clear(self, first: int, noise: Tensor) -> "_Open":
        """Begin anew from offset `first` on."""
        soft = None if self.soft is None else torch.cat([self.soft[:first], torch.zeros_like(self.soft[first:])])
        return _Open(torch.cat([self.canvas[:first], noise[first:]]), soft)


class _Masked(NamedTuple):
    """A reading [C] that at the frontier knows only what may stand there, and how much the model believed of that."""

    reading: Reading
    mass: float


def _pin(settled: list[int], width: int) -> Pins:
    return pin_positions(dict(enumerate(settled)), width)


def _mask_frontier(reading: Reading, need: Denoise, guide: Guide, prefix: Prefix) -> _Masked:
    """What the model says at the frontier of the tokens allowed there, those taken back not among them."""
    assert reading.logits is not None
    [front] = need.logits_at
    logits = guide.mask(reading.logits[0])
    if barred := prefix.barred.get(front):
        others = logits.clone()
        others[list(barred)] = -torch.inf
        logits = logits if bool((others == -torch.inf).all()) else others
    argmax, proposal, entropy = reading.argmax.clone(), reading.proposal.clone(), reading.entropy.clone()
    argmax[front] = logits.argmax()
    if logits[proposal[front]] == -torch.inf:
        uniform, temperature = float(need.uniforms[front]), need.proposal_temperature
        proposal[front] = draw_next(logits, uniform, temperature=temperature, top_k=None, top_p=1, min_p=0)
    entropy[front] = torch.special.entr((logits.double() / need.temperature).softmax(-1)).sum()
    mass = float((logits.logsumexp(-1) - reading.logits[0].logsumexp(-1)).exp())
    return _Masked(reading._replace(argmax=argmax, proposal=proposal, entropy=entropy), mass)


def _settle_run(
    masked: Reading, free: Reading, guide: Guide, sampler: Sampler, state: CanvasState, prefix: Prefix
) -> None:
    """Settle the valid tokens from the frontier on of which a step is sure, and count an override.

    They are those that a block of this sampler would emit: what is settled is never drawn again, and a rare draw that
    the next step would have corrected would stay.
    """
    front = len(prefix.tokens)
    has_converged = bool(state.done.all()) and state.step < sampler.budget
    must = prefix.waited + 1 >= _PATIENCE or (not front and state.step == sampler.budget)
    tokens = (masked.argmax if sampler.emits == "argmax" else masked.proposal)[front:].tolist()
    valid = guide.count_valid(tokens)
    valid = next((index for index in range(1, valid) if tokens[index] in prefix.barred.get(front + index, ())), valid)
    if not has_converged:
        sure = masked.entropy[front : front + valid].double().cumsum(-1) <= sampler.entropy_bound
        valid = max(int(sure.sum()), int(must))
    is_overridden = int(masked.argmax[front]) != int(free.argmax[front])
    prefix.settle(tokens[:valid], masked.entropy[front : front + valid].tolist(), is_overridden=is_overridden)


def _follow(open_: _Open, prefix: Prefix, guide: Guide, noise: Tensor) -> _Open:
    """Settle what is due, and shape what is open.

    A draft that holds the due tokens a few places further right is moved left to them, and ends of turn give way to
    noise in the nearer half of the shortest way to a whole answer.
    """
    (canvas, soft), first = open_, len(prefix.tokens)
    due = prefix.settle_due(len(noise) - first)
    if gap := _find_later(canvas[first:].tolist(), due):
        canvas = torch.cat([canvas[:first], canvas[first + gap :], noise[-gap:]])
        soft = None if soft is None else torch.cat([soft[:first], soft[first + gap :], torch.zeros_like(soft[-gap:])])
    early = torch.arange(len(noise)) < len(prefix.tokens) + guide.shortest // 2
    ends = torch.isin(canvas, torch.tensor(guide.ends, dtype=torch.long))
    canvas = torch.where(early & ends, noise, canvas)
    return _Open(_pin(prefix.tokens, len(noise)).write(canvas), soft)


def _find_later(draft: list[int], due: list[int]) -> int:
    """How far right of its beginning a draft holds what is due, two tokens or more; 0 where it does not soon."""
    size = len(due)
    if size < 2 or draft[:size] == due:
        return 0
    return next((gap for gap in range(1, _SHIFT + 1) if draft[gap : gap + size] == due), 0)
