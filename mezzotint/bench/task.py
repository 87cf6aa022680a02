"""What is asked: tasks of one hop or of many, each with what says whether an answer is right; nothing is sent here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mezzotint.types import Verdict, Verifier

HopKind = Literal["", "plan", "tool"]


@dataclass(frozen=True, kw_only=True)
class Hop:
    """One chat whose answer has to be accepted before the task goes on.

    messages, tools: in OpenAI's form. kind: of an agent's hop: `plan` reads a request and decides what is called,
    `tool` goes on with what a tool gave back. wait_s: of the tool before it. max_tokens: None takes the run's. extra:
    further fields of the body.
    """

    messages: tuple[dict[str, Any], ...]
    verifier: Verifier
    kind: HopKind = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    wait_s: float = 0.0
    max_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Task:
    """Hops in their order; the task is accepted with its last one. seed: its requests' seeds come from it.

    retrieval_s: waited for before its first hop, as a caller would for documents.
    """

    id: str
    family: str
    seed: int
    hops: tuple[Hop, ...]
    retrieval_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Tasks by their index, the same ones each time.

    size: how many there are, None for any number; indices behind it begin again. arrivals: seconds at which a trace has
    them arrive, from 0. note: what is asked and what is accepted, for people. digest: changes with what is asked.
    """

    name: str
    make: Callable[[int], Task]
    note: str
    digest: str
    size: int | None = None
    arrivals: Sequence[float] = ()

    def task(self, index: int) -> Task:
        """The task of an index."""
        return self.make(index if self.size is None else index % self.size)


class AnyText:
    """Takes every answer that says something: for texts that have no right answer."""

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """Accept content that is not blank."""
        is_text = bool((answer.get("content") or "").strip())
        return Verdict(is_text, "" if is_text else "the answer is empty")
