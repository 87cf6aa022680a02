"""Adds answers up to one row a task and arm; nothing is generated or verified here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from mezzotint.evaluate.interval import Interval, ratio_interval, wilson_interval
from mezzotint.evaluate.run import Answer
from mezzotint.text.detect import Kind
from mezzotint.types import tokens_per_forward


@dataclass(frozen=True, kw_only=True)
class Row:
    """How one arm did at one task over `n` prompts.

    pass_rate: share of accepted answers; interval: 95 %, Wilson. tokens_per_forward: all output tokens ÷ all
    forwards; its interval: 95 %, bootstrap over prompts. sampler: None for ar. step_budget: 0 for ar.
    steps: mean denoising steps a block, 0 for ar. budget_hits: share of blocks that used the whole budget.
    stutters, seams, loops: share of answers that repeat words at once inside a block, text across a border of
    blocks, and the same over and over to their end. empty, truncated: of those without text, or cut at max_tokens.
    preset: the bundle that was asked for, if any. mended: share of answers in which a gate did something.
    overridden, forced: tokens an answer where a grammar refused the model's likeliest, or left no choice.
    output_tokens: mean of an answer. seconds: mean of an answer, prefill_s + generation_s.
    Source: contract 1, 14.
    """

    task: str
    decoder: str
    sampler: str | None
    temperature: float
    form: str
    step_budget: int
    n: int
    pass_rate: float
    interval: Interval
    tokens_per_forward: float
    tokens_per_forward_interval: Interval
    steps: float
    seconds: float
    prefill_s: float
    generation_s: float
    output_tokens: float
    overridden: float
    forced: float
    budget_hits: float
    stutters: float
    seams: float
    loops: float
    empty: float
    truncated: float
    preset: str | None = None
    mended: float = 0.0


def score(answers: Iterable[Answer]) -> list[Row]:
    """One row for each task and arm, tasks and then arms in the order in which they first occur."""
    tasks: dict[str, dict[object, list[Answer]]] = {}
    for answer in answers:
        tasks.setdefault(answer.prompt.task, {}).setdefault(answer.arm, []).append(answer)
    return [_row(group) for arms in tasks.values() for group in arms.values()]


def _row(answers: Sequence[Answer]) -> Row:
    first, n = answers[0], len(answers)
    completions = [answer.completion for answer in answers]
    receipts = [completion.receipt for completion in completions]
    passed = sum(answer.accepted for answer in answers)
    tokens = [receipt.output_tokens for receipt in receipts]
    forwards = [receipt.forwards for receipt in receipts]
    blocks = sum(len(receipt.denoise_steps) for receipt in receipts)
    prefill_s = fmean(receipt.prefill_s for receipt in receipts)
    generation_s = fmean(receipt.generation_s for receipt in receipts)
    return Row(
        task=first.prompt.task,
        decoder=first.arm.decoder,
        sampler=receipts[0].sampler,
        temperature=first.arm.temperature,
        form=first.arm.form,
        step_budget=receipts[0].step_budget,
        n=n,
        pass_rate=passed / n,
        interval=wilson_interval(passed, n),
        tokens_per_forward=tokens_per_forward(sum(tokens), sum(forwards)),
        tokens_per_forward_interval=ratio_interval(tokens, forwards),
        steps=_share(sum(sum(receipt.denoise_steps) for receipt in receipts), blocks),
        seconds=prefill_s + generation_s,
        prefill_s=prefill_s,
        generation_s=generation_s,
        output_tokens=fmean(tokens),
        overridden=fmean(receipt.overridden_tokens for receipt in receipts),
        forced=fmean(receipt.forced_tokens for receipt in receipts),
        budget_hits=_share(sum(receipt.budget_hits for receipt in receipts), blocks),
        stutters=_share_with(answers, "stutter"),
        seams=_share_with(answers, "seam"),
        loops=_share_with(answers, "loop"),
        empty=_share_with(answers, "empty"),
        preset=first.arm.preset,
        mended=_share(sum(bool(receipt.interventions) for receipt in receipts), n),
        truncated=_share(sum(completion.finish_reason == "length" for completion in completions), n),
    )


def _share_with(answers: Sequence[Answer], kind: Kind) -> float:
    return _share(sum(kind in [finding.kind for finding in answer.findings] for answer in answers), len(answers))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
