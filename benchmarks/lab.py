"""`make report`: what the bundled model scores, beside what is asked of it, as docs/lab.md shows it.

python -m benchmarks.lab --threads 2 --against-transformers --write docs/lab.md
python -m benchmarks.lab --from runs/lab.json --write docs/lab.md    # written anew, nothing is run
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

from benchmarks.arguments import names_of, threads
from benchmarks.distribution import draw_both, load_reference
from benchmarks.gates import USUAL, check_gates
from benchmarks.lab_report import render
from benchmarks.lab_scores import Kernels, Report, Scored, read_report, score_arms, write_report
from benchmarks.machine import describe_run
from benchmarks.markers import rewrite_document
from mezzotint.evaluate.config import EvaluateConfig
from mezzotint.evaluate.run import Answer
from mezzotint.llm import LLM
from mezzotint.tasks import FAMILIES

BUDGETS = (4, 8, USUAL, 48)
DECODERS = ("diffusion", "ar", "verified", "mtp")
FIRST = "extract"  # the family that most is asked of
PROMPTS, OTHERS, EAGER, DRAWN = 500, 500, 200, 500


def main(arguments: Sequence[str]) -> int:
    """Measure, or read what was measured, and show it. Returns: the exit status, 1 where --check found a gate unmet."""
    options = _parse(arguments)
    if options.source is None:
        if options.threads:
            torch.set_num_threads(options.threads)
        report = measure(options, arguments)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        write_report(options.json, report)
    else:
        report = read_report(options.source)
    text = render(report)
    print(text)
    if options.write:
        rewrite_document(options.write, "report", text)
    unmet = [verdict for verdict in check_gates(report.scored) if not verdict.met]
    return int(bool(unmet) and options.check)


def measure(options: argparse.Namespace, arguments: Sequence[str]) -> Report:
    """Run every arm as machine code, the first task eagerly too, and its drawing beside transformers if asked."""
    fast, plain, scored = LLM(options.model, compiled=True), LLM(options.model), list[Scored]()
    for task in options.tasks:
        n = options.n if task == FIRST else options.others
        scored += _score(fast, EvaluateConfig(tasks=(task,), decoders=DECODERS, n=n, steps=BUDGETS), "compiled")
    if FIRST in options.tasks:
        few = EvaluateConfig(tasks=(FIRST,), n=min(options.n, EAGER), steps=(USUAL,))
        scored += _score(plain, few, "eager")
    drawn = None
    if options.against_transformers:
        reference = load_reference(plain.path, str(plain.model.dtype).removeprefix("torch."))
        drawn = draw_both(plain, reference, options.against_transformers)
    weights = sha256((plain.path / "model.safetensors").read_bytes()).hexdigest()[:12]
    return Report(run=describe_run(arguments, "lab") | {"weights": weights}, scored=scored, drawn=drawn)


def _score(llm: LLM, config: EvaluateConfig, kernels: Kernels) -> list[Scored]:
    def follow(answers: Iterable[Answer]) -> Iterable[Answer]:
        console, told = Console(stderr=True), f"{config.tasks[0]}, {kernels}"
        return track(answers, told, config.answers, console=console, disable=not console.is_terminal)

    return list(score_arms(llm, config, kernels, follow))


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--model", default="lab", help="a checkpoint in place of the bundled one, with its drafter beside it"
    )
    parser.add_argument("--tasks", type=names_of(tuple(FAMILIES)), default=tuple(FAMILIES), help="some, with commas")
    parser.add_argument("--n", type=_count, default=PROMPTS, help=f"prompts of {FIRST}")
    parser.add_argument("--others", type=_count, default=OTHERS, help="prompts of each other task")
    parser.add_argument("--threads", type=threads, help="torch's threads; default: torch's own choice")
    parser.add_argument(
        "--against-transformers",
        type=_count,
        nargs="?",
        const=DRAWN,
        metavar="N",
        help=f"let transformers' own generate answer N prompts of {FIRST} too; {DRAWN} unless given",
    )
    parser.add_argument("--json", type=Path, default=Path("runs/lab.json"), help="where to keep what was measured")
    parser.add_argument("--from", dest="source", type=Path, metavar="JSON", help="run nothing, show what is kept there")
    parser.add_argument("--write", type=Path, help="write the report into this document, between its markers")
    parser.add_argument("--check", action="store_true", help="exit with status 1 if anything asked for is unmet")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of prompts; give 2 or more")
    return int(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
