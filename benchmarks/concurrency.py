"""`make concurrency`: what many requests at once get of one engine by decoder, and where one overtakes another.

python -m benchmarks.concurrency --compile                  # decoders beside each other, four minutes
python -m benchmarks.concurrency --versus-transformers lab  # eight requests at once, beside transformers
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.arguments import counts, names_of, threads
from benchmarks.machine import describe_run
from benchmarks.report import run_table
from benchmarks.sweep import sweep
from benchmarks.sweep_report import as_json, compare_decoders, crossings_table, rates_table, ratios_table
from benchmarks.traffic import DECODERS
from benchmarks.versus import lab_versus, large_versus
from benchmarks.workload import TASKS
from mezzotint.evaluate.config import EvaluateConfig
from mezzotint.llm import LLM

_SWEEP: dict[str, Any] = {  # options of the sweep alone, and their defaults
    "model": "lab",
    "tasks": ("extract",),
    "decoders": DECODERS,
    "concurrency": (1, 2, 4, 8, 16, 32),
    "prompts": 64,
    "json": None,
}


def main(arguments: Sequence[str]) -> None:
    """Measure what the arguments ask for and print it as Markdown."""
    options = _parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    facts = describe_run(arguments, "concurrency")
    print(run_table(facts), flush=True)
    if options.versus_transformers is None:
        sweep_decoders(options, facts)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure = {"lab": lab_versus, "large": large_versus}[options.versus_transformers]
        for section in measure(Path(folder), rounds=options.rounds, compiled=options.compile):
            print(f"\n{section}", flush=True)


def sweep_decoders(options: argparse.Namespace, facts: Mapping[str, str]) -> None:
    """Put the same prompts to every decoder at every concurrency, and print how they compare."""
    llm = LLM(options.model, dtype="bfloat16", compiled=options.compile)
    # One arm a decoder at the checkpoint's own sampler and budget: diffusion at temperature 1, the others greedy.
    arms = EvaluateConfig(tasks=options.tasks, decoders=options.decoders).arms
    cells = {}
    for level, row in sweep(llm, arms, options.tasks, options.concurrency, options.prompts):
        cells[level] = row
        print(f"measured {level} at once", file=sys.stderr, flush=True)
    comparisons = compare_decoders(cells)
    title = f"{llm.path.name}, bfloat16{', compiled' if options.compile else ''}, {', '.join(options.tasks)}"
    print(f"\n## Many requests at once: {title}\n\n{rates_table(cells)}", flush=True)
    if comparisons:
        print(f"\n{ratios_table(comparisons)}\n\n{crossings_table(comparisons)}")
    if options.json:
        Path(options.json).write_text(json.dumps({"run": facts, **as_json(cells, comparisons)}, allow_nan=False))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.concurrency", description=about)
    add = parser.add_argument
    add("--compile", action="store_true", help="our side as machine code")
    add("--threads", type=threads, help="torch's threads; default: torch's own choice")
    add("--model", help="a checkpoint in place of the bundled one")
    add("--tasks", type=names_of(TASKS), help=f"some of {','.join(TASKS)}, in turn; default: extract")
    add("--decoders", type=names_of(DECODERS), help=f"some of {','.join(DECODERS)}; default: all")
    add("--concurrency", type=counts, help="requests at once, with commas; default: 1,2,4,8,16,32")
    add("--prompts", type=int, help="prompts measured at each concurrency; default: 64")
    add("--json", help="a file for all figures and those of every answer")
    add("--versus-transformers", choices=("lab", "large"), help="measure beside transformers instead")
    add("--rounds", type=int, help="batches measured beside transformers; default: 12 of lab, 2 of large")
    options = parser.parse_args(arguments)
    versus = options.versus_transformers is not None
    if given := [name for name in (_SWEEP if versus else ["rounds"]) if getattr(options, name) is not None]:
        parser.error(f"--{given[0]} is for runs {'without' if versus else 'with'} --versus-transformers; drop one")
    for name in ("prompts", "rounds"):
        if (count := getattr(options, name)) is not None and count < 1:
            parser.error(f"--{name} is {count}; give 1 or more")
    for name, usual in _SWEEP.items():
        if getattr(options, name) is None:
            setattr(options, name, usual)
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
