"""The whole method for one prompt, block by block or token by token: what every fast path must equal."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from functools import partial
from itertools import count

import torch

from mezzotint.decoding.agree import agree
from mezzotint.decoding.canvas import Pins, no_pins, pin_positions
from mezzotint.decoding.conflicts import check_conflicts
from mezzotint.decoding.guide import Guide
from mezzotint.decoding.limits import Limits, check_pins, required_positions
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.program import Block, Denoise, Draft, Encode, Event, Finished, Prefilled, Program, Told, drive
from mezzotint.decoding.random import CanvasRandomness, SeededCanvas
from mezzotint.decoding.sampler import (
    SAMPLERS,
    CanvasState,
    Draws,
    Sampler,
    as_row,
    cut_row,
    cut_state,
    start_canvas,
    update_canvas,
)
from mezzotint.decoding.score import commit_block, encode_prompt
from mezzotint.decoding.shape import Shape, shape_canvas
from mezzotint.decoding.stop import cut_answer
from mezzotint.decoding.thoughts import bound_thoughts
from mezzotint.types import Cache, Constraint, Network, Reading, Stopper

__all__ = [
    "Block",
    "Draft",
    "Event",
    "Finished",
    "Limits",
    "Prefilled",
    "check_pins",
    "denoise_blocks",
    "denoise_canvas",
    "draw_tokens",
    "find_doubts",
    "generate_blocks",
    "generate_tokens",
    "required_positions",
    "seeded_blocks",
    "settle_blocks",
    "settle_canvas",
    "tell_draft",
]


def generate_blocks(
    network: Network,
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    *,
    defaults: Sampler = SAMPLERS["report"],
    pins: Mapping[int, Pins] | None = None,
    stopper: Stopper | None = None,
    window: int | None = None,
) -> Iterator[Event]:
    """Denoise one block after another behind `prompt` until an end token, where `stopper` ends it, or max_tokens.

    pins: given tokens by block. window: context tokens that sliding layers show to a canvas (None = W − 1).
    The last block is not encoded (contract 2).
    Raises: ValueError if prompt and reserved canvases exceed the context, pins lie outside these canvases, or options
    exclude each other.
    """
    randomness, given = seeded_blocks(seed, limits.of(params)), pins or {}
    return settle_blocks(
        network, prompt, params, randomness, limits, defaults=defaults, pins=given, stopper=stopper, window=window
    )


def seeded_blocks(seed: int, limits: Limits) -> Callable[[int], SeededCanvas]:
    """The randomness of a request, by block."""
    width, vocab_size = limits.canvas_length, limits.vocab_size
    return lambda block: SeededCanvas(seed=seed, block=block, width=width, vocab_size=vocab_size)


def settle_blocks(
    network: Network,
    prompt: list[int],
    params: SamplingParams,
    randomness: Callable[[int], CanvasRandomness],
    limits: Limits,
    *,
    defaults: Sampler,
    pins: Mapping[int, Pins],
    stopper: Stopper | None = None,
    window: int | None,
) -> Iterator[Event]:
    """generate_blocks with any randomness, given by block; a parity test replays the reference's."""
    check_conflicts(params, limits, is_stopped=stopper is not None, is_pinned=bool(pins))
    capacity, limits = required_positions(len(prompt), params, limits), limits.of(params)
    check_pins(pins, blocks=(capacity - len(prompt)) // limits.canvas_length, limits=limits)
    program = denoise_blocks(
        prompt, params, randomness, limits, defaults=defaults, pins=pins, stopper=stopper, window=window
    )
    events: Iterator[Event] = drive(program, network, network.new_kv(1, capacity))
    yield from events


def denoise_blocks(
    prompt: list[int],
    params: SamplingParams,
    randomness: Callable[[int], CanvasRandomness],
    limits: Limits,
    *,
    defaults: Sampler,
    pins: Mapping[int, Pins],
    stopper: Stopper | None = None,
    window: int | None = None,
) -> Program:
    """The program of decoder `diffusion`; see generate_blocks.

    Where thoughts have to close a block is cut, the closing token written, and the next canvas starts behind it. One
    that has to begin with that token has it pinned.
    """
    sampler, limits = params.resolve_sampler(defaults), limits.of(params)
    stopper, thoughts = stopper and stopper.restart(), bound_thoughts(prompt, params, limits)
    scored = params.logprobs is not None
    encoded = yield from encode_prompt(prompt, params, read=int(scored), width=limits.canvas_length)
    ends = () if params.ignore_eos else limits.end_ids
    at = len(prompt)
    for block in count():
        room = params.max_tokens - (at - len(prompt))
        given = pins.get(block, no_pins(limits.canvas_length))
        if thoughts is not None and thoughts.must_close(room):
            given = pin_positions({0: thoughts.closing}, limits.canvas_length)
        state = yield from denoise_canvas(
            at,
            sampler,
            randomness(block),
            given,
            limits,
            temperature=params.temperature,
            window=window,
            shape=shape_canvas(params, limits, at - len(prompt)),
            drop_behind=ends if params.drop_after_end else (),
            tell=partial(tell_draft, block),
        )
        cut = cut_answer(state.output[0].tolist(), room, ends, stopper, thoughts)
        told = Block(block, cut.tokens, state.step, uncertainty=find_doubts(state, cut.tokens) if scored else None)
        encoded = yield from commit_block(told, at, encoded, params, is_last=bool(cut.reason))
        if cut.reason:
            yield Finished(cut.reason, encodes=block + scored, forced=0 if thoughts is None else thoughts.forced)
            return
        at += len(cut.tokens)


def settle_canvas(
    network: Network,
    kv: Cache,
    sampler: Sampler,
    randomness: CanvasRandomness,
    pins: Pins,
    limits: Limits,
    *,
    temperature: float = 1.0,
    window: int | None = None,
) -> Iterator[CanvasState]:
    """Denoise one canvas behind the context in `kv`; yields its state after each step, the last one done.

    temperature: the request's factor on the sampler's schedule (contract 3). window: as in generate_blocks.
    Source: the report's Algorithm 1; contract 5, 13.
    """
    program = denoise_canvas(
        kv.length,
        sampler,
        randomness,
        pins,
        limits,
        temperature=temperature,
        window=window,
        tell=lambda state: state,
    )
    return drive(program, network, kv)


def denoise_canvas(
    at: int,
    sampler: Sampler,
    randomness: CanvasRandomness,
    pins: Pins,
    limits: Limits,
    *,
    temperature: float,
    window: int | None,
    shape: Shape | None = None,
    drop_behind: Collection[int] = (),
    tell: Callable[[CanvasState], Told],
) -> Generator[Denoise | Told, Reading, CanvasState]:
    """The program of one canvas behind `at` tokens of context; see settle_canvas.

    drop_behind: ids behind which nothing is denoised any longer once one was accepted and has stood for two steps.
    tell: what to yield of the state after each step. Returns: the last state.
    """
    state = start_canvas(randomness.first_canvas()[None], pins)
    soft = None
    while not bool(state.done.all()):
        step, width = state.step, state.canvas.shape[1]
        reading = yield Denoise(
            canvas=state.canvas[0],
            at=at,
            soft=soft,
            temperature=sampler.temperature(step),
            proposal_temperature=sampler.proposal_temperature(step, temperature),
            uniforms=randomness.uniforms(step)[:width],
            with_soft=step + 1 < sampler.budget,
            pins=pins,
            window=window,
            shape=shape,
        )
        routes = randomness.routes(step)[None, :width] if sampler.rule == "ddim" else None
        row, draws = as_row(reading), Draws(randomness.noise(step)[None, :width], routes)
        moved = update_canvas(sampler, state, row, draws, pins, limits.vocab_size)
        if drop_behind and (kept := _find_width(state, moved, pins, drop_behind)) < width:
            # The step is taken again, as if the canvas had been narrow: it may have converged by now.
            pins, draws = Pins(pins.mask[:kept], pins.tokens[:kept]), draws.cut(kept)
            moved = update_canvas(sampler, cut_state(state, kept), cut_row(row, kept), draws, pins, limits.vocab_size)
        state, soft = moved, None if reading.soft is None else reading.soft[: moved.canvas.shape[1]]
        yield tell(state)
    return state


def _find_width(before: CanvasState, after: CanvasState, pins: Pins, ends: Collection[int]) -> int:
    """How many positions of a canvas go on: all up to the first settled end. Pins are never dropped."""
    width = after.canvas.shape[1]
    if before.argmax is None or after.argmax is None:
        return width
    stands = (after.argmax == before.argmax)[0] & after.accepted[0] & torch.isin(after.output[0], torch.tensor([*ends]))
    first = int(stands.to(torch.uint8).argmax())
    return first + 1 if bool(stands[first]) and not bool(pins.mask[first + 1 :].any()) else width


def generate_tokens(
    network: Network,
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    constraint: Constraint | None = None,
    stopper: Stopper | None = None,
) -> Iterator[Event]:
    """Draw one token after another with the causal forward; the last token drawn is not encoded.

    constraint: a grammar at its beginning. What it leaves no choice about needs no forward of its own. stopper: what
    ends the answer besides its end tokens. The forward that yields the first token is the prompt's; it counts as one
    (contract 1).
    """
    kv = network.new_kv(1, required_positions(len(prompt), params, limits))
    guide = Guide(prompt, params, seed, limits, constraint, stopper)
    events: Iterator[Event] = drive(draw_tokens(prompt, params, guide, limits), network, kv)
    yield from events


def draw_tokens(prompt: list[int], params: SamplingParams, guide: Guide, limits: Limits) -> Program:
    """The program of decoder `ar`; see generate_tokens. Tokens that are due and have to be scored are its drafts."""
    most = limits.canvas_length - 1
    encoded = yield from encode_prompt(prompt, params, read=1, width=limits.canvas_length)
    assert encoded is not None
    at, ahead = len(prompt), list[int]()
    for round_ in count():
        agreement = agree(encoded.logits[-1 - len(ahead) :], ahead, guide, at)
        yield Block(round_, agreement.tokens, 0, guide.take_scores())
        if guide.reason:
            yield guide.finish(encodes=round_ + 1)
            return
        new, start = agreement.tokens[len(ahead) :], at + len(ahead)
        ahead = guide.peek(most)  # unscored there is nothing: it is settled by now
        encoded = yield Encode([*new, *ahead], start, 1 + len(ahead))
        at = start + len(new)


def find_doubts(state: CanvasState, tokens: list[int]) -> tuple[float, ...]:
    """The denoiser's entropy at each token of its block; 0 where another one than its own was forced."""
    assert state.entropy is not None
    told = zip(state.entropy[0].tolist(), state.output[0].tolist(), tokens, strict=False)
    return tuple(entropy if own == token else 0.0 for entropy, own, token in told)


def tell_draft(block: int, state: CanvasState) -> Draft:
    """A canvas between steps as an event."""
    assert state.entropy is not None  # a step has been taken
    return Draft(block, state.step, state.output[0].tolist(), state.accepted[0].tolist(), state.entropy[0].tolist())
