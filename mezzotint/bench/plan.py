"""What decoders cost on paper: milliseconds a step, tokens a second, memory; counted and fitted, nothing is run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal, NamedTuple

from mezzotint.bench.fitted import EFFICIENCIES
from mezzotint.bench.footprint import DrafterShape, Footprint, footprint
from mezzotint.bench.habits import Habits
from mezzotint.bench.operators import Forward, Operator, Setting, draft, operators
from mezzotint.bench.roofline import Work, seconds

Decoder = Literal["ar", "mtp", "diffusion", "verified"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is to be planned. context, output: tokens of a request; prefill is left out, as in published figures.

    steps: denoising steps a canvas, None for as many as habits.tokens_per_forward means. verified: how many steps a
    round of verified drafts with and how many tokens it then keeps, None where that is not known.
    Raises: ValueError naming option and limit.
    """

    setting: Setting
    habits: Habits
    drafter: DrafterShape | None = None
    context: int = 4096
    output: int = 1024
    concurrency: int = 1
    steps: float | None = None
    verified: tuple[int, float] | None = None

    def __post_init__(self) -> None:
        for name in ("context", "output", "concurrency"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} is {getattr(self, name)}; it must be at least 1")
        limit = self.setting.config.max_positions
        if self.context + self.output > limit:
            raise ValueError(
                f"--context {self.context} and --output {self.output} exceed the model's {limit} positions"
            )
        if self.steps is not None and not 1 <= self.steps < float("inf"):
            raise ValueError(f"--steps is {self.steps:g}; a canvas needs a finite number of at least 1")
        if self.verified is not None and self.verified[0] < 1:
            raise ValueError(f"--verified-steps is {self.verified[0]}; a draft takes at least 1 step")
        if self.verified is not None and not 1 <= self.verified[1] <= self.setting.config.canvas_length:
            raise ValueError(
                f"--verified-keeps is {self.verified[1]:g}; a round keeps from 1 token to a canvas of "
                f"{self.setting.config.canvas_length}"
            )


class Part(NamedTuple):
    """One forward with all that it needs: seconds on the device by operator, and what is waited for around it."""

    operators_s: Mapping[Operator, float]
    host_s: float
    bytes: float
    flop: float

    @property
    def seconds(self) -> float:
        """From end to end."""
        return sum(self.operators_s.values()) + self.host_s


class Estimate(NamedTuple):
    """A decoder's cost. step: an encode of ar, a denoise of the canvases, a round of mtp or verified, for all requests.

    commit: the encode of finished canvases, diffusion's alone. tokens_per_step: of one request. tokens_per_s: of all
    requests together. steps: denoising steps a canvas.
    """

    step: Part
    commit: Part | None
    steps: float | None
    tokens_per_step: float
    tokens_per_s: float
    footprint: Footprint


def estimate(question: Question) -> dict[Decoder, Estimate]:
    """The cost of every decoder of which enough is known: mtp needs a drafter, verified what a round keeps.

    Raises: ValueError where weights, or this many requests, do not fit, naming the remedy.
    """
    told: dict[Decoder, Estimate] = {"ar": _ar(question)}
    if question.drafter is not None:
        told["mtp"] = _mtp(question, question.drafter)
    if question.setting.config.family == "diffusion_gemma":
        told["diffusion"] = _diffusion(question)
        if question.verified is not None:
            told["verified"] = _verified(question, *question.verified)
    for decoder, each in told.items():
        if question.concurrency > each.footprint.max_concurrency:
            raise ValueError(
                f"--concurrency is {question.concurrency}, and {each.footprint.max_concurrency} requests of "
                f"{question.context + question.output} tokens under {decoder} fit into the memory of "
                f"{question.setting.accelerator.name}; ask for fewer, a smaller --dtype or a shorter --context"
            )
    return told


def at(question: Question, concurrency: int) -> Question:
    """The same question for another number of requests at once."""
    return replace(question, concurrency=concurrency)


def canvases(question: Question) -> int:
    """Canvases of a request."""
    return ceil(question.output / question.setting.config.canvas_length)


def steps_a_canvas(question: Question) -> float:
    """Denoising steps a canvas: those asked for, or what tokens a forward leave beside the commits. Source: contract 1.

    Raises: ValueError where that is less than one step.
    """
    if question.steps is not None:
        return question.steps
    blocks = canvases(question)
    steps = (question.output / question.habits.tokens_per_forward - (blocks - 1)) / blocks
    if steps < 1:
        most = question.output / (2 * blocks - 1)
        raise ValueError(
            f"--tokens-per-forward {question.habits.tokens_per_forward:g} leaves {steps:.2f} steps a canvas; with one "
            f"step each and {blocks - 1} commits {question.output} tokens are {most:.1f} a forward at most"
        )
    return steps


def _forward(setting: Setting, forward: Forward) -> Part:
    return _part(setting, operators(setting, forward))


def _part(setting: Setting, works: Mapping[Operator, Sequence[Work]]) -> Part:
    device = setting.accelerator
    efficiency = EFFICIENCIES[device.tuned_on]
    everything = [work for part in works.values() for work in part]
    return Part(
        operators_s={name: sum(seconds(work, device, efficiency) for work in part) for name, part in works.items()},
        host_s=efficiency.host_ms * 1e-3,
        bytes=sum(work.bytes + efficiency.logit_passes * work.logit_bytes for work in everything),
        flop=sum(work.flop for work in everything),
    )


def _middle(question: Question) -> float:
    return question.context + question.output / 2


def _fits(question: Question, *, drafter: DrafterShape | None = None, canvas: bool = False) -> Footprint:
    setting, tokens = question.setting, question.context + question.output
    return footprint(setting.config, setting.precision, setting.accelerator, tokens, drafter=drafter, canvas=canvas)


def _ar(question: Question) -> Estimate:
    step = _forward(question.setting, Forward(question.concurrency, 1, _middle(question), sampled=1))
    return Estimate(step, None, None, 1.0, question.concurrency / step.seconds, _fits(question))


def _mtp(question: Question, drafter: DrafterShape) -> Estimate:
    setting, habits, middle = question.setting, question.habits, _middle(question)
    guessed = 1 + habits.drafts
    works = dict(operators(setting, Forward(question.concurrency, guessed, middle, sampled=guessed)))
    works["drafter"] = draft(setting, drafter, question.concurrency, middle) * habits.drafts
    step, tokens = _part(setting, works), 1 + habits.kept
    rate = question.concurrency * tokens / step.seconds
    return Estimate(step, None, None, tokens, rate, _fits(question, drafter=drafter))


def _denoise(question: Question) -> Part:
    C = question.setting.config.canvas_length
    return _forward(question.setting, Forward(question.concurrency, C, _middle(question), C, denoises=True))


def _diffusion(question: Question) -> Estimate:
    C, blocks, steps = question.setting.config.canvas_length, canvases(question), steps_a_canvas(question)
    step = _denoise(question)
    commit = _forward(question.setting, Forward(question.concurrency, C, _middle(question)))
    taken = blocks * steps * step.seconds + (blocks - 1) * commit.seconds
    rate = question.concurrency * question.output / taken
    tokens = question.output / (blocks * steps)
    return Estimate(step, commit, steps, tokens, rate, _fits(question, canvas=True))


def _verified(question: Question, steps: int, kept: float) -> Estimate:
    """A round: `steps` denoising steps as a draft, and one encode that verifies all of it."""
    C = question.setting.config.canvas_length
    step = _denoise(question)
    check = _forward(question.setting, Forward(question.concurrency, C, _middle(question), sampled=C))
    names = step.operators_s.keys() | check.operators_s.keys()
    whole = Part(
        {name: steps * step.operators_s.get(name, 0.0) + check.operators_s.get(name, 0.0) for name in names},
        steps * step.host_s + check.host_s,
        steps * step.bytes + check.bytes,
        steps * step.flop + check.flop,
    )
    return Estimate(whole, None, steps, kept, question.concurrency * kept / whole.seconds, _fits(question, canvas=True))
