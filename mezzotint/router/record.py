"""What a decision is made from, what it says, and what came of it; plain records, as policy and ledger share them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Goal = Literal["balanced", "fast", "cheap", "best"]
Outcome = Literal["accepted", "rejected", "unverified", "malformed", "empty", "timeout", "error", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a decision needs to know of one request.

    kind: its class of task, told from what the request carries (see kind). prompt_tokens: counted or estimated.
    most_tokens: that the answer may have. needs: abilities without which an arm cannot answer. session: what requests
    that share a prefix have in common, None for a first turn. deadline_s and max_cost_usd hold for all attempts
    together. risk: of missing the deadline, that is borne. verifies: whether attempts are verified before they leave.
    explore: whether it may be spent on learning.
    """

    kind: str
    prompt_tokens: int
    most_tokens: int
    needs: frozenset[str] = frozenset()
    session: str | None = None
    goal: Goal = "balanced"
    deadline_s: float = 600.0
    max_cost_usd: float | None = None
    max_attempts: int = 2
    risk: float = 0.05
    verifies: bool = False
    explore: bool = True


class Candidate(NamedTuple):
    """An arm as a decision saw it: what its answer would take, and how likely it is accepted.

    seconds, cost_usd: of one attempt, verification included. excluded: why it could not be taken; empty if it could.
    """

    arm: str
    seconds: float
    cost_usd: float
    acceptance: float
    in_flight: int
    excluded: str = ""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Which arms are tried, one after the other until one is accepted, and why.

    reason: a word for programs (expected_time, incumbent, sticky, explore, cold, rule, pinned, only_one, none).
    propensity: of taking plan[0]. seconds, cost_usd: expected until an answer is accepted, over the whole plan.
    """

    id: str
    ask: Ask
    plan: tuple[str, ...]
    reason: str
    candidates: tuple[Candidate, ...]
    propensity: float
    seconds: float
    cost_usd: float


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What one arm did with one request. Times in seconds; the parts of `seconds` are queue, prefill, generation and
    verification, and what is left of it was spent between us and the arm.

    index: from 0 within its decision. after: the arm that was rejected before it, if one was. in_flight: at its engine
    once it was admitted. blocks, steps, forwards: 0 where an arm does not tell them. first_entropy: mean of the first
    canvas after its first step, in nats, where it was seen.
    """

    decision: str
    index: int
    arm: str
    kind: str
    outcome: Outcome
    seconds: float
    prompt_tokens: int
    output_tokens: int
    in_flight: int
    cached_tokens: int = 0
    queue_s: float = 0.0
    prefill_s: float = 0.0
    generation_s: float = 0.0
    verify_s: float = 0.0
    blocks: int = 0
    steps: int = 0
    forwards: int = 0
    cost_usd: float = 0.0
    first_entropy: float | None = None
    after: str | None = None
