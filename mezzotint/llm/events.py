"""What a reader of an answer is told: drafts, final blocks, a completion; fold makes them of a decoder's events."""

from dataclasses import dataclass
from typing import NamedTuple

from mezzotint.types import FinishReason, Receipt, Score


class DraftEvent(NamedTuple):
    """A canvas after one denoising step of `step_budget`; tokens and text may still change.

    entropy: how unsure the step was of each position, in nats, where it is told.
    """

    block: int
    step: int
    step_budget: int
    token_ids: list[int]
    accepted: list[bool]
    entropy: list[float] | None = None


class BlockEvent(NamedTuple):
    """Final tokens and their text, which will not change; under ar one token, under verified those of a round.

    A last event without tokens brings what an answer that ends within a character leaves, and what was held back for a
    stop string that might have begun there.
    scores, uncertainty: of each token, where they were asked for; see decoding.program.Block.
    """

    block: int
    steps: int
    token_ids: list[int]
    text: str
    scores: tuple[Score, ...] | None = None
    uncertainty: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A finished answer. Its ids end with the end-of-turn token if there was one; text has no control tokens.

    stop_reason: the stop string that ended it; text ends before the string, and ids with the token that completed it.
    opened: what of the prompt the answer goes on in the midst of, an open thinking channel; mostly nothing.
    Where the prompt says what stands behind the answer, both hold what fills the blank and nothing else.
    scores, uncertainty: of each token of token_ids; prompt_scores: of the prompt's, None for its first; each None where
    nobody asked for them, uncertainty also where no canvas was denoised.
    """

    text: str
    token_ids: list[int]
    finish_reason: FinishReason
    receipt: Receipt
    stop_reason: str | None = None
    opened: tuple[int, ...] = ()
    scores: tuple[Score, ...] | None = None
    uncertainty: tuple[float, ...] | None = None
    prompt_scores: tuple[Score | None, ...] | None = None


Event = DraftEvent | BlockEvent | Completion
