"""How many schemas of the public suite become grammars, and how long building, compiling and following them takes.

With --step lab or large (270M-like, random weights) also beside a denoising step of that model.
"""

import argparse
import json
import lzma
import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any, TypeVar

import torch
from llguidance import LLMatcher

import mezzotint
from benchmarks.grammar_step import step_seconds, step_table
from benchmarks.machine import describe_run
from benchmarks.report import run_table
from mezzotint.decoding.guide import Guide
from mezzotint.decoding.limits import Limits
from mezzotint.decoding.params import SamplingParams
from mezzotint.text.grammar import Grammar, Grammars
from mezzotint.text.matcher import Matcher
from mezzotint.text.tokenizer import Tokenizer

LAB = Path(mezzotint.__file__).parent / "checkpoints" / "lab"
DRAFT_NAMES = {f"draft{year}": f"http://json-schema.org/draft-0{year}/schema#" for year in (3, 4, 6, 7)}
STEP_NAMES = {"lab": "lab", "large": "the 270M-like model"}
VALIDATED = 55  # ids, a long draft's
_ROOM = 300  # tokens of an answer

T = TypeVar("T")
Seconds = defaultdict[str, list[float]]


def main(arguments: Sequence[str]) -> None:
    """Compile the whole suite, walk through what compiled, and print the figures as Markdown."""
    options = _parse(arguments)
    seconds: Seconds = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        directory = LAB if options.tokenizer == "lab" else _unpack(options.data, Path(folder))
        tokenizer = Tokenizer.from_directory(directory)
    grammars = _time(seconds, "read the vocabulary", partial(Grammars, tokenizer))
    schemas = list(_read_suite(options.data))
    compiled: dict[str, list[Grammar]] = defaultdict(list)
    for draft, schema in schemas:
        try:
            compiled[draft].append(_time(seconds, "narrow and compile", partial(grammars.from_schema, schema)))
        except ValueError:
            continue
    everything = [grammar for accepted in compiled.values() for grammar in accepted]
    for seed, grammar in enumerate(Random(0).sample(everything, min(options.walks, len(everything)))):
        _walk(grammar.start(), Random(seed), tokenizer.vocab_size, seconds)
    print(run_table(describe_run(arguments, "grammar")), f"\n{tokenizer.vocab_size} ids\n", sep="\n")
    print(_share_table(schemas, {draft: len(accepted) for draft, accepted in compiled.items()}))
    print("", _times_table(seconds), sep="\n", flush=True)
    if options.step:
        with tempfile.TemporaryDirectory() as folder:
            step = step_seconds(options.step, Path(folder) / "model", rounds=options.rounds, compiled=options.compiled)
        print("", step_table(seconds, STEP_NAMES[options.step], step), sep="\n")


def _walk(place: Matcher, rng: Random, vocab_size: int, seconds: Seconds) -> None:
    """Time every question at up to thirty places, random ones of an answer."""
    limits = Limits(vocab_size=vocab_size, canvas_length=256, max_positions=4096, end_ids=(1,))
    logits = torch.zeros(vocab_size)
    for _ in range(30):
        forced = _time(seconds, "forced", place.forced)
        allowed = _time(seconds, "mask", place.allowed)
        if any(allowed):
            guide = Guide([0], SamplingParams(decoder="ar", max_tokens=_ROOM), 0, limits, place)
            _time(seconds, "mask on the logits", partial(guide.mask, logits))
        proposals = [*forced, *rng.choices(range(vocab_size), k=VALIDATED)][:VALIDATED]
        _time(seconds, "count_valid, random ids", partial(place.count_valid, proposals))
        _time(seconds, "copy", place.copy)
        closure = _time(seconds, "closure", partial(place.closure, _ROOM))
        if closure:
            _time(seconds, "count_valid, valid ids", partial(place.count_valid, closure[:VALIDATED]))
        ids = forced or [id for id in rng.choices(range(vocab_size), k=2_000) if allowed[id // 8] >> id % 8 & 1][:1]
        if not (ids := ids or (closure or [])[:1]):
            return
        place.consume(ids)


def _share_table(schemas: list[tuple[str, Any]], ours: dict[str, int]) -> str:
    alone: Counter[str] = Counter()
    for draft, schema in schemas:
        if isinstance(schema, dict):
            alone[draft] += not LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(json.dumps(schema)))
    total = Counter(draft for draft, _ in schemas)
    lines = ["| draft | schemas | accepted | by llguidance alone |", "|---|---|---|---|"]
    lines += [f"| {draft} | {total[draft]} | {ours.get(draft, 0)} | {alone[draft]} |" for draft in sorted(total)]
    sums = (total.total(), sum(ours.values()), alone.total())
    shares = [f"{count} ({count / sums[0]:.1%})" for count in sums[1:]]
    return "\n".join([*lines, f"| all | {sums[0]} | {' | '.join(shares)} |"])


def _times_table(seconds: Seconds) -> str:
    lines = ["| ms | times | median | mean | longest |", "|---|---|---|---|---|"]
    for name, values in seconds.items():
        figures = " | ".join(f"{each * 1e3:.3g}" for each in (median(values), mean(values), max(values)))
        lines.append(f"| {name} | {len(values)} | {figures} |")
    return "\n".join(lines)


def _time(seconds: Seconds, name: str, call: Callable[[], T]) -> T:
    started = time.perf_counter()
    try:
        return call()
    finally:
        seconds[name].append(time.perf_counter() - started)


def _read_suite(data: Path) -> Iterator[tuple[str, Any]]:
    """Draft and schema of each group; older schemas do not name their draft, so it is added."""
    with lzma.open(data / "json_schema_test_suite.jsonl.xz", "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            draft, schema = record["file"].split("/")[0], record["schema"]
            if isinstance(schema, dict) and draft in DRAFT_NAMES:
                schema = {"$schema": DRAFT_NAMES[draft], **schema}
            yield draft, schema


def _unpack(data: Path, folder: Path) -> Path:
    (folder / "tokenizer.json").write_bytes(lzma.decompress((data / "gemma4_tokenizer.json.xz").read_bytes()))
    return folder


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grammar", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokenizer", choices=("lab", "gemma"), default="lab")
    parser.add_argument("--walks", type=int, default=200, help="grammars that are followed")
    parser.add_argument("--step", choices=STEP_NAMES, help="a model beside whose denoising step a grammar is put")
    parser.add_argument("--rounds", type=int, default=5, help="times that this step is measured")
    parser.add_argument("--compiled", action="store_true", help="run that model as machine code")
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("MEZZOTINT_DATA"), help="the folder that holds MANIFEST.json"
    )
    options = parser.parse_args(arguments)
    if options.data is None or not Path(options.data, "MANIFEST.json").is_file():
        parser.error("--data names no folder with MANIFEST.json; give it, or set MEZZOTINT_DATA")
    return options


if __name__ == "__main__":
    main(sys.argv[1:])
