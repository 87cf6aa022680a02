"""A sweep over concurrencies as Markdown tables and as JSON; measures nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any

from benchmarks.crossover import FIGURES, Answers, Curve, ratio_curve
from benchmarks.report import markdown_table
from benchmarks.sweep import Cell

_CERTAIN = 200  # answers below which a 95th percentile rests on fewer than ten of them

Cells = Mapping[int, Mapping[str, Cell]]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two decoders by figure."""

    over: str
    under: str
    curves: Mapping[str, Curve]

    @property
    def name(self) -> str:
        """Which is divided by which."""
        return f"{self.over} ÷ {self.under}"


def compare_decoders(cells: Cells, under: str = "ar") -> list[Comparison]:
    """Every decoder beside `under`; nothing where that was not measured."""
    decoders = list(next(iter(cells.values())))
    if under not in decoders:
        return []
    found = []
    for over in decoders:
        if over != under:
            ours, theirs = (_answers(cells, name) for name in (over, under))
            curves = {name: ratio_curve(ours, theirs, figure) for name, figure in FIGURES.items()}
            found.append(Comparison(over=over, under=under, curves=curves))
    return found


def rates_table(cells: Cells) -> str:
    """What every decoder does at every concurrency."""
    head = "concurrency | decoder | tokens/s | accepted/s | tokens/s a user | p50, ms | p95, ms"
    head += " | tokens a forward | rows a forward | accepted of n | budget"
    rows = [[str(level), name, *_rates(cell)] for level, row in cells.items() for name, cell in row.items()]
    n = next(iter(next(iter(cells.values())).values())).rates.n
    table = markdown_table(head.split(" | "), rows)
    if n >= _CERTAIN:
        return table
    return f"{table}\n\nn = {n}: a 95th percentile rests on {max(1, n // 20)} answers, read it loosely."


def ratios_table(comparisons: Sequence[Comparison]) -> str:
    """Ratios with their intervals of 95 %, by concurrency."""
    rows = []
    for each in comparisons:
        for places in zip(*(curve.points for curve in each.curves.values()), strict=True):
            ratios = [f"{point.ratio:.2f} ({point.interval.low:.2f}–{point.interval.high:.2f})" for point in places]
            rows.append([str(places[0].concurrency), each.name, *ratios])
    return markdown_table(["concurrency", "ratio", *FIGURES], rows)


def crossings_table(comparisons: Sequence[Comparison]) -> str:
    """Where ratios pass 1."""
    rows = [[each.name, *(say_crossing(curve) for curve in each.curves.values())] for each in comparisons]
    return markdown_table(["passes 1 at a concurrency of", *FIGURES], rows)


def say_crossing(curve: Curve) -> str:
    """Where a ratio passes 1 and its interval, or that it does so nowhere in range."""
    first, last = curve.points[0], curve.points[-1]
    if curve.crossing is None:
        side = "above" if first.ratio > 1 else "below"
        return f"none in range ({side} 1 from {first.concurrency} to {last.concurrency})"
    low, high = curve.crossing_interval
    begins = f"{low:.1f}" if low else f"< {first.concurrency}"
    ends = f"> {last.concurrency}" if isinf(high) else f"{high:.1f}"
    return f"{curve.crossing:.1f} ({begins} to {ends}), {'above' if first.ratio > 1 else 'below'} 1 before it"


def as_json(cells: Cells, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """All figures, and of each answer what they were computed from."""
    return {
        "points": [
            {"concurrency": level, "decoder": name, **cell.rates._asdict(), "answers": _lists(cell.answers)}
            for level, row in cells.items()
            for name, cell in row.items()
        ],
        "ratios": [
            {"ratio": each.name, "figure": figure, **point._asdict()}
            for each in comparisons
            for figure, curve in each.curves.items()
            for point in curve.points
        ],
        "crossings": [
            {"ratio": each.name, "figure": figure, "at": curve.crossing, "interval": _ends(curve)}
            for each in comparisons
            for figure, curve in each.curves.items()
        ],
    }


def _answers(cells: Cells, decoder: str) -> dict[int, Answers]:
    return {level: row[decoder].answers for level, row in cells.items()}


def _rates(cell: Cell) -> list[str]:
    rates = cell.rates
    return [
        f"{rates.tokens_per_s:.0f}",
        f"{rates.accepted_per_s:.2f}",
        f"{rates.user_tokens_per_s:.0f}",
        f"{rates.p50_s * 1e3:.0f}",
        f"{rates.p95_s * 1e3:.0f}",
        f"{rates.tokens_per_forward:.2f}",
        f"{rates.rows_per_forward:.1f}",
        f"{rates.accepted} of {rates.n}",
        str(rates.step_budget or ""),
    ]


def _lists(answers: Answers) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in answers._asdict().items()}


def _ends(curve: Curve) -> list[float | None]:
    """Ends of a crossing's interval; None for one behind the last concurrency, 0 for one before the first."""
    return [None if isinf(end) else end for end in curve.crossing_interval]
