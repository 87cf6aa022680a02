"""How long a vocabulary pass takes beside the plain form, its two products alone and the ceilings."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.arguments import threads
from benchmarks.ceilings import measure_ceilings
from benchmarks.machine import describe_run
from benchmarks.peak import peak_growth_bytes
from benchmarks.report import ceilings_table, memory_table, run_table
from benchmarks.subjects import large_config
from benchmarks.timing import as_measured, compare, time_in_turn
from mezzotint.model.vocabulary import Head, full_logits, read_logits, read_vocabulary
from mezzotint.types import Reading

ROWS, WIDTH, VOCABULARY, SOFTCAP = 256, 640, 262_144, 30.0
WARM, COLD = 0.6, 0.4
LIMIT_BYTES = 64_000_000
_CHUNK = 2048  # ids of one product of the two alone
_PRODUCTS, _PASS = "both products alone", "pass, flat rows"

Call = Callable[[int], object]


class Subject(NamedTuple):
    """A bfloat16 head, rows that know little and rows that know their token, and a uniform a row."""

    head: Head
    flat: Tensor
    sure: Tensor
    uniforms: Tensor


def main(arguments: Sequence[str]) -> None:
    """Time the pass in turn with what it stands beside, and print the figures as Markdown."""
    options = _parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    of = subject(options.ids)
    calls = {**passes(of, options.chunk), _PRODUCTS: lambda _: multiply(of)}
    if not options.without_plain:
        calls["plain form, flat rows"] = lambda _: read_plainly(of)
    sizes = f"\n{ROWS} rows, width {WIDTH}, {options.ids} ids, bfloat16\n"
    print(run_table(describe_run(arguments, "vocabulary")), sizes, sep="\n")
    print(times_table(time_in_turn(calls, options.rounds)), flush=True)
    grown = {name: growth(call) for name, call in calls.items()}
    print("", memory_table(grown, LIMIT_BYTES), sep="\n", flush=True)
    ceilings = measure_ceilings(large_config(), torch.bfloat16, of.head.weight.nbytes, seconds=options.ceiling_s)
    print("", ceilings_table(ceilings), sep="\n")


def subject(ids: int) -> Subject:
    """Seeded random weights and rows of hidden states."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.empty(ids, WIDTH).normal_(0, 0.05, generator=generator).bfloat16()
    flat = torch.empty(ROWS, WIDTH).normal_(0, 2, generator=generator).bfloat16()
    sure = weight[torch.randint(ids, (ROWS,), generator=generator)] * 60
    uniforms = torch.rand(ROWS, generator=generator, dtype=torch.float64)
    return Subject(Head(weight, WIDTH**0.5, SOFTCAP), flat, sure, uniforms)


def passes(of: Subject, chunk: int | None) -> dict[str, Call]:
    """The pass in chunks over flat and sure rows, and with less or more to do."""

    def read(hidden: Tensor, proposal_temperature: float, *, with_soft: bool = True) -> Reading:
        return read_vocabulary(
            of.head,
            hidden,
            temperature=WARM,
            proposal_temperature=proposal_temperature,
            uniforms=of.uniforms,
            with_soft=with_soft,
            chunk=chunk,
        )

    return {
        _PASS: lambda _: read(of.flat, WARM),
        "pass, sure rows": lambda _: read(of.sure, WARM),
        "pass, flat rows, argmax for a draw": lambda _: read(of.flat, 0.0),
        "pass, flat rows, two temperatures": lambda _: read(of.flat, COLD),
        "pass, flat rows, no soft embedding": lambda _: read(of.flat, WARM, with_soft=False),
    }


def multiply(of: Subject) -> None:
    """Both products of a pass, and nothing else."""
    for start in range(0, len(of.head.weight), _CHUNK):
        table = of.head.weight[start : start + _CHUNK]
        torch.mm(torch.mm(of.flat, table.T), table)


def read_plainly(of: Subject) -> Reading:
    """What the pass must equal, over all logits at once."""
    return read_logits(
        of.head,
        full_logits(of.head, of.flat),
        temperature=WARM,
        proposal_temperature=WARM,
        uniforms=of.uniforms,
        with_soft=True,
    )


def growth(call: Call) -> int | None:
    """Bytes that a call adds to the process at its peak."""
    return peak_growth_bytes(lambda: call(0))


def times_table(seconds: dict[str, tuple[float, ...]]) -> str:
    """Milliseconds of every call, and how many times longer than both products it takes."""
    products = as_measured(seconds[_PRODUCTS])
    rows = ["| what | ms (least) | ÷ products | 95 % | of minima | n |", "|---|---|---|---|---|---|"]
    for name, values in seconds.items():
        times = as_measured(values)
        ratio = compare(times, products)
        span = f"{ratio.interval.low:.2f}–{ratio.interval.high:.2f}"
        rows.append(
            f"| {name} | {times.median * 1e3:.0f} ({times.minimum * 1e3:.0f}) | {ratio.value:.2f} × | {span} "
            f"| {ratio.of_minima:.2f} × | {len(values)} |"
        )
    return "\n".join(rows)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vocabulary", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="times that everything is measured")
    parser.add_argument("--ids", type=int, default=VOCABULARY, help="size of the vocabulary")
    parser.add_argument("--chunk", type=int, help="ids that a pass computes at once; default: its own choice")
    parser.add_argument("--threads", type=threads, help="torch's threads; default: torch's own choice")
    parser.add_argument("--ceiling-s", type=float, default=0.5, help="seconds for each ceiling")
    parser.add_argument("--without-plain", action="store_true", help="leave out the plain form: it takes 3 GB")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    with torch.inference_mode():
        main(sys.argv[1:])
