"""Results as text for a terminal and as an object for programs; the page is made by report."""

from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any

from mezzotint.bench.figures import MEANINGS, Figure
from mezzotint.bench.results import Results, Row, find_warnings
from mezzotint.bench.store import Run

_COLUMNS = (
    "acceptance_rate",
    "first_try_rate",
    "tta_p50",
    "tta_p95",
    "e2e_p50",
    "ttfc_p50",
    "ntpot_p50",
    "accepted_goodput",
    "tpf",
    "steps_p50",
)


def format_summary(run: Run, results: Results) -> str:
    """A line for each arm and load, crossovers, what other arms beat, and what the columns mean."""
    if not results.rows:
        return f"nothing of {run.name} is finished yet; {results.missing} parts are to be measured"
    heads = ["arm", "load", "n", "budget", *_COLUMNS]
    lines = [_cells(row) for row in results.rows]
    widths = [max(len(line[at]) for line in [heads, *lines]) for at in range(len(heads))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in [heads, *lines]]
    told = [line.rstrip() for line in table]
    if missing := results.missing:
        told.append(f"\n{missing} parts are not measured yet; the same command goes on")
    for comparison in results.comparisons:
        what = "median ratio of time to accepted" if comparison.measure == "median" else "time spent an accepted task"
        told.append(f"\n{comparison.first} against {comparison.second}, {what}: {comparison.crossover.told}")
        told += [f"  {at.load:g}: {_span(at.ratio, at.interval)}" for at in comparison.crossover.points]
    told += [f"\nfailed of {row.arm} at {row.load}: {_count(row.errors)}" for row in results.rows if row.errors]
    told += [f"\nmind: {warning}" for warning in find_warnings(results)]
    if results.dominated:
        told.append("")
        told += [f"{each.arm} at {each.load} is beaten by {each.by}" for each in results.dominated]
    told += ["", *(f"{name}: {MEANINGS[name][1]}" for name in _COLUMNS)]
    return "\n".join(told)


def _count(errors: Mapping[str, int]) -> str:
    return ", ".join(f"{category} × {number}" for category, number in errors.items())


def as_object(run: Run, results: Results) -> dict[str, Any]:
    """All of it; infinite ends of intervals are None."""
    return {
        "run": run.name,
        "verb": run.verb,
        **run.told,
        "missing": results.missing,
        "warnings": find_warnings(results),
        "rows": [_row(row) for row in results.rows],
        "crossovers": [
            {
                "first": each.first,
                "second": each.second,
                "measure": each.measure,
                "told": each.crossover.told,
                "load": _finite(each.crossover.load),
                "interval": [_finite(end) for end in each.crossover.interval],
                "points": [
                    {"load": at.load, "ratio": _finite(at.ratio), "interval": [_finite(end) for end in at.interval]}
                    for at in each.crossover.points
                ],
            }
            for each in results.comparisons
        ],
        "dominated": [each._asdict() for each in results.dominated],
    }


def show(figure: Figure | None) -> str:
    """A figure in few characters, its interval aside."""
    if figure is None:
        return "n/a"
    text = show_number(figure.value, figure.unit)
    return f"{text} ({figure.note})" if figure.note else text


def show_number(value: float, unit: str) -> str:
    """A number with three digits that count; shares in %."""
    if isinf(value):
        return "∞"
    return f"{value:.1%}" if unit == "%" else f"{value:.3g}"


def _cells(row: Row) -> list[str]:
    figures = row.figures
    budget = next((figures[name].step_budget for name in ("e2e_p50", "expected_tta") if name in figures), "-")
    return [row.arm, str(row.load), str(row.n), budget, *(show(figures.get(name)) for name in _COLUMNS)]


def _row(row: Row) -> dict[str, Any]:
    return {
        "arm": row.arm,
        "load": str(row.load),
        "n": row.n,
        "figures": {name: _figure(figure) for name, figure in row.figures.items()},
        "outcomes": dict(row.outcomes),
        "errors": dict(row.errors),
        "routed": dict(row.routed),
        "parts": dict(row.parts),
        "fingerprints": {
            name: {"digest": each.digest, "blocks": {str(at): count for at, count in each.blocks.items()}}
            for name, each in row.fingerprints.items()
        },
    }


def _figure(figure: Figure) -> Mapping[str, Any]:
    interval = None if figure.interval is None else [_finite(end) for end in figure.interval]
    return {
        "value": _finite(figure.value),
        "unit": figure.unit,
        "semantics": figure.semantics,
        "n": figure.n,
        "interval": interval,
        "step_budget": figure.step_budget,
        "note": figure.note,
    }


def _span(value: float, interval: Sequence[float]) -> str:
    low, high = interval
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def _finite(value: float) -> float | None:
    return None if isinf(value) else value
