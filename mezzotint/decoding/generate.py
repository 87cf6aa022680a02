"""The whole method for one prompt, block by block or token by token: what every fast path must equal."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count

from mezzotint.decoding.canvas import Pins, no_pins
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.program import Block, Denoise, Draft, Encode, Event, Finished, Prefilled, Program, Told, drive
from mezzotint.decoding.propose import draw_at
from mezzotint.decoding.random import CanvasRandomness, SeededCanvas
from mezzotint.decoding.sampler import SAMPLERS, CanvasState, Draws, Sampler, start_canvas, update_canvas
from mezzotint.decoding.stop import cut_answer
from mezzotint.types import Cache, Network, Reading

__all__ = [
    "Block",
    "Draft",
    "Event",
    "Finished",
    "Limits",
    "Prefilled",
    "as_row",
    "check_pins",
    "denoise_blocks",
    "denoise_canvas",
    "draw_tokens",
    "generate_blocks",
    "generate_tokens",
    "required_positions",
    "seeded_blocks",
    "settle_blocks",
    "settle_canvas",
]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the checkpoint fixes: sizes in tokens, and the ids that end a turn."""

    vocab_size: int
    canvas_length: int
    max_positions: int
    end_ids: Collection[int]


def generate_blocks(
    network: Network,
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    *,
    defaults: Sampler = SAMPLERS["report"],
    pins: Mapping[int, Pins] | None = None,
    window: int | None = None,
) -> Iterator[Event]:
    """Denoise one block after another behind `prompt` until an end token or max_tokens.

    pins: given tokens by block. window: context tokens that sliding layers show to a canvas (None = W − 1).
    The last block is not encoded (contract 2).
    Raises: ValueError if prompt and reserved canvases exceed the context, or pins lie outside these canvases.
    """
    randomness = seeded_blocks(seed, limits)
    return settle_blocks(network, prompt, params, randomness, limits, defaults=defaults, pins=pins or {}, window=window)


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
    window: int | None,
) -> Iterator[Event]:
    """generate_blocks with any randomness, given by block; a parity test replays the reference's."""
    capacity = required_positions(len(prompt), params, limits)
    check_pins(pins, blocks=(capacity - len(prompt)) // limits.canvas_length, limits=limits)
    program = denoise_blocks(prompt, params, randomness, limits, defaults=defaults, pins=pins, window=window)
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
    window: int | None = None,
) -> Program:
    """The program of decoder `diffusion`; see generate_blocks."""
    sampler, width = params.resolve_sampler(defaults), limits.canvas_length
    yield Encode(prompt, 0, 0)
    yield Prefilled(len(prompt))
    ends = () if params.ignore_eos else limits.end_ids
    for block in count():
        at = len(prompt) + block * width
        state = yield from denoise_canvas(
            at,
            sampler,
            randomness(block),
            pins.get(block, no_pins(width)),
            limits,
            temperature=params.temperature,
            window=window,
            tell=partial(_draft, block),
        )
        cut = cut_answer(state.output[0].tolist(), params.max_tokens - block * width, ends)
        yield Block(block, cut.tokens, state.step)
        if cut.reason:
            yield Finished(cut.reason, encodes=block)
            return
        yield Encode(state.output[0].tolist(), at, 0)


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
    tell: Callable[[CanvasState], Told],
) -> Generator[Denoise | Told, Reading, CanvasState]:
    """The program of one canvas behind `at` tokens of context; see settle_canvas.

    tell: what to yield of the state after each step. Returns: the last state.
    """
    state = start_canvas(randomness.first_canvas()[None], pins)
    soft = None
    while not bool(state.done.all()):
        step = state.step
        reading = yield Denoise(
            canvas=state.canvas[0],
            at=at,
            soft=soft,
            temperature=sampler.temperature(step),
            proposal_temperature=sampler.proposal_temperature(step, temperature),
            uniforms=randomness.uniforms(step),
            with_soft=step + 1 < sampler.budget,
            pins=pins,
            window=window,
        )
        routes = randomness.routes(step)[None] if sampler.rule == "ddim" else None
        draws = Draws(randomness.noise(step)[None], routes)
        state = update_canvas(sampler, state, as_row(reading), draws, pins, limits.vocab_size)
        soft = reading.soft
        yield tell(state)
    return state


def generate_tokens(
    network: Network, prompt: list[int], params: SamplingParams, seed: int, limits: Limits
) -> Iterator[Event]:
    """Draw one token after another with the causal forward; the last token drawn is not encoded.

    The forward that yields the first token is the prompt's; it counts as one (contract 1).
    """
    kv = network.new_kv(1, required_positions(len(prompt), params, limits))
    events: Iterator[Event] = drive(draw_tokens(prompt, params, seed, limits), network, kv)
    yield from events


def draw_tokens(prompt: list[int], params: SamplingParams, seed: int, limits: Limits) -> Program:
    """The program of decoder `ar`; see generate_tokens."""
    encoded = yield Encode(prompt, 0, 1)
    yield Prefilled(len(prompt))
    ends = () if params.ignore_eos else limits.end_ids
    for drawn in range(params.max_tokens):
        token = draw_at(encoded.logits[-1], params, seed, len(prompt) + drawn)
        cut = cut_answer([token], params.max_tokens - drawn, ends)
        yield Block(drawn, cut.tokens, 0)
        if cut.reason:
            yield Finished(cut.reason, encodes=drawn + 1)
            return
        encoded = yield Encode([token], len(prompt) + drawn, 1)


def required_positions(prompt_tokens: int, params: SamplingParams, limits: Limits) -> int:
    """Positions that a request may touch: whole canvases under diffusion, else max_tokens.

    Raises: ValueError if they exceed the context, or the prompt is empty.
    """
    if not prompt_tokens:
        raise ValueError("the prompt has 0 tokens; give at least 1 (chat templates begin with <bos>)")
    width = limits.canvas_length if params.decoder == "diffusion" else 1
    reserved = -(-params.max_tokens // width) * width
    if prompt_tokens + reserved > limits.max_positions:
        raise ValueError(
            f"prompt of {prompt_tokens} tokens + {reserved} for max_tokens {params.max_tokens} exceed "
            f"the context of {limits.max_positions}; shorten the prompt or ask for fewer tokens"
        )
    return prompt_tokens + reserved


def check_pins(pins: Mapping[int, Pins], *, blocks: int, limits: Limits) -> None:
    """Refuse pins of canvases that a request does not have, or of another width, or outside the vocabulary.

    Raises: ValueError naming the block and the remedy.
    """
    width, vocab_size = limits.canvas_length, limits.vocab_size
    for block, given in pins.items():
        if not 0 <= block < blocks:
            raise ValueError(f"block {block} has pins, but max_tokens makes {blocks} (from 0 on); raise max_tokens")
        if len(given.mask) != width:
            raise ValueError(f"pins of block {block} span {len(given.mask)} tokens; a canvas has {width}")
        for token in given.tokens[given.mask].tolist():
            if not 0 <= token < vocab_size:
                raise ValueError(f"block {block} pins token id {token}; ids go from 0 to {vocab_size - 1}")


def as_row(reading: Reading) -> Reading:
    """A canvas's reading as a batch of one row; the soft embedding goes its own way."""
    return Reading(
        argmax=reading.argmax[None],
        proposal=reading.proposal[None],
        entropy=reading.entropy[None],
        log_prob=reading.log_prob[None],
        soft=None,
    )


def _draft(block: int, state: CanvasState) -> Draft:
    return Draft(block, state.step, state.output[0].tolist(), state.accepted[0].tolist())
