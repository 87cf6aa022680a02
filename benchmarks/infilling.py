"""Blanks of held-out functions, filled in several ways, and what handling the seams of given text does.

python -m benchmarks.infilling --compile --threads 2 --write docs/lab.md
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch

from benchmarks.arguments import threads
from benchmarks.infilling_report import ARMS, Answer, render
from benchmarks.machine import describe_run
from benchmarks.markers import rewrite_document
from mezzotint.decoding.filling import Lengths
from mezzotint.llm import LLM, Blank, SamplingParams
from mezzotint.tasks import FAMILIES, Example
from mezzotint.tasks.infill import MAX_BLANK, whole
from mezzotint.text.parse import Reply
from mezzotint.text.prompt import Chat
from mezzotint.text.seam import Bordered, find_borders
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Receipt

_FAMILY = FAMILIES["infill"]


class _Filled(NamedTuple):
    """What came back for one blank: its text, the tokens that it took, and the cost."""

    text: str
    tokens: int
    receipt: Receipt


def main(arguments: Sequence[str]) -> None:
    """Fill the blanks, print the figures as Markdown and keep every answer."""
    options = _parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    llm = LLM(options.model, compiled=options.compile)
    answers = list(fill_blanks(llm, options.n))
    facts = describe_run(arguments, "infilling")
    text = render(facts, answers)
    print(text)
    if options.json:
        told = {"run": facts, "answers": [asdict(answer) for answer in answers]}
        options.json.write_text(json.dumps(told, allow_nan=False) + "\n", encoding="utf-8")
    if options.write:
        rewrite_document(options.write, "infilling", text)


def fill_blanks(llm: LLM, n: int) -> Iterator[Answer]:
    """Fill the blanks of the first n held-out examples in every way, in turn and every other time in reverse.

    One answer of each before the first, to warm up, is not told.
    """
    first = _FAMILY.generate(0, "test")
    for fill in _WAYS.values():
        fill(llm, first, 0)
    for seed in range(n):
        example = _FAMILY.generate(seed, "test")
        for arm in ARMS if seed % 2 == 0 else ARMS[::-1]:
            started = time.perf_counter()
            filled = _WAYS[arm](llm, example, seed)
            yield _judge(llm, example, seed, arm, filled, time.perf_counter() - started)


def _fill_tokens(llm: LLM, example: Example, seed: int) -> _Filled:
    """As the model was trained: given text on either side as ids of its own."""
    chat = Chat(messages=example.messages, begins=example.begins, ends=example.ends)
    return _generate(llm, chat, SamplingParams(max_tokens=MAX_BLANK, seed=seed))


def _fill_prefix(llm: LLM, example: Example, seed: int) -> _Filled:
    """By ar, which sees what is before and, in the prompt, what lies beyond a canvas."""
    chat = Chat(messages=example.messages, begins=example.begins)
    return _generate(llm, chat, SamplingParams(decoder="ar", temperature=0.0, max_tokens=MAX_BLANK, seed=seed))


def _generate(llm: LLM, chat: Chat, params: SamplingParams) -> _Filled:
    [completion] = llm.generate(chat, params)
    return _Filled(llm.parse(completion).content, completion.receipt.output_tokens, completion.receipt)


def _fill_text(lengths: Lengths) -> Callable[[LLM, Example, int], _Filled]:
    def fill(llm: LLM, example: Example, seed: int) -> _Filled:
        behind = whole(example, "").removeprefix(example.begins)
        document: list[str | Blank] = [example.begins, Blank(max_tokens=MAX_BLANK), behind]
        done = llm.infill(document, SamplingParams(seed=seed), lengths=lengths)
        return _Filled(done.middles[0].text, done.middles[0].tokens, done.receipt)

    return fill


def _fill_fixed(llm: LLM, example: Example, seed: int) -> _Filled:
    """Text whose ids stand as they are on either side, seams or not."""
    with patch("mezzotint.llm.document.find_borders", _find_none):
        return _fill_text("surplus")(llm, example, seed)


def _find_none(text: str, tokenizer: Tokenizer, *, follows: bool, precedes: bool, most: int) -> Bordered:
    return find_borders(text, tokenizer, follows=follows, precedes=precedes, most=0)


_WAYS: dict[str, Callable[[LLM, Example, int], _Filled]] = {
    "tokens": _fill_tokens,
    "fixed": _fill_fixed,
    "surplus": _fill_text("surplus"),
    "candidates": _fill_text("candidates"),
    "ar": _fill_prefix,
}


def _judge(llm: LLM, example: Example, seed: int, arm: str, filled: _Filled, seconds: float) -> Answer:
    assert llm.tokenizer is not None  # it is text that was filled
    assert _FAMILY.accept_continuation is not None
    encode, is_blind = llm.tokenizer.encode_text, arm == "ar"
    wanted, found = example.answer.split(), filled.text.split()
    passes = _FAMILY.accept_continuation if is_blind else _FAMILY.accept
    return Answer(
        seed=seed,
        arm=arm,
        has_lines="\n" in example.answer,
        wanted=example.answer,
        text=filled.text,
        passed=passes(example, Reply(filled.text)),
        exact="".join(found).startswith("".join(wanted)) if is_blind else found == wanted,
        right_length=None if is_blind else len(encode(filled.text)) == len(encode(example.answer)),
        tokens=filled.tokens,
        forwards=filled.receipt.forwards,
        seconds=seconds,
    )


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.infilling", description=about)
    add: Any = parser.add_argument
    add("--model", default="lab", help="a checkpoint in place of the bundled one")
    add("--n", type=int, default=200, help="blanks; default: 200")
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
