"""A question of a suite, and what comes back for it; who is asked is said by answerers, what is right by verifiers."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from mezzotint.types import Verifier


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question with what judges its answers.

    messages, tools: as `text.messages` checks them. around: text before and behind a blank to be filled, instead.
    schema, choices: the form of an answer, for those who can be held to one. right: an answer that is known to be
    right, else empty. thinking: whether a chat template is told to have thoughts.
    """

    id: str
    verifier: Verifier
    max_tokens: int
    messages: tuple[Mapping[str, Any], ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    around: tuple[str, str] | None = None
    schema: Mapping[str, Any] | None = None
    choices: tuple[str, ...] = ()
    right: str = ""
    thinking: bool = False

    @property
    def digest(self) -> str:
        """A hash of all that is asked, by which an answer's question is known again."""
        asked = [self.messages, self.tools, self.around, self.schema, self.choices, self.thinking, self.max_tokens]
        return hashlib.sha256(json.dumps(asked, sort_keys=True, default=dict).encode()).hexdigest()[:16]

    @property
    def told(self) -> str:
        """The texts that an answer may repeat: those of the question, and a right one."""
        texts = [message["content"] for message in self.messages if isinstance(message.get("content"), str)]
        return "\n".join([self.right, *texts, *(self.around or ())])


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Questions under one name. skipped: ids that are left out, with the reason. note: what a reader should know."""

    name: str
    questions: tuple[Question, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one answer took, as far as it was told.

    seconds: from asking to the whole answer, waits for a second try left out. sampler, step_budget, forwards, steps:
    of a canvas; steps: of each block.
    """

    seconds: float
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    forwards: int | None = None
    steps: tuple[int, ...] = ()
    sampler: str | None = None
    step_budget: int | None = None
    budget_hits: int = 0


@dataclass(frozen=True, kw_only=True)
class Said:
    """An answer: an assistant's message in OpenAI's form.

    seams: where in its content blocks begin, where that is known. metrics: what a server told beside it, unchanged.
    """

    message: Mapping[str, Any]
    finish_reason: str | None
    cost: Cost
    seams: tuple[int, ...] = ()
    metrics: Mapping[str, Any] | None = None


class AnswerError(Exception):
    """One question got no answer; others may."""


class Answerer(Protocol):
    """A model that answers questions."""

    @property
    def traits(self) -> Mapping[str, Any]:
        """What it is and how it is asked, as JSON: equal for those whose answers may stand in one file."""

    async def answer(self, question: Question, seed: int) -> Said:
        """Answer a question. Raises: AnswerError."""
