"""Many requests at once beside transformers: total tokens a second on lab, and on a model with a full vocabulary."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.ours import Ours
from benchmarks.reference import Reference, Stop
from benchmarks.report import markdown_table
from benchmarks.sides import Sides
from benchmarks.subjects import Subject, lab, large
from benchmarks.timing import compare
from benchmarks.together import Batches, Together, time_both
from mezzotint.llm import LLM, SamplingParams, checkpoint_sampler
from mezzotint.model.config import ModelConfig
from mezzotint.model.generation_config import GenerationDefaults, read_generation
from mezzotint.model.locate import BUNDLED
from mezzotint.model.memory import available_bytes

AT_ONCE, LAB_TARGET = 8, 3.0
LARGE_STEPS, LARGE_TARGET = 4, 6.0
LIMIT_BYTES = 20_000_000_000
_LAB_ROUNDS, _LARGE_ROUNDS = 12, 2
_LAB_STEPS, _LAB_TOKENS = (8, 16), 64
# What a denoising step of transformers holds at its peak for every logit, in the entropy of Categorical: in float32 the
# logits, the same by temperature, the probabilities, and Categorical's own logits, probabilities and two products; in
# bfloat16 the logits of the step before; and 2 for what is neither. Measured: 32 at 2^23 to 2^25 logits, 31 at 2^26.
LOGIT_BYTES = 7 * 4 + 2 + 2


class Comparison(NamedTuple):
    """One line of a table: what is asked, how many at once, seconds a token of both sides, and the least ratio."""

    what: str
    rows: int
    sides: Sides
    target: float | None


def lab_versus(folder: Path, *, rounds: int | None, compiled: bool) -> Iterator[str]:
    """Sections of the small model: eight real prompts at once, with fixed steps, with its own rule, and greedy."""
    rounds = rounds or _LAB_ROUNDS
    subject = lab(folder / "lab", prompts=AT_ONCE * rounds)
    ours, theirs = Ours(subject.folder, "bfloat16", compiled=compiled), Reference(subject.folder, "bfloat16")
    yield _conditions(subject, theirs, compiled)
    lines = [
        *fixed_steps(ours.llm, theirs, subject, AT_ONCE, rounds, dict.fromkeys(_LAB_STEPS, LAB_TARGET)),
        own_rule(ours.llm, theirs, subject, rounds, read_generation(BUNDLED / "lab")),
        greedy(ours.llm, theirs, subject, rounds, _LAB_TOKENS),
    ]
    yield versus_table(lines)


def large_versus(folder: Path, *, rounds: int | None, compiled: bool) -> Iterator[str]:
    """Sections of the model with a full vocabulary: alone, and as many at once as transformers has memory for."""
    rounds = rounds or _LARGE_ROUNDS
    subject = large(folder / "large", prompts=AT_ONCE * rounds)
    ours, theirs = Ours(subject.folder, "bfloat16", compiled=compiled), Reference(subject.folder, "bfloat16")
    yield _conditions(subject, theirs, compiled)
    config = ours.llm.model.config
    limit = min(LIMIT_BYTES - weight_bytes(theirs), available_bytes(torch.device("cpu")))
    most = largest_batch(config, limit)
    yield (
        f"transformers needs {LOGIT_BYTES} bytes a logit, {reference_bytes(config, 1) / 1e9:.2f} GB a row: of "
        f"{limit / 1e9:.1f} GB beside its weights {most} rows fit."
    )
    steps = {LARGE_STEPS: LARGE_TARGET}
    yield versus_table(
        [line for rows in sorted({1, most}) for line in fixed_steps(ours.llm, theirs, subject, rows, rounds, steps)]
    )


def fixed_steps(
    llm: LLM, theirs: Reference, subject: Subject, rows: int, rounds: int, targets: dict[int, float]
) -> Iterator[Comparison]:
    """One canvas of every prompt with so many steps, no fewer, by budget; tokens are all of the canvas."""
    batches = Batches(Together(llm, rows, llm.sampler(SamplingParams())), theirs, subject.prompts, rows)
    for steps, target in targets.items():
        stop = Stop(llm.limits.canvas_length, steps)
        sides = time_both(partial(batches.denoise_ours, stop), partial(batches.denoise_theirs, stop, ()), rounds)
        yield Comparison(f"diffusion, {steps} steps", rows, sides, target)


def own_rule(
    llm: LLM, theirs: Reference, subject: Subject, rounds: int, rule: GenerationDefaults, rows: int = AT_ONCE
) -> Comparison:
    """Answers that end by the checkpoint's own rule and budget; tokens are those up to the end of turn."""
    stop = Stop(
        2 * llm.limits.canvas_length, rule.max_denoising_steps, rule.stability_threshold, rule.confidence_threshold
    )
    batches = Batches(Together(llm, rows, checkpoint_sampler(rule)), theirs, subject.prompts, rows)
    call = partial(batches.denoise_theirs, stop, llm.limits.end_ids)
    sides = time_both(partial(batches.denoise_ours, stop), call, rounds)
    return Comparison(f"diffusion, at most {stop.steps} steps, until it has converged", rows, sides, LAB_TARGET)


def greedy(llm: LLM, theirs: Reference, subject: Subject, rounds: int, tokens: int, rows: int = AT_ONCE) -> Comparison:
    """So many argmax tokens one after another behind every prompt."""
    batches = Batches(Together(llm, rows, llm.sampler(SamplingParams())), theirs, subject.prompts, rows)
    sides = time_both(partial(batches.draw_ours, tokens), partial(batches.draw_theirs, tokens), rounds)
    return Comparison(f"ar, {tokens} tokens", rows, sides, None)


def largest_batch(config: ModelConfig, limit_bytes: int) -> int:
    """How many rows, from 1 to AT_ONCE, transformers denoises within so many bytes."""
    return max(1, min(AT_ONCE, limit_bytes // reference_bytes(config, 1)))


def reference_bytes(config: ModelConfig, rows: int) -> int:
    """What a denoising step of transformers takes beside its weights, of which the rest is little: its logits."""
    return rows * config.canvas_length * config.vocab_size * LOGIT_BYTES


def weight_bytes(theirs: Reference) -> int:
    """Bytes of both of its models; what they share counts once."""
    tensors = [*theirs.model.parameters(), *theirs.causal.parameters()]
    return sum({tensor.data_ptr(): tensor.nbytes for tensor in tensors}.values())


def versus_table(lines: list[Comparison]) -> str:
    """Total tokens a second on both sides, and how many times more are ours."""
    head = "what | at once | transformers, tokens/s | ours, tokens/s | ratio | 95 % | n | target".split(" | ")
    return markdown_table(head, [_row(line) for line in lines])


def _row(line: Comparison) -> list[str]:
    ours, theirs = line.sides
    ratio, n = compare(theirs, ours), len(ours.values)
    span = f"{ratio.interval.low:.2f}–{ratio.interval.high:.2f}" if n > 2 else "too few"
    rates = [f"{1 / side.median:.0f}" if side.median < 0.1 else f"{1 / side.median:.2f}" for side in (theirs, ours)]
    target = "" if line.target is None else f"≥ {line.target:g} ×"
    return [line.what, str(line.rows), *rates, f"{ratio.value:.2f} ×", span, str(n), target]


def _conditions(subject: Subject, theirs: Reference, compiled: bool) -> str:
    lengths = sorted(map(len, subject.prompts))
    return (
        f"## Beside transformers: {subject.name}, bfloat16{', ours compiled' if compiled else ''}\n\n"
        f"Weights: {subject.weights}. {len(lengths)} prompts of {lengths[0]} to {lengths[-1]} tokens, those of a batch "
        f"given to both sides at once, padded on the left for transformers ({theirs.choices}, dynamic cache). Ours "
        "takes them as requests of an empty engine without a prefix cache."
    )
