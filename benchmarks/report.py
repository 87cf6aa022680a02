"""The figures as Markdown tables, ready to be pasted into docs/benchmarks.md; measures nothing."""

from collections.abc import Mapping, Sequence

from benchmarks.bound import Costs
from benchmarks.ceilings import Ceilings
from benchmarks.parts import Split
from benchmarks.sides import Agreement, Sides
from benchmarks.timing import Times, compare


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells as a table."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows])


def run_table(facts: Mapping[str, str]) -> str:
    """Command, machine, versions and commit."""
    return markdown_table(["run", ""], [[name, fact] for name, fact in facts.items()])


def ratio_table(rows: Sequence[tuple[str, Sides, float | None]]) -> str:
    """What was timed on both sides, and how many times longer transformers takes; a target is the least."""
    head = ["what", "transformers, ms", "ours, ms", "ratio", "95 %", "of minima", "n", "target"]
    return markdown_table(head, [_ratio_row(*row) for row in rows])


def forwards_table(step: Sides, token: Sides) -> str:
    """What a denoising step costs in autoregressive steps, on either side."""
    head = ["side", "denoising step, ms", "AR step, ms", "step ÷ AR step", "95 %", "n"]
    rows = []
    for name in ("ours", "theirs"):
        over, under = getattr(step, name), getattr(token, name)
        ratio = compare(over, under)
        span = f"{ratio.interval.low:.1f}–{ratio.interval.high:.1f}"
        rows.append([_SIDES[name], _ms(over), _ms(under), f"{ratio.value:.1f}", span, str(len(over.values))])
    return markdown_table(head, rows)


def memory_table(growth: Mapping[str, int | None], limit_bytes: int) -> str:
    """Highest growth of the process by what was called; the limit is for the first of them."""
    rows = [
        [name, "not told by this system" if count is None else f"{count / 1e6:.0f}"] for name, count in growth.items()
    ]
    for index, row in enumerate(rows):
        row.append("" if index else f"< {limit_bytes / 1e6:.0f}")
    return markdown_table(["memory at the peak", "MB", "target"], rows)


def ceilings_table(ceilings: Ceilings) -> str:
    """The best that this machine did, alone, in the same process."""
    rows = [
        [f"product {shape.rows} × {shape.inner} × {shape.columns}", f"{rate / 1e9:.0f} GFLOP/s"]
        for shape, rate in ceilings.products.items()
    ]
    rows.append(["stream as long as the weights read", f"{ceilings.bytes_per_s / 1e9:.1f} GB/s"])
    rows += [[name, f"{rate / 1e9:.2f} G/s"] for name, rate in ceilings.elements_per_s.items()]
    return markdown_table(["ceiling", ""], rows)


def share_table(costs: Costs, ceilings: Ceilings, split: Split) -> str:
    """What each part must take by the ceilings, what it takes, and the ratio of the two."""
    rows, bounds = [], {str(part): cost.bound_s(ceilings) for part, cost in costs.items()}
    work = {str(part): cost for part, cost in costs.items()}
    for part in [*work, *(name for name in split.parts_s if name not in work)]:
        cost, bound, taken = work.get(part), bounds.get(part, 0.0), split.parts_s.get(part)
        counts = ["", "", ""]
        if cost:
            elements = sum(cost.elements.values())
            counts = [f"{cost.flop / 1e9:.3f}", f"{cost.bytes / 1e6:.1f}", f"{elements / 1e6:.3f}"]
        rows.append([part, *counts, *_share(bound, taken)])
    rows.append(["whole step", "", "", "", *_share(sum(bounds.values()), split.median_s)])
    head = ["part", "GFLOP", "MB", "M elements", "bound, ms", "taken, ms", "share"]
    return markdown_table(head, rows)


def agreement_line(dtype: str, agreement: Agreement) -> str:
    """How near the two sides' numbers are, so that the times are those of one computation."""
    return (
        f"Same weights: {dtype} logits of a first step differ by at most {agreement.furthest:.1g}; equal are "
        f"their argmax at {agreement.same_argmax:.1%} of positions and {agreement.same_tokens} of "
        f"{agreement.tokens} greedy tokens."
    )


_SIDES = {"ours": "ours", "theirs": "transformers"}


def _ratio_row(what: str, sides: Sides, target: float | None) -> list[str]:
    ratio = compare(sides.theirs, sides.ours)
    span = f"{ratio.interval.low:.2f}–{ratio.interval.high:.2f}"
    numbers = [f"{ratio.value:.2f} ×", span, f"{ratio.of_minima:.2f} ×", str(len(sides.ours.values))]
    return [what, _ms(sides.theirs), _ms(sides.ours), *numbers, "" if target is None else f"≥ {target:g} ×"]


def _ms(times: Times) -> str:
    return f"{times.median * 1e3:.2f} (least {times.minimum * 1e3:.2f})"


def _share(bound_s: float, taken_s: float | None) -> list[str]:
    share = f"{bound_s / taken_s:.1%}" if bound_s and taken_s and taken_s > 0 else ""
    return [f"{bound_s * 1e3:.3f}" if bound_s else "", "" if taken_s is None else f"{taken_s * 1e3:.3f}", share]
