"""What came of each request and each task, in plain records; figures are made from them elsewhere.

All times are seconds on the client's clock, from the start of the point that they were measured at.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from mezzotint.router.record import Outcome

__all__ = ["PARTS", "Outcome", "Parts", "Played", "Request", "Semantics"]

Semantics = Literal["token", "chunk", "canvas"]


class Parts(NamedTuple):
    """Where a task's time went; they add up to the whole but for what the client spends between them.

    dispatch: from arrival to the first thing done for it. queue, generation (prefill included): as the server tells
    them; without that generation is the whole request. transport: the rest of a request. verification: reading an
    answer, judging it and writing it down. tool_wait, retrieval, backoff: waited.
    Source: contract 10.
    """

    dispatch: float = 0.0
    retrieval: float = 0.0
    queue: float = 0.0
    generation: float = 0.0
    transport: float = 0.0
    verification: float = 0.0
    tool_wait: float = 0.0
    backoff: float = 0.0

    @property
    def total(self) -> float:
        """Their sum."""
        return sum(self)


PARTS = Parts._fields


@dataclass(frozen=True, kw_only=True)
class Request:
    """One attempt at one hop.

    category: what went wrong with it as a request (`http 500`, `stream error`, …), empty if nothing did; reason: why
    its answer was refused. due_s: when its hop could begin. arrivals: of each chunk that said something, as its bytes
    came; lengths: characters of `text` that were there by then. queue_s, generation_s: as the server told them.
    step_budget: None where it was not told. routed: the arm and attempts that a router told. findings: signs that its
    text went wrong, see text.detect. usable_s: when what had come would have been accepted, as far as that was tried.
    """

    hop: int
    attempt: int
    kind: str
    model: str
    seed: int
    outcome: Outcome
    category: str = ""
    reason: str = ""
    due_s: float
    sent_s: float
    arrivals: tuple[float, ...] = ()
    ended_s: float
    judged_s: float
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    queue_s: float | None = None
    generation_s: float | None = None
    semantics: Semantics = "chunk"
    canvas: int = 0
    steps: tuple[int, ...] = ()
    step_budget: int | None = None
    budget_hits: int = 0
    forwards: int = 0
    sampler: str | None = None
    entropy_bound: float | None = None
    finish_reason: str = ""
    routed: tuple[str, int] = ("", 0)
    findings: tuple[str, ...] = ()
    text: str = ""
    lengths: tuple[int, ...] = ()
    usable_s: float | None = None

    @property
    def seconds(self) -> float:
        """From sending to the last byte."""
        return self.ended_s - self.sent_s


@dataclass(frozen=True, kw_only=True)
class Played:
    """One task to its end. due_s: its scheduled arrival, which is zero for all its figures.

    outcome: of its last attempt, or `timeout` where its deadline ended it. hops: that it has; accepted_hops: with the
    seconds that each took to be accepted, tools' waits included.
    """

    task: int
    id: str
    family: str
    outcome: Outcome
    due_s: float
    ended_s: float
    hops: int
    accepted_hops: tuple[float, ...] = ()
    parts: Parts
    requests: tuple[Request, ...]

    @property
    def seconds(self) -> float:
        """From its scheduled arrival to its end: its time to accepted, if it was accepted."""
        return self.ended_s - self.due_s

    @property
    def is_accepted(self) -> bool:
        """Whether it came to its end as it should."""
        return self.outcome == "accepted"

    @property
    def residual_s(self) -> float:
        """What no part claims."""
        return self.seconds - self.parts.total
