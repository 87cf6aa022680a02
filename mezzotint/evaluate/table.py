"""Writes rows for people: one aligned line a row, and what the columns mean; computes nothing."""

from collections.abc import Sequence

from mezzotint.evaluate.interval import Interval
from mezzotint.evaluate.score import Row

_HEADS = (
    "task",
    "decoder",
    "sampler",
    "preset",
    "form",
    "T",
    "budget",
    "n",
    "pass",
    "95 %",
    "tok/forward",
    "95 %",
    "steps",
    "seconds",
    "tokens",
    "over/forced",
    "hits",
    "stutter/seam/loop",
    "empty",
    "cut",
    "mended",
)
_WORDS = 5  # columns of words stand left, numbers right
LEGEND = """\
budget: denoising steps that a block may use; steps: those it used, mean; hits: blocks that used them all.
pass: answers accepted, Wilson interval. tok/forward: output tokens ÷ forwards after prefill, bootstrapped.
seconds (prefill included), tokens: mean an answer. over/forced: tokens of it where a grammar refused the likeliest,
and where it left no choice. empty: answers without text; cut: ended by max_tokens; mended: a gate did something.
stutter/seam/loop: answers that say words twice at once, say text again behind a border of blocks, end in a circle."""


def format_table(rows: Sequence[Row]) -> str:
    """The rows under their heads, columns as wide as their widest cell, and the legend."""
    lines = [_HEADS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join([*(_align(line, widths) for line in lines), "", LEGEND])


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.task,
        row.decoder,
        row.sampler or "-",
        row.preset or "-",
        row.form,
        f"{row.temperature:g}",
        str(row.step_budget),
        str(row.n),
        f"{row.pass_rate:.1%}",
        _span(row.interval, 100, 1),
        f"{row.tokens_per_forward:.2f}",
        _span(row.tokens_per_forward_interval, 1, 2),
        f"{row.steps:.1f}",
        f"{row.seconds:.3f}",
        f"{row.output_tokens:.1f}",
        f"{row.overridden:.2f}/{row.forced:.1f}",
        f"{row.budget_hits:.0%}",
        "/".join(f"{share:.0%}" for share in (row.stutters, row.seams, row.loops)),
        f"{row.empty:.0%}",
        f"{row.truncated:.0%}",
        f"{row.mended:.0%}",
    )


def _span(interval: Interval, scale: int, digits: int) -> str:
    return f"{interval.low * scale:.{digits}f}-{interval.high * scale:.{digits}f}"


def _align(cells: Sequence[str], widths: Sequence[int]) -> str:
    words = [cell.ljust(width) for cell, width in zip(cells[:_WORDS], widths[:_WORDS], strict=True)]
    numbers = [cell.rjust(width) for cell, width in zip(cells[_WORDS:], widths[_WORDS:], strict=True)]
    return "  ".join([*words, *numbers])
