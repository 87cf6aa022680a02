"""A network's two forwards and what is said around them, between decoding, model, text and engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

DecoderName = Literal["diffusion", "ar", "verified", "mtp"]
DraftTail = Literal["fresh", "tail", "tail+soft"]
FinishReason = Literal["stop", "length"]
GateName = Literal["off", "text", "causal"]
Mending = Literal["trim", "reroll", "ar", "verified"]


class Reading(NamedTuple):
    """What one pass over the vocabulary says of N hidden states.

    argmax, proposal: [N] int64. entropy (nats, at the sampler's temperature) and log_prob (of the proposal, at the
    proposal's temperature): [N] float32 or wider. soft: [N, D] soft embedding in the weights' dtype, or None.
    logits: [K, V] of K states that were asked for, or None.
    """

    argmax: Tensor
    proposal: Tensor
    entropy: Tensor
    log_prob: Tensor
    soft: Tensor | None
    logits: Tensor | None = None


class Score(NamedTuple):
    """A token's log-probability in nats, and those of the likeliest ids at its place, the likeliest first."""

    logprob: float
    top: tuple[tuple[int, float], ...]


class Guess(NamedTuple):
    """`size` tokens that a drafter expects behind `token`, which follows the first `at` tokens of the context.

    hidden: [D] the target's state that `token` was drawn from. Answered by a list of ids.
    """

    token: int
    hidden: Tensor
    at: int
    size: int


class Channel(NamedTuple):
    """The ids that thoughts open and close with; behind one of `leaving` they are over without being closed."""

    opening: int
    closing: int
    leaving: tuple[int, ...] = ()


class Alarm(NamedTuple):
    """A sign that a block went wrong, by its kind; offset: of the block's first token that is in question."""

    kind: str
    offset: int


class Intervention(NamedTuple):
    """What a gate did about alarms of a block, by their kinds, and the forwards that it took.

    trim: the tokens before the first alarm were kept. reroll: a narrower canvas with fresh noise was tried. ar,
    verified: the causal pass wrote a part of the answer.
    """

    block: int
    kinds: tuple[str, ...]
    action: Mending
    forwards: int


class KeyValues(Protocol):
    """What a forward needs of the context: its length, and a place for the new tokens behind it."""

    @property
    def length(self) -> int:
        """Tokens encoded so far."""

    def place(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Put new k, v [B, heads, T, head_dim] behind the context; return both over context and new tokens."""

    def advance(self, count: int) -> None:
        """Make the last placed `count` tokens part of the context."""


class ContextPairs(Protocol):
    """What a drafter reads of its target's context."""

    def pair(self, layer: int, first: int, end: int) -> tuple[Tensor, Tensor]:
        """k, v [B, KV heads, end − first, head_dim] of one layer, of the context's tokens `first` to `end` − 1."""


class Cache(KeyValues, ContextPairs, Protocol):
    """Keys and values that can be read and cut back."""

    def truncate(self, length: int) -> None:
        """Forget everything behind the first `length` tokens."""


class Network(Protocol):
    """Two forwards and the head of one weight set, as the plain loops use them."""

    def new_kv(self, rows: int, capacity: int) -> Cache:
        """An empty cache for `rows` rows of up to `capacity` tokens."""

    def encode(self, ids: Tensor, kv: KeyValues) -> Tensor:
        """Causal forward over ids [B, T] behind the context; returns hidden [B, T, D], and kv grows by T."""

    def denoise(self, canvas: Tensor, kv: KeyValues, soft: Tensor | None, *, window: int | None) -> Tensor:
        """Bidirectional forward over canvas [B, C]; returns hidden [B, C, D], and kv stays as it is."""

    def embed(self, ids: Tensor) -> Tensor:
        """Scaled embeddings [..., D] of ids [...]."""

    def logits(self, hidden: Tensor) -> Tensor:
        """Softcapped logits [..., V] of hidden [..., D] in float32 or wider."""

    def read(
        self, hidden: Tensor, *, temperature: float, proposal_temperature: float, uniforms: Tensor, with_soft: bool
    ) -> Reading:
        """One pass over the vocabulary for hidden [N, D]; uniforms [N] float64 in [0, 1) decide the proposals."""

    def read_logits(
        self, logits: Tensor, *, temperature: float, proposal_temperature: float, uniforms: Tensor, with_soft: bool
    ) -> Reading:
        """What `read` says, of logits [N, V] that may have been shaped; −∞ counts nowhere."""


class Constraint(Protocol):
    """A grammar's place in one growing answer, on token ids. Ends of turn are no part of it: they are the decoder's.

    An id is allowed behind the prefix if the grammar's text can go on with it and, where the next bytes are forced, it
    is in the mask too (contract 13).
    """

    def allowed(self) -> bytes:
        """The ids that may come next: id i is bit i % 8 of byte i // 8."""

    def count_valid(self, ids: Sequence[int]) -> int:
        """How many of `ids`, from the first on, are allowed one behind the other."""

    def forced(self) -> list[int]:
        """The ids that must come next, as far as they are settled."""

    def consume(self, ids: Sequence[int]) -> None:
        """Make `ids` part of the prefix. Raises: ValueError, and nothing is consumed, if they are not allowed."""

    def rollback(self, count: int) -> None:
        """Take the last `count` ids off the prefix."""

    def copy(self) -> Constraint:
        """The same place, to go on from independently."""

    def closure(self, limit: int) -> list[int] | None:
        """At most `limit` ids that complete the prefix, few rather than many; None if the search finds none."""

    @property
    def is_accepting(self) -> bool:
        """Whether the prefix is a whole answer."""

    @property
    def is_stopped(self) -> bool:
        """Whether it is whole and nothing more may follow."""


class Stopper(Protocol):
    """What ends one growing answer besides its end tokens and its length, on token ids."""

    def count_kept(self, ids: Sequence[int]) -> int | None:
        """Take further ids that are final.

        Returns: how many of them stand, up to and including the one that ends the answer; None while it goes on.
        """

    def restart(self) -> Stopper:
        """The same, before any id."""


class Inspector(Protocol):
    """What reads a growing answer for signs that its writing went wrong, on token ids."""

    def inspect(
        self, settled: Sequence[int], borders: Sequence[int], block: Sequence[int], *, is_whole: bool
    ) -> list[Alarm]:
        """Read a block behind the settled tokens of an answer.

        borders: where in `settled` its blocks begin. is_whole: an end token ends the block, and the answer with it.
        Returns: the alarms that the block's tokens raise, by their offset; alarm `void` says that it is all padding.
        """
