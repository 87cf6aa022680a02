"""What following a grammar costs beside the denoising step that it follows; what grammars cost alone is in grammar."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, median

from benchmarks.ours import Ours
from benchmarks.subjects import lab, large

STEPS = 3  # of which the first is that of a shorter answer
# What one step under a grammar asks of it, beyond the model's own work.
QUESTIONS = ("mask", "mask on the logits", "count_valid, valid ids")


def step_seconds(name: str, folder: Path, *, rounds: int, compiled: bool) -> float:
    """The median time of one more denoising step of `lab`, or of the 270M-like shape with random weights.

    folder: must not exist; becomes the checkpoint.
    """
    subject = lab(folder, prompts=1) if name == "lab" else large(folder, prompts=1)
    ours = Ours(subject.folder, "bfloat16", compiled=compiled)

    def seconds(steps: int) -> float:
        started = time.perf_counter()
        ours.answer(subject.prompts[0], steps=steps, seed=0)
        return time.perf_counter() - started

    seconds(1)
    return median((seconds(STEPS) - seconds(1)) / (STEPS - 1) for _ in range(rounds))


def step_table(seconds: Mapping[str, Sequence[float]], name: str, step: float) -> str:
    """Each question of a step, in ms and as a share of a denoising step of `name`, which takes `step` seconds."""
    lines = [f"A denoising step of {name}: {step * 1e3:.3g} ms", ""]
    lines += [
        "| under a grammar, a step | mean ms | longest ms | mean ÷ step | longest ÷ step |",
        "|---|---|---|---|---|",
    ]
    for question in QUESTIONS:
        values = seconds[question]
        figures = f"{mean(values) * 1e3:.3g} | {max(values) * 1e3:.3g}"
        lines.append(f"| {question} | {figures} | {mean(values) / step:.1%} | {max(values) / step:.1%} |")
    return "\n".join(lines)
