"""A decoder as a program: it yields the forwards that it needs, one after another, and events; nothing runs here.

    program ── Encode | Denoise | Guess ──► whoever runs forwards: `drive`, one request at a time, or an engine, many
            ◄─ Encoded | Reading | ids ───

A program knows neither network nor memory, so all that run it compute the same.
"""

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from mezzotint.decoding.canvas import Pins
from mezzotint.types import Cache, ContextPairs, FinishReason, Network, Reading
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

    soft: [C, D] as the last answer gave it, or None. temperature, proposal_temperature, uniforms [C], with_soft: of
    the reading, see Network.read. pins: whose embeddings stand in the soft embedding that comes back.
    window: context tokens that sliding layers show (None = W − 1). Answered by a Reading, its fields [C].
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


class Drafter(Protocol):
    """A small network that guesses from the target's own states, keys and values."""

    @property
    def reach(self) -> int:
        """How many of the context's last tokens it reads in sliding layers."""

    def guess(self, need: Guess, kv: ContextPairs) -> list[int]:
        """The likeliest tokens, one after another."""


class Prefilled(NamedTuple):
    """The prompt is encoded; generation begins."""

    prompt_tokens: int


class Draft(NamedTuple):
    """A canvas after `step` steps: what it would emit now, and what it accepted; both may still change."""

    block: int
    step: int
    tokens: list[int]
    accepted: list[bool]


class Block(NamedTuple):
    """Final tokens (under ar a single one, else those of a canvas or of a round), and the denoising steps they took."""

    block: int
    tokens: list[int]
    steps: int


class Finished(NamedTuple):
    """The request is over. encodes: target forwards after prefill; see contract 1 for ar's first.

    drafted, accepted: tokens that a causal pass verified, and those that it kept. guesses: a drafter's forwards.
    """

    reason: FinishReason
    encodes: int
    drafted: int = 0
    accepted: int = 0
    guesses: int = 0


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
    return Encoded(network.logits(hidden), hidden) if need.read else None


def run_denoise(need: Denoise, network: Network, kv: Cache) -> Reading:
    """Answer a Denoise with one bidirectional forward. Returns: its reading, pins in its soft embedding."""
    _cut_back(kv, need.at)
    soft = None if need.soft is None else need.soft[None]
    hidden = network.denoise(need.canvas[None], kv, soft, window=need.window)
    reading = network.read(
        hidden[0],
        temperature=need.temperature,
        proposal_temperature=need.proposal_temperature,
        uniforms=need.uniforms,
        with_soft=need.with_soft,
    )
    return pin_soft(reading, need.pins, network)


def pin_soft(reading: Reading, pins: Pins, network: Network) -> Reading:
    """A reading [C] whose soft embedding, if any, carries the embeddings of pinned tokens."""
    if reading.soft is None or not bool(pins.mask.any()):
        return reading
    return reading._replace(soft=pins.write_soft(reading.soft, network.embed(pins.tokens)))


def _cut_back(kv: Cache, length: int) -> None:
    """Forget what stands behind the first `length` tokens: what a draft left there and nobody accepted."""
    if kv.length != length:
        kv.truncate(length)
