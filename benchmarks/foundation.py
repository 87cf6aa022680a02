"""`make bench`: how fast one request is beside transformers, and beside what this machine can do at best."""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.arguments import names_of, threads
from benchmarks.bound import denoise_cost, token_cost, working_set_bytes
from benchmarks.ceilings import measure_ceilings
from benchmarks.machine import describe_run
from benchmarks.ours import Ours
from benchmarks.parts import split_denoising, split_token
from benchmarks.peak import peak_growth_bytes
from benchmarks.reference import Reference
from benchmarks.report import (
    agreement_line,
    ceilings_table,
    forwards_table,
    memory_table,
    ratio_table,
    run_table,
    share_table,
)
from benchmarks.sides import Measured, Sides, Work, check_agreement, measure
from benchmarks.subjects import Subject, cut_context, lab, large
from mezzotint.decoding.params import SamplingParams

KINDS = ("answer", "ar", "step", "ceilings")
ANSWER_TARGET, TOKEN_TARGET, STEP_TARGET = 4.0, 3.0, 6.0
VOCABULARY_PASS_BYTES = 64_000_000
_COMPILED = ", ours compiled"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much is measured of either model, and for how long a ceiling."""

    lab: Work
    large: Work
    ceiling_s: float
    split_steps: int


FULL = Plan(
    lab=Work(rounds=30, steps=(8, 16), tokens=64, context=160),
    large=Work(rounds=10, steps=(2, 4), tokens=16, context=256),
    ceiling_s=0.5,
    split_steps=22,
)
QUICK = Plan(
    lab=Work(rounds=3, steps=(8, 16), tokens=16, context=160),
    large=Work(rounds=1, steps=(1, 2), tokens=2, context=256),
    ceiling_s=0.02,
    split_steps=4,
)


def main(arguments: Sequence[str]) -> None:
    """Measure what the arguments ask for and print it as Markdown."""
    options = _parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    plan, kinds = QUICK if options.quick else FULL, set(options.only)
    print(run_table(describe_run(arguments)), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if kinds - {"step"}:
            subject = lab(Path(folder, "lab"), prompts=plan.lab.rounds, model=options.model)
            for dtype in ("float32", "bfloat16"):
                _print(lab_sections(subject, dtype, plan, kinds, compiled=options.compile))
        if kinds & {"step", "ceilings"}:
            subject = large(Path(folder, "large"), prompts=plan.large.rounds)
            _print(large_sections(subject, plan, kinds, compiled=options.compile))


def lab_sections(subject: Subject, dtype: str, plan: Plan, kinds: set[str], *, compiled: bool = False) -> Iterator[str]:
    """Sections of the small model in one dtype: answers, AR steps, and the share of the bound."""
    ours = Ours(subject.folder, dtype, compiled=compiled)
    yield f"## {subject.name}, {dtype}, batch 1{_COMPILED if compiled else ''}"
    if kinds & {"answer", "ar"}:
        theirs = Reference(subject.folder, dtype)
        yield _conditions(subject, ours, theirs, dtype, plan.lab)
        found = measure(ours, theirs, subject, plan.lab, answers="answer" in kinds, tokens="ar" in kinds)
        yield ratio_table(_ratio_rows(found, plan.lab, answer=ANSWER_TARGET, token=TOKEN_TARGET))
        yield from _forwards(found)
    if "ceilings" in kinds:
        yield from bound_sections(ours, subject, plan.lab.context, plan)


def large_sections(subject: Subject, plan: Plan, kinds: set[str], *, compiled: bool = False) -> Iterator[str]:
    """Sections of the model with a full vocabulary in bfloat16: steps, memory, and the share of the bound."""
    ours = Ours(subject.folder, "bfloat16", compiled=compiled)
    yield f"## {subject.name}, bfloat16, batch 1{_COMPILED if compiled else ''}"
    if "step" in kinds:
        theirs = Reference(subject.folder, "bfloat16")
        yield _conditions(subject, ours, theirs, "bfloat16", plan.large)
        found = measure(ours, theirs, subject, plan.large, answers=True, tokens=True)
        yield ratio_table(_ratio_rows(found, plan.large, step=STEP_TARGET))
        yield from _forwards(found)
        yield memory_table(memory_growth(ours, theirs, subject.prompts[0]), VOCABULARY_PASS_BYTES)
    if "ceilings" in kinds:
        yield from bound_sections(ours, subject, plan.large.context, plan)


def memory_growth(ours: Ours, theirs: Reference, prompt: list[int]) -> dict[str, int | None]:
    """Bytes at the peak: one vocabulary pass of ours, and whole answers of two steps on both sides."""
    model, rows = ours.llm.model, ours.canvas_length
    hidden = torch.randn(rows, model.config.hidden_size, generator=torch.Generator().manual_seed(0)).to(model.dtype)
    uniforms = torch.linspace(0, 1, rows + 1, dtype=torch.float64)[:-1]

    def read() -> object:
        return model.read(hidden, temperature=0.8, proposal_temperature=0.8, uniforms=uniforms, with_soft=True)

    calls: dict[str, Callable[[], object]] = {
        "our vocabulary pass": read,
        "our answer of two steps": lambda: ours.answer(prompt, steps=2, seed=0),
        "transformers' answer of two steps": lambda: theirs.answer(prompt, steps=2, seed=0),
    }
    for call in calls.values():
        call()
    return {name: peak_growth_bytes(call) for name, call in calls.items()}


def bound_sections(ours: Ours, subject: Subject, context: int, plan: Plan) -> Iterator[str]:
    """This machine's ceilings at the model's shapes, and how near a denoising step and an AR step come."""
    model, limits = ours.llm.model, ours.llm.limits
    config, ids = model.config, cut_context(subject.prompts[0], context)
    step, token = (cost(config, context, model.dtype.itemsize) for cost in (denoise_cost, token_cost))
    ceilings = measure_ceilings(config, model.dtype, working_set_bytes(token), seconds=plan.ceiling_s)
    yield ceilings_table(ceilings)
    sampler = ours.llm.sampler(SamplingParams(steps=plan.split_steps))
    yield f"A denoising step behind {context} tokens:"
    yield share_table(step, ceilings, split_denoising(model, ids, limits, sampler))
    yield f"An AR step behind {context} tokens:"
    yield share_table(token, ceilings, split_token(model, ids, limits, plan.split_steps))


def _conditions(subject: Subject, ours: Ours, theirs: Reference, dtype: str, work: Work) -> str:
    lengths = sorted(map(len, subject.prompts))
    return (
        f"Weights: {subject.weights}. {len(lengths)} prompts of {lengths[0]} to {lengths[-1]} tokens. "
        f"Canvas of {ours.canvas_length}, fixed steps. transformers by its own choice: {theirs.choices}.\n"
        f"{agreement_line(dtype, check_agreement(ours, theirs, subject, work))}"
    )


def _ratio_rows(
    found: Measured,
    work: Work,
    *,
    answer: float | None = None,
    step: float | None = None,
    token: float | None = None,
) -> list[tuple[str, Sides, float | None]]:
    rows: list[tuple[str, Sides, float | None]] = []
    if found.answers:
        rows += [(f"answer, {steps} steps", sides, answer) for steps, sides in found.answers.whole.items()]
        rows.append(("denoising step", found.answers.step, step))
    if found.tokens:
        rows.append((f"AR step, context {work.context}, generate", found.tokens.step, token))
        rows.append((f"AR step, context {work.context}, their forward alone", found.tokens.bare, None))
    return rows


def _forwards(found: Measured) -> Iterator[str]:
    if found.answers and found.tokens:
        yield forwards_table(found.answers.step, found.tokens.step)


def _print(sections: Iterator[str]) -> None:
    for section in sections:
        print(f"\n{section}", flush=True)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.foundation", description=__doc__)
    parser.add_argument("--only", type=names_of(KINDS), default=KINDS, help=f"some of {','.join(KINDS)}, with commas")
    parser.add_argument("--quick", action="store_true", help="a few rounds: figures that only show that it runs")
    parser.add_argument("--compile", action="store_true", help="our side as machine code; parts of a step are not told")
    parser.add_argument("--threads", type=threads, help="torch's threads; default: torch's own choice")
    parser.add_argument("--model", help="a checkpoint in place of the bundled one")
    options = parser.parse_args(arguments)
    if options.model and set(options.only) == {"step"}:
        parser.error("--model: step is measured with random weights alone; drop it, or add answer, ar or ceilings")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
