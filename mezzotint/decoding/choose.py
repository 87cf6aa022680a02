"""Which of several answers: how likely a model finds each, from one read of a canvas or from the causal pass."""

from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

import torch

from mezzotint.decoding.blank import lay_blank
from mezzotint.decoding.limits import Limits, required_positions
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.program import Denoise, Encode, Encoded, drive
from mezzotint.decoding.random import SeededCanvas
from mezzotint.decoding.score import score
from mezzotint.types import Network, Reading


class Surplus(NamedTuple):
    """What stands where nothing is said: `pad_id` in a blank behind what fills it, `fill_id` behind the end of turn."""

    pad_id: int
    fill_id: int


def read_choices(
    network: Network,
    prompt: list[int],
    choices: Sequence[Sequence[int]],
    seed: int,
    limits: Limits,
    surplus: Surplus,
) -> list[float]:
    """How likely each choice is as the whole answer, read off one canvas in one denoise forward behind the prompt.

    Its blank is as long as the longest choice and stands before the end of turn. A choice is as likely as the geometric
    mean of its tokens, each at its place, pads behind a shorter one, over the places at which choices differ: every one
    of them says which choice it is, and a product would count what they all say that many times.
    seed: of the noise in the blank.
    Returns: log-probabilities in nats; as probabilities they sum to 1.
    Raises: ValueError naming what is wrong with the choices, or that prompt and canvas exceed the context.
    """
    _check(choices, limits.canvas_length - 1, "a canvas has room for")
    kv = network.new_kv(1, required_positions(len(prompt), SamplingParams(max_tokens=1), limits))
    program = _read_blank(prompt, choices, seed, limits, surplus)
    told: Iterator[list[float]] = drive(program, network, kv)
    return _normalise(next(told))


def score_choices(network: Network, prompt: list[int], choices: Sequence[Sequence[int]], limits: Limits) -> list[float]:
    """How likely the causal pass finds each choice, with its end of turn, as the whole answer: an encode a choice.

    Returns and raises: as read_choices.
    """
    _check(choices, limits.max_positions - 1, "the context has room for")
    params = SamplingParams(decoder="ar", max_tokens=max(map(len, choices)) + 1)  # with its end of turn
    kv = network.new_kv(1, required_positions(len(prompt), params, limits))
    told: Iterator[list[float]] = drive(_score_each(prompt, choices, limits.written_end), network, kv)
    return _normalise(next(told))


def _read_blank(
    prompt: list[int], choices: Sequence[Sequence[int]], seed: int, limits: Limits, surplus: Surplus
) -> Generator[Encode | Denoise | list[float], Reading, None]:
    width, longest = limits.canvas_length, max(map(len, choices))
    noise = SeededCanvas(seed=seed, block=0, width=width, vocab_size=limits.vocab_size)
    pins = lay_blank([limits.written_end], longest, width, surplus.fill_id).pins
    yield Encode(prompt, 0, 0)
    reading = yield Denoise(
        canvas=pins.write(noise.first_canvas()),
        at=len(prompt),
        soft=None,
        temperature=1.0,
        proposal_temperature=0.0,
        uniforms=noise.uniforms(0),
        with_soft=False,
        pins=pins,
        window=None,
        logits_at=tuple(range(longest)),
    )
    assert reading.logits is not None
    log_p = reading.logits.double().log_softmax(-1)
    filled = [[*choice, *[surplus.pad_id] * (longest - len(choice))] for choice in choices]
    telling = sum(len(set(tokens)) > 1 for tokens in zip(*filled, strict=True))
    yield (log_p.gather(-1, torch.tensor(filled, device=log_p.device).T).sum(0) / telling).tolist()


def _score_each(
    prompt: list[int], choices: Sequence[Sequence[int]], end: int
) -> Generator[Encode | list[float], Encoded, None]:
    first = yield Encode(prompt, 0, 1)
    totals: list[float] = []
    for choice in choices:
        encoded = yield Encode(list(choice), len(prompt), len(choice))
        logits = torch.cat([first.logits, encoded.logits])
        totals.append(sum(one.logprob for one in score(logits, [*choice, end], 0)))
    yield totals


def _normalise(totals: list[float]) -> list[float]:
    return torch.tensor(totals, dtype=torch.float64).log_softmax(-1).tolist()


def _check(choices: Sequence[Sequence[int]], room: int, whose: str) -> None:
    if len(choices) < 2:
        raise ValueError(f"{len(choices)} choices were given; there is something to choose from 2 on")
    if len({tuple(choice) for choice in choices}) < len(choices):
        raise ValueError("two of the choices are the same tokens; give each once")
    for choice in choices:
        if not 0 < len(choice) <= room:
            raise ValueError(f"a choice has {len(choice)} tokens, and {whose} 1 to {room}; shorten it")
