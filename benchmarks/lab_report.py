"""The report on the bundled model as Markdown, for docs/lab.md; nothing is run or judged here."""

from collections.abc import Sequence

from benchmarks.distribution import TASK, Drawn
from benchmarks.gates import USUAL, Verdict, check_gates
from benchmarks.lab_scores import Report, Scored
from benchmarks.report import markdown_table, run_table
from benchmarks.two_samples import detectable_difference
from mezzotint.evaluate.interval import Interval, wilson_interval
from mezzotint.evaluate.score import Row

_ALPHA, _POWER = 0.01, 0.9
_CONDITIONS = """\
Held-out split, the weights' own dtype, seed 0; `ar`, `verified` and `mtp` greedy, diffusion with the `report` sampler
at temperature 1. All arms of a task answer the same prompts in turn; compare seconds within a task and a table."""
_SIGNS = """\
Answers in which words stand twice at once, text stands again behind a border of blocks, or the end goes in a circle;
answers without text, and those that were cut at the most tokens allowed."""


def render(report: Report) -> str:
    """All sections."""
    by_kernels = {name: [each for each in report.scored if each.kernels == name] for name in ("compiled", "eager")}
    sections = [
        f"{run_table(report.run)}\n\n{_CONDITIONS}",
        f"### What is asked of it\n\n{gates_table(check_gates(report.scored))}",
    ]
    if by_kernels["compiled"]:
        sections.append(f"### As machine code\n\n{scores_table(by_kernels['compiled'])}")
    if by_kernels["eager"]:
        sections.append(f"### Eager\n\n{scores_table(by_kernels['eager'])}")
    if by_kernels["compiled"]:
        sections.append(f"### Answers that went wrong in the writing\n\n{signs_table(by_kernels['compiled'])}")
    if report.drawn is not None:
        sections.append(f"### Beside transformers\n\n{likeness(report.drawn)}")
    return "\n\n".join(sections)


def gates_table(verdicts: Sequence[Verdict]) -> str:
    """Each gate with its figure, and how many are met."""
    met = sum(verdict.met for verdict in verdicts)
    head = ["what", "asked", "goal", "found", "95 %", "n", ""]
    table = markdown_table(head, [_gate_row(verdict) for verdict in verdicts])
    return f"{met} of {len(verdicts)} are met.\n\n{table}"


def _gate_row(verdict: Verdict) -> list[str]:
    gate, finding = verdict
    told = [gate.says, gate.limit, gate.goal]
    if finding is None:
        return [*told, "not measured", "", "", "**unmet**"]
    outcome = "met" if finding.met else "**unmet**"
    if finding.met and gate.goal:
        outcome = "met, goal too" if finding.reaches_goal else "met, goal not"
    return [*told, finding.figure, finding.interval, str(finding.n), outcome]


def scores_table(scored: Sequence[Scored]) -> str:
    """A row for each task, decoder and budget."""
    head = ["task", "decoder", "budget", "n", "passed", "95 %", "tokens per forward", "steps", "seconds"]
    return markdown_table(head, [_score_row(each.row) for each in scored])


def _score_row(row: Row) -> list[str]:
    canvases, drafts = row.decoder == "diffusion", row.decoder in ("diffusion", "verified")
    return [
        f"`{row.task}`",
        row.decoder,
        str(row.step_budget) if canvases else "–",
        str(row.n),
        _percent(row.pass_rate),
        _interval(row.interval),
        "1" if row.decoder == "ar" else f"{row.tokens_per_forward:.1f}",
        f"{row.steps:.1f}" if drafts else "–",
        f"{row.seconds:.3f}",
    ]


def signs_table(scored: Sequence[Scored]) -> str:
    """How many answers show a sign, by family: of diffusion at the checkpoint's own budget, and of ar."""
    rows = [each.row for each in scored if each.row.decoder == "ar" or _is_usual(each.row)]
    head = ["task", "decoder", "n", "stutter", "seam", "loop", "empty", "cut"]
    counted = [[row.stutters, row.seams, row.loops, row.empty, row.truncated] for row in rows]
    cells = [
        [f"`{row.task}`", row.decoder, str(row.n), *(str(round(share * row.n)) for share in shares)]
        for row, shares in zip(rows, counted, strict=True)
    ]
    return f"{_SIGNS}\n\n{markdown_table(head, cells)}"


def _is_usual(row: Row) -> bool:
    return row.decoder == "diffusion" and row.step_budget == USUAL


def likeness(drawn: Drawn) -> str:
    """What both sides' answers say of their distributions, and what such a test can see."""
    n, rates, steps = len(drawn.ours.accepted), drawn.rates, drawn.steps
    rows = []
    for name, side in (("Mezzotint", drawn.ours), ("transformers' `generate`", drawn.theirs)):
        passed = sum(side.accepted)
        mean = sum(side.steps) / n
        rows.append([name, str(n), _percent(passed / n), _interval(wilson_interval(passed, n)), f"{mean:.2f}"])
    table = markdown_table(["side", "n", "passed", "95 %", "denoising steps"], rows)
    # The rate of both; two passes and two failures more, lest a test seem able to see everything at 0 or 1.
    rate = (sum(sum(side.accepted) for side in drawn) + 2) / (2 * n + 4)
    apart = 100 * detectable_difference(rate, n, n, alpha=_ALPHA, power=_POWER)
    points = f"{100 * rates.interval.low:+.1f} to {100 * rates.interval.high:+.1f}"
    span = f"{steps.interval.low:+.2f} to {steps.interval.high:+.2f}"
    return f"""\
The same held-out prompts of `{TASK}`, the checkpoint's own sampler, each side with random numbers of its own.

{table}

Ours minus theirs: {100 * rates.difference:+.1f} points passed (95 %: {points}; equal sides lie as
far apart with chance {rates.p_value:.2f}), {steps.difference:+.2f} steps ({span}; {steps.p_value:.2f}). A test at
{100 * _ALPHA:g} % finds nine in ten of rates that are {apart:.1f} points apart."""


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0 < share < 1 else f"{100 * share:.0f} %"


def _interval(interval: Interval) -> str:
    return f"{100 * interval.low:.1f} – {100 * interval.high:.1f}"
