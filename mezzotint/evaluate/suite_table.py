"""Writes what suites gave for people: aligned lines with a legend, and sentences on the judge; computes nothing."""

from collections.abc import Sequence
from typing import Any

from mezzotint.evaluate.assess import Assessment, Comparison
from mezzotint.evaluate.interval import Interval
from mezzotint.evaluate.question import Suite
from mezzotint.evaluate.total import SuiteRow
from mezzotint.text.detect import KINDS

_WORDS = 6  # columns of words stand left, numbers right
LEGEND = f"""\
T: temperature. budget: denoising steps that a block may use; steps: those it used, mean.
pass@1: accepted answers, mean over tasks, with the interval of 95 % that other tasks would give. pass@k, pass^k: at
least one, all of k answers to a task accepted. tok/forward: output tokens ÷ forwards after prefill. seconds, tokens:
mean an answer. cut: ended by max_tokens. unscored: no verdict could be had; errors: no answer; neither is in a rate.
signs: answers with {"/".join(KINDS)}."""


def format_rows(rows: Sequence[SuiteRow]) -> str:
    """The rows under their heads, columns as wide as their widest cell, and the legend."""
    heads = "suite,model,decoder,sampler,preset,form,T,budget,tasks,epochs,pass@1,95 %,k,pass@k,pass^k,tok/forward"
    lines = [[*heads.split(","), "steps", "seconds", "tokens", "signs", "cut", "unscored", "errors"]]
    lines += [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join([*(_align(line, widths) for line in lines), "", LEGEND])


def format_notes(suite: Suite) -> str:
    """What a reader should know of a suite; empty where there is nothing."""
    left_out: dict[str, list[str]] = {}
    for id, reason in suite.skipped.items():
        left_out.setdefault(reason, []).append(id)
    skipped = [f"{suite.name}: left out {', '.join(ids)}: {reason}" for reason, ids in left_out.items()]
    return "\n".join([*skipped, *([f"{suite.name}: {suite.note}"] if suite.note else [])])


def format_assessment(told: Assessment) -> str:
    """Sentences on what a judge gave, and on the judge."""
    lines = [
        f"judge: mean grade {_number(told.mean_grade, 2)}, {_share(told.accepted)} of {told.answers} answers accepted; "
        f"{told.unscored} gradings could not be read"
    ]
    if told.compared:
        lines.append(
            f"judge and verifiers agree on {_share(told.agreement)} of {told.compared} answers "
            f"(95 %: {_span(told.agreement_interval)}), kappa {_number(told.kappa, 2)}"
        )
    if told.retests:
        lines.append(
            f"asked {told.retests + 1} times, the judge changes its verdict on {_share(told.flips)} of the answers; "
            f"two of its grades differ by {_number(told.spread, 2)}"
        )
    return "\n".join(lines)


def format_comparison(told: Comparison) -> str:
    """One sentence on how answers compare."""
    return (
        f"against the other answers: {told.wins} better, {told.ties} alike ({told.swayed} of them only because the "
        f"judge follows their order), {told.losses} worse, {told.unscored} verdicts could not be read; preferred "
        f"{_share(told.preference)} (95 %: {_span(told.interval)})"
    )


def _cells(row: SuiteRow) -> list[str]:
    return [
        row.suite,
        row.model,
        row.decoder or "-",
        row.sampler or "-",
        row.preset or "-",
        row.form,
        _number(row.temperature, None),
        _number(row.step_budget, None),
        str(row.tasks),
        str(row.epochs),
        _share(row.pass_rate),
        _span(row.interval),
        str(row.k),
        _share(row.pass_at_k),
        _share(row.pass_all_k),
        _number(row.tokens_per_forward, 2),
        _number(row.steps, 1),
        _number(row.seconds, 3),
        _number(row.output_tokens, 1),
        "/".join(f"{row.signs[kind]:.0%}" for kind in KINDS),
        f"{row.truncated:.0%}",
        str(row.unscored),
        str(row.errors),
    ]


def _number(value: Any, digits: int | None) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if digits is None else f"{value:.{digits}f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _span(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low * 100:.1f}-{interval.high * 100:.1f}"


def _align(cells: Sequence[str], widths: Sequence[int]) -> str:
    words = [cell.ljust(width) for cell, width in zip(cells[:_WORDS], widths[:_WORDS], strict=True)]
    numbers = [cell.rjust(width) for cell, width in zip(cells[_WORDS:], widths[_WORDS:], strict=True)]
    return "  ".join([*words, *numbers])
