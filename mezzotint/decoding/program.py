"""A decoder as a program: it yields the forwards that it needs, one after another, and events; nothing runs here.

    program ── Encode | Denoise | Guess ──► whoever runs forwards: `drive`, one request at a time, or an engine, many
            ◄─ Encoded | Reading | ids ───

A program knows neither network nor memory, so all that run it compute the same.
"""

from collections.abc import Generator, Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from mezzotint.decoding.canvas import Pins
from mezzotint.decoding.shape import Shape
from mezzotint.types import Cache, ContextPairs, FinishReason, Intervention, Network, Reading, Score
from mezzotint.types import Guess as Guess


class Encode(NamedTuple):
    """Encode `tokens` behind the first `at` tokens of the context, forgetting what stood there.

    read: how many of the last tokens' logits are wanted. Answered by Encoded.
    """

    tokens: list[int]
    at: int
    read: int


class Encoded(NamedTuple):
    """What the last tokens of an encode say of the next: logits [read, V], float32 or wider, and hidden [read, D]."""

    logits: Tensor
    hidden: Tensor


class Denoise(NamedTuple):
    """One denoise forward of canvas [C] behind the first `at` tokens of the context, and its reading.

    soft: [C, D] as the last answer gave it, or None; where pins are given it carries the embedding of their token.
    temperature, proposal_temperature, uniforms [C], with_soft: of the reading, see Network.read.
    window: context tokens that sliding layers show (None = W − 1). shape: of the logits that are read, or None.
    logits_at: offsets whose logits, so shaped, are wanted too.
    Answered by a Reading, its fields [C].
    """

    canvas: Tensor
    at: int
    soft: Tensor | None
    temperature: float
    proposal_temperature: float
    uniforms: Tensor
    with_soft: bool
    pins: Pins
    window: int | None
    shape: Shape | None = None
    logits_at: tuple[int, ...] = ()


class Drafter(Protocol):
    """A small network that guesses from the target's own states, keys and values."""

    @property
    def reach(self) -> int:
        """How many of the context's last tokens it reads in sliding layers."""

    def guess(self, need: Guess, kv: ContextPairs) -> list[int]:
        """The likeliest tokens, one after another."""

    def guess_all(self, needs: Sequence[Guess], contexts: Sequence[ContextPairs]) -> list[list[int]]:
        """The same of several rows at once, each what it would be alone."""


class Prefilled(NamedTuple):
    """The prompt is encoded; generation begins. scores: of its tokens, the first of which has none, if asked for."""

    prompt_tokens: int
    scores: tuple[Score | None, ...] | None = None


class Draft(NamedTuple):
    """A canvas after `step` steps: what it would emit now, and what it accepted; both may still change.

    entropy: how unsure the step was of each position, in nats, where it is told.
    """

    block: int
    step: int
    tokens: list[int]
    accepted: list[bool]
    entropy: list[float] | None = None


class Block(NamedTuple):
    """Final tokens (under ar a single one, else those of a canvas or of a round), and the denoising steps they took.

    scores: of each token, and uncertainty: the denoiser's entropy at each, in nats, where they were asked for.
    """

    block: int
    tokens: list[int]
    steps: int
    scores: tuple[Score, ...] | None = None
    uncertainty: tuple[float, ...] | None = None


class Finished(NamedTuple):
    """The request is over. encodes: target forwards after prefill; see contract 1 for ar's first.

    drafted, accepted: tokens that a causal pass verified, and those that it kept. guesses: a drafter's forwards.
    overridden: tokens where a grammar refused the model's likeliest. forced: where it, or a bound on thinking, left no
    choice. interventions: what a gate did about blocks in alarm.
    """

    reason: FinishReason
    encodes: int
    drafted: int = 0
    accepted: int = 0
    guesses: int = 0
    overridden: int = 0
    forced: int = 0
    interventions: tuple[Intervention, ...] = ()


Event = Prefilled | Draft | Block | Finished
Need = Encode | Denoise | Guess
Program = Generator[Need | Event, Any, None]
Told = TypeVar("Told")


def drive(
    program: Generator[Need | Told, Any, Any], network: Network, kv: Cache, drafter: Drafter | None = None
) -> Iterator[Told]:
    """Run a program alone: every forward as it asks for it. Returns: what else it tells, such as events."""
    answer: Encoded | Reading | list[int] | None = None
    while True:
        try:
            item = program.send(answer)
        except StopIteration:
            return
        answer = None
        match item:
            case Encode():
                answer = run_encode(item, network, kv)
            case Denoise():
                answer = run_denoise(item, network, kv)
            case Guess():
                assert drafter is not None  # whoever starts a program that guesses brings one
                _cut_back(kv, item.at)
                answer = drafter.guess(item, kv)
            case _:
                yield item


def run_encode(need: Encode, network: Network, kv: Cache) -> Encoded | None:
    """Answer an Encode with one causal forward. Returns: what the last tokens say, or None where none are read."""
    _cut_back(kv, need.at)
    hidden = network.encode(torch.tensor([need.tokens]), kv)[0, -need.read :]
    if not need.read:
        return None
    logits = network.logits(hidden)
    check_finite(logits)
    return Encoded(logits, hidden)


def run_denoise(need: Denoise, network: Network, kv: Cache) -> Reading:
    """Answer a Denoise with one bidirectional forward. Returns: its reading."""
    _cut_back(kv, need.at)
    soft = pin_soft(need, network)
    hidden = network.denoise(need.canvas[None], kv, None if soft is None else soft[None], window=need.window)
    check_finite(hidden)  # what is no number cannot even be drawn from
    reading = read_canvas(need, hidden[0], network)
    check_finite(reading.entropy)
    return reading


def read_canvas(need: Denoise, hidden: Tensor, network: Network) -> Reading:
    """What hidden [C, D] say: in one pass over the vocabulary, or if their logits are shaped from all of them."""
    how: Any = {
        "temperature": need.temperature,
        "proposal_temperature": need.proposal_temperature,
        "uniforms": need.uniforms,
        "with_soft": need.with_soft,
    }
    asked = list(need.logits_at)
    if need.shape is None:
        reading = network.read(hidden, **how)
        return reading._replace(logits=network.logits(hidden[asked])) if asked else reading
    logits = need.shape.adjust(network.logits(hidden))
    reading = network.read_logits(need.shape.narrow(logits, need.temperature), **how)
    return reading._replace(logits=logits[asked]) if asked else reading


def pin_soft(need: Denoise, network: Network) -> Tensor | None:
    """The soft embedding [C, D] that goes in, if any: at pinned positions it is that of the given token."""
    if need.soft is None or not bool(need.pins.mask.any()):
        return need.soft
    return need.pins.write_soft(need.soft, network.embed(need.pins.tokens))


def check_finite(numbers: Tensor) -> None:
    """Raise FloatingPointError for an output that is no number."""
    if not isfinite(float(numbers.sum())):  # it is finite only if all are, and is found in one pass
        raise FloatingPointError("the model's output is not finite; the weights or their dtype do not suit this input")


def _cut_back(kv: Cache, length: int) -> None:
    """Forget what stands behind the first `length` tokens: what a draft left there and nobody accepted."""
    if kv.length != length:
        kv.truncate(length)
