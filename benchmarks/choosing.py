"""How often the likeliest of several answers is the right one, and whether its probability says so.

python -m benchmarks.choosing --compile --threads 2 --write docs/lab.md
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.arguments import threads
from benchmarks.choosing_report import DECODERS, Answer, render
from benchmarks.machine import describe_run
from benchmarks.markers import rewrite_document
from mezzotint.llm import LLM
from mezzotint.llm.choose import ChoosingDecoder
from mezzotint.tasks import FAMILIES, Example


def main(arguments: Sequence[str]) -> None:
    """Let both decoders choose, print the figures as Markdown and keep every answer."""
    options = _parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    llm = LLM(options.model, compiled=options.compile)
    answers = list(choose_all(llm, options.n))
    facts = describe_run(arguments, "choosing")
    text = render(facts, answers)
    print(text)
    if options.json:
        told = {"run": facts, "answers": [asdict(answer) for answer in answers]}
        options.json.write_text(json.dumps(told, allow_nan=False) + "\n", encoding="utf-8")
    if options.write:
        rewrite_document(options.write, "choosing", text)


def choose_all(llm: LLM, n: int) -> Iterator[Answer]:
    """Let every decoder choose among the labels of the first n held-out examples."""
    for seed in range(n):
        example = FAMILIES["choose"].generate(seed, "test")
        for decoder in DECODERS:
            yield _choose(llm, example, seed, decoder)


def _choose(llm: LLM, example: Example, seed: int, decoder: ChoosingDecoder) -> Answer:
    assert example.schema is not None  # the labels stand in it
    labels = list(example.schema["enum"])
    with ExitStack() as stack:
        forwards = [
            stack.enter_context(patch.object(llm.model, name, wraps=getattr(llm.model, name)))
            for name in ("encode", "denoise")
        ]
        noise = seed if decoder == "diffusion" else None
        found = llm.choose(list(example.messages), labels, decoder=decoder, seed=noise)
    return Answer(
        seed=seed,
        decoder=decoder,
        variant=example.variant,
        probabilities=tuple(choice.probability for choice in found),
        right=labels.index(example.answer),
        forwards=sum(forward.call_count for forward in forwards) - 1,  # the first is the prompt's
    )


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choosing", description=about)
    add: Any = parser.add_argument
    add("--model", default="lab", help="a checkpoint in place of the bundled one")
    add("--n", type=int, default=500, help="prompts; default: 500")
    add("--threads", type=threads, help="torch's threads; default: torch's own choice")
    add("--compile", action="store_true", help="as machine code")
    add("--json", type=Path, help="a file for every answer")
    add("--write", type=Path, help="write the figures into this document, between its markers")
    options = parser.parse_args(arguments)
    if options.n < 1:
        parser.error(f"--n is {options.n}; give 1 or more")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
