"""One denoising step's update of a canvas: propose → accept → renoise → converged, under a named rule."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import torch
from torch import Tensor

from mezzotint.decoding.accept import accept_entropy_bound, accept_most_confident
from mezzotint.decoding.canvas import Pins
from mezzotint.decoding.converge import count_stable, is_confident
from mezzotint.decoding.noise import renoise, route_ddim
from mezzotint.decoding.schedule import clean_share, commit_target, step_temperature
from mezzotint.types import Reading

SamplerName = Literal["report", "hf", "jax", "refine", "ddim"]
Rule = Literal["entropy_bound", "refine", "ddim"]


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """A named rule with its numbers. Temperatures are absolute, thresholds in nats (entropy) or probability.

    budget: denoising steps. stability: steps in a row whose argmax must equal what stable_against names.
    confidence: what the mean entropy must be below, or may equal if inclusive. emits: what becomes the block.
    threshold, editing_threshold: what refinement commits and revises above.
    Raises: ValueError naming number and limit. Source: contract 15 to 17.
    """

    name: SamplerName
    rule: Rule = "entropy_bound"
    budget: int = 48
    t_min: float = 0.4
    t_max: float = 0.8
    entropy_bound: float = 0.1
    stability: int = 1
    confidence: float = 0.005
    inclusive: bool = True
    stable_against: Literal["argmax", "canvas"] = "argmax"
    emits: Literal["argmax", "canvas"] = "argmax"
    threshold: float = 0.95
    editing_threshold: float | None = None

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise ValueError(f"budget is {self.budget}; a canvas needs at least 1 denoising step")
        if not 0 < self.t_min <= self.t_max:
            raise ValueError(f"t_min {self.t_min} and t_max {self.t_max} must satisfy 0 < t_min <= t_max")
        for name in ("entropy_bound", "stability", "confidence"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 0")

    def with_numbers_of(self, other: "Sampler") -> Self:
        """This sampler's rules with the budget, temperatures and thresholds of another of the same rule."""
        return replace(
            self,
            budget=other.budget,
            t_min=other.t_min,
            t_max=other.t_max,
            entropy_bound=other.entropy_bound,
            stability=other.stability,
            confidence=other.confidence,
        )

    def temperature(self, step: int) -> float:
        """The sampler's own T(step): entropies and the soft embedding use it as it is."""
        if self.rule != "entropy_bound":
            return 1.0
        return step_temperature(step, self.budget, self.t_min, self.t_max)

    def proposal_temperature(self, step: int, requested: float) -> float:
        """Temperature of the proposals: the request's factor × T(step); 0 to refine. Source: contract 3."""
        return 0.0 if self.rule == "refine" else requested * self.temperature(step)


SAMPLERS: dict[SamplerName, Sampler] = {
    "report": Sampler(name="report"),
    "hf": Sampler(name="hf", inclusive=False),
    "jax": Sampler(name="jax", stable_against="canvas", emits="canvas"),
    "refine": Sampler(name="refine", rule="refine", emits="canvas", budget=32),
    "ddim": Sampler(name="ddim", rule="ddim", emits="canvas"),
}


class Draws(NamedTuple):
    """A step's randomness besides the proposals: noise ids [B, C]; for ddim, routes [B, C] in [0, 1)."""

    noise: Tensor
    routes: Tensor | None

    def cut(self, width: int) -> "Draws":
        """Those of the first `width` positions."""
        return Draws(self.noise[:, :width], None if self.routes is None else self.routes[:, :width])


class CanvasState(NamedTuple):
    """A canvas between steps; `step` counts those taken.

    canvas: [B, C] what the next forward is fed. argmax, entropy: [B, C] of the last step, None before the first; nats.
    accepted: [B, C] bool, kept by the last step. committed: [B, C] bool, kept for good, by refinement only.
    stable_for: [B] steps. output: [B, C] the block, were it to end now. done: [B] bool.
    """

    step: int
    canvas: Tensor
    argmax: Tensor | None
    entropy: Tensor | None
    accepted: Tensor
    committed: Tensor
    stable_for: Tensor
    output: Tensor
    done: Tensor


def start_canvas(noise: Tensor, pins: Pins) -> CanvasState:
    """A fresh canvas of noise [B, C] with its pins in place."""
    canvas = pins.write(noise)
    nothing = torch.zeros_like(canvas, dtype=torch.bool)
    idle = torch.zeros(canvas.shape[0], dtype=torch.long, device=canvas.device)
    return CanvasState(0, canvas, None, None, nothing, nothing, idle, canvas, nothing.any(-1))


def as_row(reading: Reading) -> Reading:
    """A canvas's reading as a batch of one row; the soft embedding goes its own way."""
    return Reading(
        argmax=reading.argmax[None],
        proposal=reading.proposal[None],
        entropy=reading.entropy[None],
        log_prob=reading.log_prob[None],
        soft=None,
    )


def cut_row(reading: Reading, width: int) -> Reading:
    """A reading [B, C] of the first `width` positions."""
    argmax, proposal, entropy, log_prob = (part[:, :width] for part in reading[:4])
    return Reading(argmax, proposal, entropy, log_prob, None)


def cut_state(state: CanvasState, width: int) -> CanvasState:
    """A canvas without what stands behind its first `width` positions."""
    return state._replace(
        canvas=state.canvas[:, :width],
        argmax=None if state.argmax is None else state.argmax[:, :width],
        entropy=None if state.entropy is None else state.entropy[:, :width],
        accepted=state.accepted[:, :width],
        committed=state.committed[:, :width],
        output=state.output[:, :width],
    )


def update_canvas(
    sampler: Sampler, state: CanvasState, reading: Reading, draws: Draws, pins: Pins, vocab_size: int
) -> CanvasState:
    """Apply one step's reading, its fields shaped [B, C], to the canvas.

    Returns: the state before the next step; `done` rows have converged or used the budget.
    Source: the report's Algorithm 1; contract 5, 13; diffusers for refine and ddim.
    """
    open_ = ~pins.mask
    move = _MOVES[sampler.rule](sampler, state, reading, draws, open_, vocab_size)
    canvas = pins.write(move.canvas)
    reference = state.canvas if sampler.stable_against == "canvas" else state.argmax
    stable_for = count_stable(reading.argmax, reference, state.stable_for, open_)
    settled = _has_settled(sampler, stable_for, reading, move.committed, open_)
    return CanvasState(
        step=state.step + 1,
        canvas=canvas,
        argmax=reading.argmax,
        entropy=reading.entropy,
        accepted=move.accepted,
        committed=move.committed,
        stable_for=stable_for,
        output=pins.write(reading.argmax) if sampler.emits == "argmax" else canvas,
        done=settled | (state.step + 1 >= sampler.budget),
    )


class _Move(NamedTuple):
    """The next canvas before its pins are written, and what a rule keeps, now and for good."""

    canvas: Tensor
    accepted: Tensor
    committed: Tensor


def _move_by_entropy(
    sampler: Sampler, state: CanvasState, reading: Reading, draws: Draws, open_: Tensor, vocab_size: int
) -> _Move:
    accepted = accept_entropy_bound(reading.entropy, open_, sampler.entropy_bound)
    return _Move(renoise(reading.proposal, accepted, draws.noise), accepted, state.committed)


def _move_by_confidence(
    sampler: Sampler, state: CanvasState, reading: Reading, draws: Draws, open_: Tensor, vocab_size: int
) -> _Move:
    target = commit_target(state.step, sampler.budget, int(open_.sum()))
    committed = accept_most_confident(reading.log_prob, state.committed, open_, target, sampler.threshold)
    frozen = state.committed
    if sampler.editing_threshold is not None:
        frozen = frozen & (reading.log_prob.exp() <= sampler.editing_threshold)
    kept = torch.where(frozen, state.canvas, reading.proposal)
    return _Move(renoise(kept, committed, draws.noise), committed, committed)


def _move_by_route(
    sampler: Sampler, state: CanvasState, reading: Reading, draws: Draws, open_: Tensor, vocab_size: int
) -> _Move:
    assert draws.routes is not None
    canvas = route_ddim(
        state.canvas,
        reading.proposal,
        draws.noise,
        draws.routes,
        before=clean_share(state.step, sampler.budget),
        after=clean_share(state.step + 1, sampler.budget),
        vocab_size=vocab_size,
    )
    return _Move(canvas, (canvas == reading.proposal) & open_, state.committed)


_MOVES: dict[Rule, Callable[[Sampler, CanvasState, Reading, Draws, Tensor, int], _Move]] = {
    "entropy_bound": _move_by_entropy,
    "refine": _move_by_confidence,
    "ddim": _move_by_route,
}


def _has_settled(sampler: Sampler, stable_for: Tensor, reading: Reading, committed: Tensor, open_: Tensor) -> Tensor:
    if sampler.rule == "refine":
        return (committed | ~open_).all(-1)
    if sampler.rule == "ddim":
        return torch.zeros_like(stable_for, dtype=torch.bool)
    confident = is_confident(reading.entropy, open_, sampler.confidence, inclusive=sampler.inclusive)
    return (stable_for >= sampler.stability) & confident
