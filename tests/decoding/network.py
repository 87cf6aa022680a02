"""A network whose beliefs a test writes down, and which notes what it was asked; no test lives here.

Hidden states are logits and embeddings one-hot, so a soft embedding is the distribution itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.decoding.generate import Limits
from mezzotint.model.vocabulary import Head, read_logits
from mezzotint.types import Reading

V, C = 24, 8
END = 7

# Logits [C, V] of a canvas from its ids, its context and the step; logits [V] of what follows a context.
Beliefs = Callable[[list[int], list[int], int], Tensor]
Continuation = Callable[[list[int]], Tensor]


class Forward(NamedTuple):
    """One call: the ids fed in, and for a denoise the soft embedding and window that came with them."""

    kind: str
    ids: list[int]
    soft: Tensor | None = None
    window: int | None = None


class Context:
    """The ids encoded so far, in place of their keys and values."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.ids: list[int] = []

    @property
    def length(self) -> int:
        return len(self.ids)

    def place(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        raise AssertionError("no layer reads this context")

    def advance(self, count: int) -> None:
        raise AssertionError("only encode lets this context grow")

    def pair(self, layer: int, first: int, end: int) -> tuple[Tensor, Tensor]:
        raise AssertionError("no drafter of the tests reads this context")

    def truncate(self, length: int) -> None:
        assert length < len(self.ids), "there is something to forget"
        del self.ids[length:]


def shifting(canvas: list[int], context: list[int], step: int) -> Tensor:
    """Unsure beliefs that depend on everything: another canvas, context or step, other logits."""
    seed = hash((tuple(canvas), tuple(context), step)) % 2**62  # hashes of tuples of ints are the same in any process
    return 2 * torch.randn(len(canvas), V, generator=torch.Generator().manual_seed(seed))


def following(context: list[int]) -> Tensor:
    """Unsure logits of what comes next, another set for another context."""
    return shifting([0], context, 0)[0]


@dataclass
class Scripted:
    """A Network of the tests; see the module."""

    beliefs: Beliefs = shifting
    continuation: Continuation = following
    forwards: list[Forward] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    step: int = 0

    def kinds(self) -> str:
        """The order of forwards: e for an encode, d for a denoise."""
        return "".join(forward.kind for forward in self.forwards)

    def new_kv(self, rows: int, capacity: int) -> Context:
        assert rows == 1
        self.contexts.append(Context(capacity))
        return self.contexts[-1]

    def encode(self, ids: Tensor, kv: Any) -> Tensor:
        assert ids.dtype == torch.int64
        self.forwards.append(Forward("e", ids[0].tolist()))
        states = []
        for token in ids[0].tolist():
            kv.ids.append(token)
            states.append(self.continuation(kv.ids))
        self.step = 0
        assert kv.length <= kv.capacity
        return torch.stack(states)[None]

    def denoise(self, canvas: Tensor, kv: Any, soft: Tensor | None, *, window: int | None) -> Tensor:
        assert canvas.shape[0] == 1
        assert kv.length + canvas.shape[1] <= kv.capacity
        ids = canvas[0].tolist()
        self.forwards.append(Forward("d", ids, soft, window))
        logits = self.beliefs(ids, kv.ids, self.step)
        self.step += 1
        return logits[None]

    def embed(self, ids: Tensor) -> Tensor:
        return F.one_hot(ids, V).float()

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden

    def read(
        self,
        hidden: Tensor,
        *,
        temperature: float,
        proposal_temperature: float,
        uniforms: Tensor,
        with_soft: bool,
    ) -> Reading:
        return read_logits(
            Head(torch.eye(V), 1.0, 0.0),
            hidden,
            temperature=temperature,
            proposal_temperature=proposal_temperature,
            uniforms=uniforms,
            with_soft=with_soft,
        )

    def read_logits(self, logits: Tensor, **how: Any) -> Reading:
        return read_logits(Head(torch.eye(V), 1.0, 0.0), logits, **how)


def sure_of(tokens: list[int], logit: float = 40.0) -> Tensor:
    """Logits [len, V] that leave no doubt."""
    return logit * F.one_hot(torch.tensor(tokens), V).float()


def limits(**changes: int | tuple[int, ...]) -> Limits:
    """The limits of the scripted network."""
    given = {"vocab_size": V, "canvas_length": C, "max_positions": 64, "end_ids": (END,), **changes}
    return Limits(**given)  # type: ignore[arg-type]
