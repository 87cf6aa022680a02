"""Counter-based randomness: a number depends on what it is for, never on how many were drawn before.

Tables are made on the host, so every device and every batch sees the same numbers.
Source: contract 5; numpy's Philox, whose raw stream is stable by policy (NEP 19).
"""

import secrets
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Stream = Literal["propose", "noise", "route", "ar"]

_STREAM_KEYS: dict[Stream, int] = {"propose": 1, "noise": 2, "route": 3, "ar": 4}
_WORD = 4  # Philox yields four 64-bit words a counter value


class CanvasRandomness(Protocol):
    """All that is random about one canvas, each number a function of the step; tests may replay another's."""

    def first_canvas(self) -> Tensor:
        """Token ids [C] int64 that the first step is fed."""

    def uniforms(self, step: int) -> Tensor:
        """[C] float64 in [0, 1) that decide the proposals of `step`."""

    def noise(self, step: int) -> Tensor:
        """Token ids [C] int64 that stand after `step` where nothing was accepted."""

    def routes(self, step: int) -> Tensor:
        """[C] float64 in [0, 1) that decide between clean, stay and noise where ddim runs."""


@dataclass(frozen=True, kw_only=True)
class SeededCanvas:
    """The randomness of a request's canvas: a function of seed, block and attempt."""

    seed: int
    block: int
    width: int
    vocab_size: int
    attempt: int = 0

    def first_canvas(self) -> Tensor:
        """See CanvasRandomness; entry 0 of the noise stream."""
        return self._ids(0)

    def uniforms(self, step: int) -> Tensor:
        """See CanvasRandomness."""
        return self._uniforms("propose", step)

    def noise(self, step: int) -> Tensor:
        """See CanvasRandomness; entry step + 1 of the noise stream."""
        return self._ids(step + 1)

    def routes(self, step: int) -> Tensor:
        """See CanvasRandomness."""
        return self._uniforms("route", step)

    def _uniforms(self, stream: Stream, step: int) -> Tensor:
        return canvas_uniforms(self.seed, stream, block=self.block, attempt=self.attempt, step=step, width=self.width)

    def _ids(self, entry: int) -> Tensor:
        return (self._uniforms("noise", entry) * self.vocab_size).long()


def fresh_seed() -> int:
    """A random seed of 53 bits (exact in JSON) for a request that brought none."""
    return secrets.randbits(53)


def canvas_uniforms(seed: int, stream: Stream, *, block: int, attempt: int, step: int, width: int) -> Tensor:
    """Uniforms [width] float64 in [0, 1); entry p belongs to position p, so a narrower canvas is a prefix."""
    return _to_uniforms(_raw(seed, stream, (0, step, block, attempt), width))


def position_uniform(seed: int, position: int) -> float:
    """The uniform that decides the autoregressive draw at one absolute position."""
    return float(position_uniforms(seed, position, 1))


def position_uniforms(seed: int, first: int, count: int) -> Tensor:
    """position_uniform at `count` positions from `first` on, [count] float64."""
    skipped = first % _WORD
    return _to_uniforms(_raw(seed, "ar", (first // _WORD, 0, 0, 0), skipped + count))[skipped:]


def _raw(seed: int, stream: Stream, counter: tuple[int, int, int, int], count: int) -> NDArray[np.uint64]:
    key = np.array([seed, _STREAM_KEYS[stream]], dtype=np.uint64)
    return np.random.Philox(key=key, counter=np.array(counter, dtype=np.uint64)).random_raw(count)


def _to_uniforms(words: NDArray[np.uint64]) -> Tensor:
    return torch.from_numpy((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)
