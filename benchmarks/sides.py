"""The same work given to both sides in turn: whole answers, greedy tokens, and one more of either."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch

from benchmarks.ours import Ours
from benchmarks.reference import Reference
from benchmarks.subjects import Subject, cut_context
from benchmarks.timing import Times, as_measured, one_more, time_in_turn


class Sides(NamedTuple):
    """Times of the same work."""

    ours: Times
    theirs: Times


class Work(NamedTuple):
    """How much of it. steps: two budgets of denoising steps. tokens: greedy ones around a mean `context`."""

    rounds: int
    steps: tuple[int, int]
    tokens: int
    context: int


class Answers(NamedTuple):
    """Whole answers by their steps, and one denoising step: what the longer ones take more, a step."""

    whole: dict[int, Sides]
    step: Sides


class Tokens(NamedTuple):
    """One autoregressive step; `bare` has transformers' forward alone in a loop instead of its generate."""

    step: Sides
    bare: Sides


class Measured(NamedTuple):
    """What was asked for, all from the same rounds."""

    answers: Answers | None
    tokens: Tokens | None


class Agreement(NamedTuple):
    """How near two sides' numbers are: logits of a first step, and greedy tokens."""

    furthest: float
    same_argmax: float
    same_tokens: int
    tokens: int


def measure(ours: Ours, theirs: Reference, subject: Subject, work: Work, *, answers: bool, tokens: bool) -> Measured:
    """Time answers, greedy tokens or both on one prompt a round."""
    calls: dict[str, Callable[[int], object]] = {}
    if answers:
        for steps in work.steps:
            calls[f"ours {steps}"] = partial(_answer, ours, subject.prompts, steps)
            calls[f"theirs {steps}"] = partial(_answer, theirs, subject.prompts, steps)
    if tokens:
        contexts = [cut_context(prompt, work.context - work.tokens // 2) for prompt in subject.prompts]
        for count in (1, 1 + work.tokens):
            calls[f"ours ar {count}"] = partial(_continue, ours.continue_greedily, contexts, count)
            calls[f"theirs ar {count}"] = partial(_continue, theirs.continue_greedily, contexts, count)
            calls[f"theirs bare {count}"] = partial(_continue, theirs.continue_bare, contexts, count)
    seconds = time_in_turn(calls, work.rounds)
    return Measured(
        _answers(seconds, work.steps) if answers else None, _tokens(seconds, work.tokens) if tokens else None
    )


def check_agreement(ours: Ours, theirs: Reference, subject: Subject, work: Work) -> Agreement:
    """Compare what both sides compute on the first prompt."""
    canvas = torch.arange(ours.canvas_length)
    mine, its = (side.first_logits(subject.prompts[0], canvas) for side in (ours, theirs))
    context = cut_context(subject.prompts[0], work.context)
    drawn = [side.continue_greedily(context, tokens=work.tokens) for side in (ours, theirs)]
    return Agreement(
        float((mine - its).abs().max()),
        float((mine.argmax(-1) == its.argmax(-1)).float().mean()),
        sum(a == b for a, b in zip(*drawn, strict=True)),
        work.tokens,
    )


def _answer(side: Ours | Reference, prompts: Sequence[list[int]], steps: int, turn: int) -> object:
    return side.answer(prompts[turn % len(prompts)], steps=steps, seed=turn)


def _continue(draw: Callable[..., list[int]], contexts: Sequence[list[int]], count: int, turn: int) -> object:
    return draw(contexts[turn % len(contexts)], tokens=count)


def _answers(seconds: dict[str, tuple[float, ...]], steps: tuple[int, int]) -> Answers:
    few, many = steps
    whole = {
        budget: Sides(as_measured(seconds[f"ours {budget}"]), as_measured(seconds[f"theirs {budget}"]))
        for budget in steps
    }
    one = [one_more(seconds[f"{side} {many}"], seconds[f"{side} {few}"], many - few) for side in ("ours", "theirs")]
    return Answers(whole, Sides(*one))


def _tokens(seconds: dict[str, tuple[float, ...]], extra: int) -> Tokens:
    ours, theirs, bare = (
        one_more(seconds[f"{name} {1 + extra}"], seconds[f"{name} 1"], extra)
        for name in ("ours ar", "theirs ar", "theirs bare")
    )
    return Tokens(Sides(ours, theirs), Sides(ours, bare))
