"""A fleet of laws: arms whose time and acceptance are known, asked in a loop; no test lives here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from mezzotint.router.policy import Policy
from mezzotint.router.policy_file import PolicyConfig
from mezzotint.router.record import Ask, Attempt, Decision, Outcome
from mezzotint.types import ArmTraits

ASK = Ask(kind="schema-medium", prompt_tokens=100, most_tokens=256, verifies=True, deadline_s=20.0)


@dataclass(frozen=True, kw_only=True)
class Law:
    """One arm: seconds of a forward beside b requests, forwards of n tokens, and how often it is accepted."""

    traits: ArmTraits
    forward_s: Callable[[int], float]
    forwards: Callable[[int], int]
    acceptance: float
    noise: float = 0.05
    prefill_s: float = 0.01

    def seconds(self, in_flight: int, tokens: int) -> float:
        """Of an answer, on average."""
        return self.prefill_s + self.forwards(tokens) * self.forward_s(in_flight)


@dataclass
class World:
    """Arms, the requests at their engine, and what was done. dead: arms that fail at once."""

    laws: Mapping[str, Law]
    random: Random = field(default_factory=lambda: Random(0))
    now: float = 1000.0
    load: int = 1
    tokens: int = 48
    dead: set[str] = field(default_factory=set)
    decisions: list[Decision] = field(default_factory=list)

    def policy(self, **config: Any) -> Policy:
        """A policy of this world's arms and clock."""
        arms = [law.traits for law in self.laws.values()]
        return Policy(PolicyConfig(**config), arms, seed=3, clock=lambda: self.now)

    def step(self, policy: Policy, ask: Ask = ASK) -> Decision:
        """Have one request decided, tried and noted."""
        self.now += 1.0
        decision = policy.decide(ask, dict.fromkeys(self.laws, self.load - 1))
        after: str | None = None
        for index, name in enumerate(decision.plan):
            attempt = self.attempt(decision.id, index, name, ask, after)
            policy.note(attempt)
            if attempt.outcome in ("accepted", "unverified"):
                break
            after = name if attempt.outcome == "rejected" else after
        self.decisions.append(decision)
        return decision

    def run(self, policy: Policy, count: int, ask: Ask = ASK) -> list[Decision]:
        """So many requests, one after the other."""
        return [self.step(policy, ask) for _ in range(count)]

    def attempt(
        self, decision: str, index: int, name: str, ask: Ask, after: str | None = None, outcome: Outcome | None = None
    ) -> Attempt:
        """What an arm does with a request."""
        law = self.laws[name]
        if name in self.dead:
            sizes = _sizes(decision, index, name, ask, self.load, after)
            return Attempt(**sizes, outcome="error", seconds=0.01, output_tokens=0)
        tokens = max(1, round(self.random.gauss(self.tokens, 4)))
        spent = law.forwards(tokens) * law.forward_s(self.load) * self.random.lognormvariate(0.0, law.noise)
        judged: Outcome = "accepted" if self.random.random() < law.acceptance else "rejected"
        return Attempt(
            **_sizes(decision, index, name, ask, self.load, after),
            outcome=outcome or (judged if ask.verifies else "unverified"),
            seconds=law.prefill_s + spent,
            output_tokens=tokens,
            prefill_s=law.prefill_s,
            generation_s=spent,
            blocks=1 if law.traits.decoder == "diffusion" else 0,
            forwards=law.forwards(tokens) if law.traits.is_local else 0,
        )


def _sizes(decision: str, index: int, name: str, ask: Ask, load: int, after: str | None) -> dict[str, Any]:
    return {
        "decision": decision,
        "index": index,
        "arm": name,
        "kind": ask.kind,
        "prompt_tokens": ask.prompt_tokens,
        "in_flight": load,
        "after": after,
    }


def canvas(name: str = "canvas", **changes: Any) -> Law:
    """Ten forwards a block, each dearer by every request beside it."""
    traits = ArmTraits(
        name=name, engine="here", is_local=True, decoder="diffusion", canvas_length=64, step_budget=16, context=4096
    )
    law = {"forward_s": lambda b: 0.003 + 0.005 * b, "forwards": lambda n: 10, "acceptance": 0.9}
    return Law(traits=traits, **{**law, **changes})


def plain(name: str = "plain", **changes: Any) -> Law:
    """A forward a token, which others beside it hardly make dearer."""
    traits = ArmTraits(name=name, engine="here", is_local=True, decoder="ar", context=4096)
    law = {"forward_s": lambda b: 0.003 + 0.0002 * b, "forwards": lambda n: n, "acceptance": 0.9}
    return Law(traits=traits, **{**law, **changes})


def hosted(name: str = "hosted", **changes: Any) -> Law:
    """A server elsewhere, dear and slow but seldom wrong."""
    traits = ArmTraits(
        name=name, engine=name, is_local=False, decoder="ar", context=100_000, input_price=1.0, output_price=4.0
    )
    law = {"forward_s": lambda b: 0.01, "forwards": lambda n: n, "acceptance": 0.97, "prefill_s": 0.2}
    return Law(traits=traits, **{**law, **changes})


def make_world(*laws: Law) -> World:
    """A world of these arms."""
    return World({law.traits.name: law for law in laws})
