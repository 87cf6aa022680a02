"""What narrower canvases gain on short answers: `canvas_length` and `drop_after_end` beside the whole canvas.

Real held-out prompts, each answered with every option in turn, the first one changing from prompt to prompt.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch

from benchmarks.arguments import names_of, threads
from benchmarks.machine import describe_run
from benchmarks.markers import rewrite_document
from benchmarks.report import markdown_table, run_table
from benchmarks.workload import Ask, draw_asks
from mezzotint.evaluate.interval import ratio_interval, wilson_interval
from mezzotint.llm import LLM, SamplingParams
from mezzotint.tasks import FAMILIES
from mezzotint.types import Receipt, tokens_per_forward

TASKS = ("extract", "call", "chat")
OPTIONS = {
    "full": SamplingParams(),
    "canvas_length 32": SamplingParams(canvas_length=32),
    "canvas_length 16": SamplingParams(canvas_length=16),
    "drop_after_end": SamplingParams(drop_after_end=True),
}
WAYS = ("eager", "compiled")
_WARM = 2  # prompts that are answered before any is timed


class Tried(NamedTuple):
    """One prompt's answer with one option."""

    is_right: bool
    receipt: Receipt

    @property
    def microseconds(self) -> int:
        """From the prompt's ids to the whole answer."""
        return max(1, round(1e6 * (self.receipt.prefill_s + self.receipt.generation_s)))


def main(arguments: Sequence[str]) -> None:
    """Answer all prompts every way, and print the figures as Markdown."""
    options = _parse(arguments)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    rows: list[list[str]] = []
    for way in options.ways:
        llm = LLM(options.model, compiled=way == "compiled")
        for task in options.tasks:
            rows += _rows(task, way, _try_all(llm, draw_asks(llm, [task], options.n + _WARM)))
    text = f"{run_table(describe_run(arguments, 'narrowing'))}\n\n{markdown_table(_HEAD, rows)}"
    print(text)
    if options.write is not None:
        rewrite_document(options.write, "narrowing", text)


def _try_all(llm: LLM, asks: Sequence[Ask]) -> dict[str, list[Tried]]:
    """The answers to all but the first prompts, which warm up, by option."""
    tried: dict[str, list[Tried]] = {name: [] for name in OPTIONS}
    for index, ask in enumerate(asks):
        turned = index % len(OPTIONS)
        for name in [*OPTIONS][turned:] + [*OPTIONS][:turned]:
            params = replace(OPTIONS[name], max_tokens=ask.max_tokens, seed=ask.seed)
            [completion] = llm.generate(list(ask.ids), params)
            tried[name].append(Tried(ask.is_right(completion.token_ids, llm), completion.receipt))
    return {name: each[_WARM:] for name, each in tried.items()}


_HEAD = [
    "task",
    "layers",
    "canvas",
    "n",
    "passed",
    "95 %",
    "tokens",
    "blocks",
    "steps",
    "tokens per forward",
    "95 %",
    "ms",
    "÷ full",
    "95 %",
]


def _rows(task: str, way: str, tried: Mapping[str, Sequence[Tried]]) -> list[list[str]]:
    full = [each.microseconds for each in tried["full"]]
    return [[task, way, name, *_figures(each, full)] for name, each in tried.items()]


def _figures(tried: Sequence[Tried], full: Sequence[int]) -> list[str]:
    """Means of an answer. full: microseconds of the same prompts on the checkpoint's own canvas."""
    passed, n, receipts = sum(each.is_right for each in tried), len(tried), [each.receipt for each in tried]
    rate = wilson_interval(passed, n)
    tokens, forwards = ([getattr(each, name) for each in receipts] for name in ("output_tokens", "forwards"))
    yielded, spent = ratio_interval(tokens, forwards), [each.microseconds for each in tried]
    ratio = ratio_interval(spent, full)
    return [
        str(n),
        f"{passed / n:.1%}",
        f"{rate.low:.1%}–{rate.high:.1%}",
        f"{fmean(tokens):.1f}",
        f"{fmean(len(each.denoise_steps) for each in receipts):.2f}",
        f"{fmean(sum(each.denoise_steps) for each in receipts):.2f}",
        f"{tokens_per_forward(sum(tokens), sum(forwards)):.2f}",
        f"{yielded.low:.2f}–{yielded.high:.2f}",
        f"{fmean(spent) / 1e3:.1f}",
        f"{sum(spent) / sum(full):.2f}",
        f"{ratio.low:.2f}–{ratio.high:.2f}",
    ]


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.narrowing", description=__doc__)
    parser.add_argument("--model", default="lab", help="a checkpoint whose canvas has at least 32 tokens")
    parser.add_argument("--tasks", type=names_of(tuple(FAMILIES)), default=TASKS, help="with commas between them")
    parser.add_argument("--ways", type=names_of(WAYS), default=WAYS, help="eager, compiled or both")
    parser.add_argument("--n", type=int, default=100, help="prompts of each task")
    parser.add_argument("--threads", type=threads, help="torch's")
    parser.add_argument("--write", type=Path, help="write the figures into this document, between its markers")
    options = parser.parse_args(arguments)
    if options.n < 1:
        parser.error(f"--n is {options.n}; give 1 or more")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
