"""What `mezzotint plan` predicts of measurements that its constants were not fitted on: published ones, and lab's here.

    python -m benchmarks.roofline                      # both tables from the files; nothing is measured
    python -m benchmarks.roofline --measure            # lab anew, on one thread: a minute
    python -m benchmarks.roofline --measure --write    # and keep the points in benchmarks/roofline_lab.json

Every second point is fitted, the others are predicted. Processor time of one thread is taken, the least of many, so
that a busy machine disturbs it little.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.machine import describe_run
from benchmarks.roofline_fit import fit_forwards, fit_published, forward_ms
from mezzotint.bench.accelerators import ACCELERATORS
from mezzotint.bench.agreement import agreement
from mezzotint.bench.fitted import EFFICIENCIES
from mezzotint.bench.footprint import PRECISIONS
from mezzotint.bench.operators import Forward, Setting
from mezzotint.bench.roofline import Efficiency
from mezzotint.llm import LLM
from mezzotint.model.config import read_config
from mezzotint.model.diffusion_gemma import DiffusionGemma

POINTS = Path(__file__).with_name("roofline_lab.json")
_LAB = Path(__file__).parents[1] / "mezzotint" / "checkpoints" / "lab"
_ROUNDS, _BUDGET_S, _LEAST_REPEATS = 3, 0.1, 3  # the points are measured in turn, so that a busy while hurts no one
_CANVASES = [(1, 64), (1, 512), (1, 1536), (2, 256), (4, 128), (4, 1024), (8, 512)]  # rows, context
_TOKENS = [(1, 64), (1, 512), (1, 1536), (2, 128), (4, 256), (8, 1024), (16, 512)]


class Point(NamedTuple):
    """A forward of lab with its sampling, and its least processor time in ms."""

    forward: Forward
    taken_ms: float


def lab_setting() -> Setting:
    """lab in bfloat16 on one core, as machine code."""
    return Setting(config=read_config(_LAB), precision=PRECISIONS["bf16"], accelerator=ACCELERATORS["cpu"])


def read_points(file: Path = POINTS) -> list[Point]:
    """The measured points, in the order in which they alternate between fit and test."""
    return [Point(Forward(**each["forward"]), each["taken_ms"]) for each in json.loads(file.read_text())["points"]]


def fit_points(points: Sequence[Point]) -> Efficiency:
    """The efficiencies that every second point gives, from the first on."""
    return fit_forwards(lab_setting(), points[::2])


def forwards() -> Iterator[Forward]:
    """What is measured: canvases and a few tokens, several sizes, batches and contexts; some without their sampling."""
    for tokens in (16, 32, 64):
        for rows, context in _CANVASES:
            yield Forward(rows, tokens, context, tokens, denoises=True)
    for tokens in (32, 64):
        for rows, context in _CANVASES[1::2]:
            yield Forward(rows, tokens, context, 0, denoises=True)
    for tokens in (1, 2, 5):
        for rows, context in _TOKENS:
            yield Forward(rows, tokens, context, tokens)


@torch.inference_mode()
def measure(model: DiffusionGemma, forward: Forward, *, budget_s: float = _BUDGET_S) -> float:
    """Least processor time of a forward with its sampling, in ms."""
    generator = torch.Generator().manual_seed(0)
    vocabulary, context = model.config.vocab_size, int(forward.context)
    prompt = torch.randint(vocabulary, (forward.rows, context), generator=generator)
    ids = torch.randint(vocabulary, (forward.rows, forward.tokens), generator=generator)
    soft: torch.Tensor | None = torch.zeros(forward.rows, forward.tokens, model.config.hidden_size, dtype=model.dtype)
    taken: list[float] = []
    cache = model.new_kv(forward.rows, context + forward.tokens)
    model.encode(prompt, cache)
    ended = time.perf_counter() + budget_s
    while len(taken) < _LEAST_REPEATS or time.perf_counter() < ended:
        cache.truncate(context)  # an encode has grown it
        started = time.process_time()
        hidden = model.denoise(ids, cache, soft) if forward.denoises else model.encode(ids, cache)
        if forward.sampled and forward.denoises:
            reading = model.read(
                hidden.flatten(0, 1),
                temperature=0.6,
                proposal_temperature=0.6,
                uniforms=torch.rand(ids.numel(), generator=generator),
                with_soft=True,
            )
            soft = None if reading.soft is None else reading.soft.view(hidden.shape).to(model.dtype)
        elif forward.sampled:
            model.logits(hidden).argmax(-1)
        taken.append(time.process_time() - started)
    return 1e3 * min(taken)


def main(arguments: Sequence[str]) -> None:
    """Print how near the plan comes to what it was not fitted on."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="measure lab anew; half a minute")
    parser.add_argument("--write", action="store_true", help="keep what was measured in benchmarks/roofline_lab.json")
    options = parser.parse_args(arguments)
    if options.write and not options.measure:
        parser.error("--write keeps what --measure measures; give both")
    _print_published()
    if options.measure:
        torch.set_num_threads(1)
        model = LLM("lab", compiled=True).model
        rounds = [[measure(model, forward) for forward in forwards()] for _ in range(_ROUNDS)]
        points = [Point(forward, min(taken)) for forward, *taken in zip(forwards(), *rounds, strict=True)]
        if options.write:
            POINTS.write_text(as_json(arguments, points))
    else:
        points = read_points()
    _print_lab(points, fit_points(points))


def as_json(arguments: Sequence[str], points: Sequence[Point]) -> str:
    """The file that read_points reads, with the run that measured it."""
    rows = [{"forward": each.forward._asdict(), "taken_ms": round(each.taken_ms, 4)} for each in points]
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f'{{"run": {json.dumps(describe_run(arguments, "roofline"))}, "points": [\n{lines}\n]}}\n'


def _print_published() -> None:
    print(f"fit on the twelve published operator times: {fit_published()}")
    print(f"in the package: {EFFICIENCIES['h100']}\n\n| published | measured | predicted | error |\n|---|---|---|---|")
    for row in agreement():
        print(f"| {row.what} | {row.published:.4g} | {row.predicted:.4g} | {row.error:+.0%} |")


def _print_lab(points: Sequence[Point], efficiency: Efficiency) -> None:
    print(f"\nfit on every second point of lab: {efficiency}")
    print(f"in the package: {EFFICIENCIES['cpu']}\n")
    columns = "rows tokens context sampled denoises measured predicted error use".split()
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for place, (forward, taken) in enumerate(points):
        said, use = forward_ms(lab_setting(), forward, efficiency), "test" if place % 2 else "fit"
        shape = f"{forward.rows} | {forward.tokens} | {forward.context:g} | {forward.sampled} | {forward.denoises}"
        print(f"| {shape} | {taken:.2f} | {said:.2f} | {said / taken - 1:+.0%} | {use} |")


if __name__ == "__main__":
    main(sys.argv[1:])
