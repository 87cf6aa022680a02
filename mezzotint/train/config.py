"""What a training run is told: sizes, rates and what each step does; no tensors live here."""

import random
from dataclasses import dataclass, field, fields
from math import cos, pi
from typing import NamedTuple

from mezzotint.tasks import FAMILIES

# A causal half that has learnt its text, in nats per token, leaves the step to the denoising half.
_LEARNT = 0.05
_LEARNT_SHARE = 0.3
# Of lab's whole run; copying (`repeat`) is what the others are learnt from.
_MIXTURE = {
    "extract": 0.34,
    "call": 0.2,
    "repair": 0.16,
    "repeat": 0.1,
    "infill": 0.07,
    "choose": 0.04,
    "chat": 0.03,
    "sequential_rule": 0.03,
    "sudoku": 0.02,
    "parallel_rule": 0.01,
}


class Plan(NamedTuple):
    """What one step does. easy: no canvas is very noisy. causal_weight: of the causal loss beside the other.

    budget: denoising steps of the sampler that makes half of the canvases, or None where noise makes all.
    mined: the sampler makes all canvases of the examples that it gets wrong, and none of the others.
    """

    easy: bool
    causal_weight: float
    budget: int | None
    mined: bool


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One run of the joint objective.

    mixture: task family → share of the examples. widths: canvas lengths drawn from, in tokens.
    on_policy: share of the steps, once on_policy_from of the run is over, that take half of their canvases from the
    model's own sampler; mined: share of those in which what the sampler gets wrong has all of its canvases.
    peak_rate: AdamW's; Muon's is matrix_rate × as high (its updates are scaled to the same rms).
    pinned: share of the canvases that are given some of their tokens; blanks: share of the texts with a blank whose
    canvas is given what stands behind it.
    prompt_weight: of the mean causal loss of prompt tokens, of which a share prompt_share is drawn.
    causal_weight: falls to 0.3 of itself once the causal loss is below 0.05 nats. Times in seconds.
    Raises: ValueError naming field, value and limit.
    """

    seed: int = 0
    steps: int = 10_000
    examples: int = 28
    canvases: int = 2
    widths: tuple[int, ...] = (32, 48, 64)
    mixture: dict[str, float] = field(default_factory=lambda: dict(_MIXTURE))
    peak_rate: float = 1e-3
    matrix_rate: float = 4.0
    final_share: float = 0.05
    warmup: int = 200
    weight_decay: float = 0.01
    clip: float = 1.0
    ema: float = 0.998
    causal_weight: float = 1.0
    prompt_weight: float = 0.1
    prompt_share: float = 0.25
    easy_until: float = 0.05
    easy_noise: float = 0.6
    all_noise: float = 0.1
    span_noise: float = 0.3
    conditioned: float = 0.5
    pinned: float = 0.1
    blanks: float = 0.7
    on_policy: float = 0.15
    on_policy_from: float = 0.5
    on_policy_budgets: tuple[int, ...] = (4, 8, 12, 16)
    mined: float = 0.0
    sharpen: float = 0.0
    log_every: int = 20
    checkpoint_s: float = 180.0

    def __post_init__(self) -> None:
        self._check_mixture()
        for name in ("steps", "examples", "canvases", "log_every"):
            self._require(name, getattr(self, name) >= 1, "must be at least 1")
        for name in ("widths", "on_policy_budgets"):
            self._require(name, min(getattr(self, name), default=0) >= 1, "give one or more, each at least 1")
        for name in ("peak_rate", "matrix_rate", "clip"):
            self._require(name, getattr(self, name) > 0, "must be above 0")
        for name in ("warmup", "weight_decay", "causal_weight", "prompt_weight", "sharpen", "checkpoint_s"):
            self._require(name, getattr(self, name) >= 0, "must be at least 0")
        for name in ("final_share", "ema", "conditioned", "pinned", "blanks", "prompt_share", "on_policy", "mined"):
            self._require(name, 0 <= getattr(self, name) <= 1, "must lie between 0 and 1")
        for name in ("easy_until", "easy_noise", "all_noise", "span_noise", "on_policy_from"):
            self._require(name, 0 <= getattr(self, name) <= 1, "must lie between 0 and 1")
        if self.on_policy:
            self._require("canvases", self.canvases > 1, "on_policy takes half of them: give 2 or more")
        elif self.sharpen:
            self._require("sharpen", fits=False, remedy="it acts on on-policy steps: give on_policy too")
        elif self.mined:
            self._require("mined", fits=False, remedy="it is a share of the on-policy steps: give on_policy too")

    def plan(self, step: int, causal_loss: float) -> Plan:
        """What `step` does; `causal_loss` is its running mean in nats per token."""
        rng = random.Random(f"{self.seed}/policy/{step}")
        budget = rng.choice(self.on_policy_budgets) if rng.random() < self.on_policy else None
        mined = rng.random() < self.mined
        if step < self.on_policy_from * self.steps:
            budget = None
        share = 1.0 if causal_loss > _LEARNT else _LEARNT_SHARE
        return Plan(
            step < self.easy_until * self.steps, share * self.causal_weight, budget, mined and budget is not None
        )

    def rate(self, step: int) -> float:
        """Learning rate of `step`: linear warm-up, then cosine down to `final_share` of the peak."""
        if step < self.warmup:
            return self.peak_rate * (step + 1) / self.warmup
        done = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        return self.peak_rate * (self.final_share + (1 - self.final_share) * 0.5 * (1 + cos(pi * done)))

    def _check_mixture(self) -> None:
        shares = self.mixture.values()
        fits = bool(shares) and min(shares) >= 0 and sum(shares) > 0
        self._require("mixture", fits, "give each family a share of at least 0 and one above 0")
        fits = self.mixture.keys() <= FAMILIES.keys()
        self._require("mixture", fits, f"the families are {', '.join(FAMILIES)}")

    def _require(self, name: str, fits: bool, remedy: str) -> None:
        if not fits:
            raise ValueError(f"{name} is {getattr(self, name)}; {remedy}")


@dataclass(frozen=True, kw_only=True)
class DrafterConfig:
    """One run that teaches a drafter what its target says next; the fields that TrainConfig has too mean the same.

    guesses: how many tokens it learns to guess behind a known one.
    Raises: ValueError naming field, value and limit.
    """

    seed: int = TrainConfig.seed
    steps: int = TrainConfig.steps
    examples: int = TrainConfig.examples
    guesses: int = 4
    mixture: dict[str, float] = field(default_factory=lambda: TrainConfig().mixture)
    peak_rate: float = TrainConfig.peak_rate
    matrix_rate: float = TrainConfig.matrix_rate
    final_share: float = TrainConfig.final_share
    warmup: int = TrainConfig.warmup
    weight_decay: float = TrainConfig.weight_decay
    clip: float = TrainConfig.clip
    ema: float = TrainConfig.ema
    log_every: int = TrainConfig.log_every
    checkpoint_s: float = TrainConfig.checkpoint_s

    def __post_init__(self) -> None:
        if self.guesses < 1:
            raise ValueError(f"guesses is {self.guesses}; must be at least 1")
        _ = self.schedule  # whose fields check themselves

    @property
    def schedule(self) -> TrainConfig:
        """What any run is told: examples, rates and when to tell; the rest of it is for canvases, and is not read."""
        return TrainConfig(**{part.name: getattr(self, part.name) for part in fields(self) if part.name != "guesses"})
