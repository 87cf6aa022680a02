"""The deployment matrix: what to know of each arm before it is deployed, in six groups; makes no figures."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mezzotint.bench.figures import LATENCIES, MEANINGS, Figure
from mezzotint.bench.results import Results, Row
from mezzotint.bench.summary import show, show_number

GROUPS: dict[str, tuple[str, ...]] = {
    "quality": ("acceptance_rate", "first_try_rate", "rescue_rate", "attempts_per_accepted"),
    "latency": (
        "tta_p50",
        "tta_p95",
        "tta_censored_p50",
        "tta_censored_p95",
        "expected_tta",
        "hop_tta_p50",
        "plan_tta_p50",
        "tool_tta_p50",
        "e2e_p50",
        "e2e_p95",
        "ttfc_p50",
        "ttfc_p95",
        "usable_p50",
        "icl_p50",
        "icl_p95",
        "ntpot_p50",
        "tpot_p50",
        "block_latency",
        "verification_share",
        "residual_share",
    ),
    "traffic": (
        "accepted_goodput",
        "task_rate",
        "output_rate",
        "prompt_tokens",
        "output_tokens",
        "cached_share",
        "dispatch_p50",
        "dispatch_p95",
        "dispatch_share",
    ),
    "efficiency": (
        "cost_per_accepted",
        "tpf",
        "e2e_rate_p50",
        "blocks",
        "canvas_utilisation",
        "steps_p50",
        "steps_p95",
        "budget_hit_rate",
        "early_halt_rate",
    ),
    "stability": (
        "retry_rate",
        "error_rate",
        "timeout_rate",
        "drop_rate",
        "malformed_rate",
        "empty_rate",
        "truncation_rate",
        "stutter_rate",
        "loop_rate",
        "control_leak_rate",
        "pad_flood_rate",
        "bracket_rate",
    ),
}


class Cell(NamedTuple):
    """A figure as it is shown: the number, its interval, and what must stand beside it."""

    value: str
    interval: str = ""
    beside: str = ""


class Line(NamedTuple):
    """One figure of every arm and load. meaning: its definition; unit: of the numbers."""

    name: str
    unit: str
    meaning: str
    cells: tuple[Cell, ...]


def columns(results: Results) -> list[str]:
    """The heads of the columns: arm and load."""
    return [f"{row.arm}, {row.load}" for row in results.rows]


def lines(results: Results, group: str) -> list[Line]:
    """The figures of a group that any arm has, a line each; where another does not, it says why not."""
    found = []
    for name in GROUPS[group]:
        if any(name in row.figures for row in results.rows):
            unit, meaning = MEANINGS[name]
            found.append(Line(name, unit, meaning, tuple(_cell(row, name) for row in results.rows)))
    return found


def configuration(results: Results) -> list[Line]:
    """What answered: semantics, step budget, fingerprint, outcomes and errors by their kinds."""
    told: dict[str, Sequence[str]] = {
        "tasks": [str(row.n) for row in results.rows],
        "semantics": [_any(row).semantics for row in results.rows],
        "step budget": [max((figure.step_budget for figure in row.figures.values()), key=len) for row in results.rows],
        "fingerprint": [_fingerprints(row) for row in results.rows],
        "answered by": [_counts(row.routed, "not told") for row in results.rows],
        "outcomes": [_counts(row.outcomes) for row in results.rows],
        "errors and drops": [_counts(row.errors) for row in results.rows],
    }
    return [Line(name, "", _OF_CONFIGURATION[name], tuple(map(Cell, values))) for name, values in told.items()]


_OF_CONFIGURATION = {
    "tasks": "measured, warm-up not among them",
    "semantics": "how answers come: token by token, in chunks of unknown size, or a canvas at a time",
    "step budget": "denoising steps that a block may take; - for none",
    "fingerprint": "of the steps that blocks took: speeds compare where it is the same",
    "answered by": "the arm that the server names, and how many answers it gave",
    "outcomes": "of tasks",
    "errors and drops": "requests that failed, by how; tasks that were dropped on arrival",
}


def _cell(row: Row, name: str) -> Cell:
    figure = row.figures.get(name)
    if figure is None:
        is_refused = name == "tpot_p50" and "e2e_p50" in row.figures
        return Cell(f"n/a ({row.figures['e2e_p50'].semantics})" if is_refused else "n/a")
    timed = f", {figure.semantics}" if name in LATENCIES else ""
    budget = f", budget {figure.step_budget}" if timed and figure.step_budget != "-" else ""
    return Cell(show(figure), _span(figure), f"n {figure.n}{timed}{budget}")


def _span(figure: Figure) -> str:
    if figure.interval is None:
        return ""
    low, high = (show_number(end, figure.unit) for end in figure.interval)
    return f"{low} to {high}"


def _any(row: Row) -> Figure:
    return next(iter(row.figures.values()))


def _fingerprints(row: Row) -> str:
    return ", ".join(f"{each.digest} ({each.total} blocks)" for each in row.fingerprints.values()) or "-"


def _counts(counts: Mapping[str, int], without: str = "none") -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or without
