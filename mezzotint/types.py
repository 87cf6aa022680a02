"""The words that rooms hand each other: readings, receipts, Protocols; no logic but sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

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


class Verdict(NamedTuple):
    """Whether an answer is what was asked for; None where that could not be told. reason: why it is not, in words."""

    accepted: bool | None
    reason: str = ""


class Verifier(Protocol):
    """What says whether an answer is what was asked for."""

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """Judge `answer`, an assistant's message in OpenAI's form, to `messages`."""


@dataclass(frozen=True, kw_only=True)
class ArmTraits:
    """What is known of an arm before it is asked.

    engine: the machine that it shares with others, whose load is its own. decoder: how it writes, as far as that is
    known. canvas_length: None where it writes token by token. step_budget: of a block; None leaves it to the model.
    context: most tokens of prompt and answer together. abilities: what it honours, of tools, schema, grammar, logprobs,
    seed and thinking. input_price, output_price: dollars a million tokens. busy_price: dollars a second of work.
    timeout_s: that one answer may take.
    """

    name: str
    engine: str
    is_local: bool
    decoder: DecoderName | None = None
    canvas_length: int | None = None
    step_budget: int | None = None
    context: int
    abilities: frozenset[str] = frozenset()
    input_price: float = 0.0
    output_price: float = 0.0
    busy_price: float = 0.0
    timeout_s: float = 600.0


FailureKind = Literal["timeout", "busy", "refused", "broken", "garbage"]


class ArmError(Exception):
    """An arm gave no answer.

    kind: timeout; busy, it has too much to do; refused, the request is not one that it honours; broken, it is away or
    stopped in the middle; garbage, what came is no answer. retry_after_s: when it may be asked again, where it said so.
    """

    def __init__(self, kind: FailureKind, message: str, retry_after_s: float | None = None) -> None:
        """All as the class describes."""
        super().__init__(message)
        self.kind, self.retry_after_s = kind, retry_after_s


class Arm(Protocol):
    """One way to have a chat answered: a decoder and budget of an engine here, or a server elsewhere."""

    @property
    def traits(self) -> ArmTraits:
        """What is known of it."""

    @property
    def in_flight(self) -> int:
        """Requests that its engine is answering now."""

    @property
    def is_up(self) -> bool:
        """Whether it can be asked now."""

    def stream(self, body: Mapping[str, Any], timeout_s: float) -> AsyncGenerator[dict[str, Any], None]:
        """Chunks of a chat's answer in OpenAI's form, to a body in that form; the last one tells `usage`.

        Closing it cancels the request. Raises: ArmError.
        """


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What one request cost. Times in seconds, the rest in tokens or forwards.

    denoise_steps: executed steps of each block; block_tokens: tokens that each block kept. Under verified a block is
    a round, and one without steps an autoregressive step.
    encodes: forwards of the target model after prefill; where tokens are drawn one by one, with or without drafts, the
    one that yields the first token counts.
    cached_tokens: prompt tokens that a prefix seen before spared. queue_s: before the first admission.
    break_even: the acceptance, of each draft behind accepted ones, from which `verified` is no slower than `ar` would
    have been; it is 1 where drafting never pays, None for other decoders.
    overridden_tokens: where a grammar refused the model's likeliest token. forced_tokens: where it, or a bound on
    thinking, left no choice.
    drafted_tokens, accepted_tokens: drafts that were verified, and those that were kept. draft_forwards: a drafter's.
    interventions: what a gate did about blocks in alarm; its forwards are among denoise_steps and encodes.
    """

    decoder: DecoderName
    sampler: str | None
    seed: int
    prompt_tokens: int
    output_tokens: int
    denoise_steps: tuple[int, ...] = ()
    block_tokens: tuple[int, ...] = ()
    step_budget: int = 0
    canvas_length: int = 0
    entropy_bound: float | None = None
    break_even: float | None = None
    encodes: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    draft_forwards: int = 0
    overridden_tokens: int = 0
    forced_tokens: int = 0
    interventions: tuple[Intervention, ...] = ()
    cached_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    generation_s: float = 0.0

    @property
    def forwards(self) -> int:
        """Denoising steps plus encodes after prefill."""
        return sum(self.denoise_steps) + self.encodes

    @property
    def tokens_per_forward(self) -> float:
        """Output tokens a forward; 1 for ar."""
        return tokens_per_forward(self.output_tokens, self.forwards)

    @property
    def budget_hits(self) -> int:
        """Blocks that used their whole step budget."""
        return sum(steps >= self.step_budget for steps in self.denoise_steps)


def tokens_per_forward(output_tokens: int, forwards: int) -> float:
    """Output tokens (end of turn included, nothing after it) ÷ forwards after prefill; 0 where nothing ran.

    Source: contract 1.
    """
    return output_tokens / forwards if forwards else 0.0
