"""Plots of results as plotly's figures, plain data and layout; every number of them is in a table of the page too."""

from collections.abc import Sequence
from math import isinf
from typing import Any, NamedTuple

from mezzotint.bench.figures import Figure
from mezzotint.bench.results import Comparison, Results, Row, spots

# Of Okabe and Ito: told apart by eyes that do not tell all colours apart, and in print.
_COLOURS = "#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #000000 #F0E442".split()
_PARTS = "dispatch retrieval queue generation transport verification tool_wait backoff residual".split()


class Plot(NamedTuple):
    """A figure as plotly reads it. title: what a reader sees; told: it in words, for readers who do not see it."""

    title: str
    told: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]


def plot_frontier(results: Results) -> list[Plot]:
    """Acceptance at the first try against time, a plot a load at which two arms or more were measured."""
    plots = []
    for load in dict.fromkeys(row.load for row in results.rows):
        rows = [row for row in results.rows if row.load == load]
        beaten = {each.arm for each in results.dominated if each.load == str(load)}
        placed = spots(rows)
        if len(placed) < 2:
            continue
        data = [
            {
                "type": "scatter",
                "mode": "markers+text",
                "name": spot.arm,
                "text": [spot.arm],
                "textposition": "top center",
                "x": [spot.seconds],
                "y": [spot.quality],
                "error_x": _error(row.figures["e2e_p50"]),
                "error_y": _error(row.figures["first_try_rate"]),
                "marker": {
                    "color": _colour(results, spot.arm),
                    "size": 12,
                    "symbol": "x" if spot.arm in beaten else "diamond" if spot.is_reference else "circle",
                },
            }
            for spot in placed
            for row in rows
            if row.arm == spot.arm
        ]
        title = f"Quality against time, {load}"
        told = "circles are canvases, diamonds write token by token, a cross is beaten by another arm"
        layout = _layout(title, "e2e, median, s", "accepted at the first try")
        plots.append(Plot(title, told, data, {**layout, "yaxis": {**layout["yaxis"], "tickformat": ".0%"}}))
    return plots


def plot_crossover(comparisons: Sequence[Comparison]) -> list[Plot]:
    """The ratio of two arms by load, a plot a measure."""
    plots = []
    for measure in dict.fromkeys(each.measure for each in comparisons):
        data = [_line_of_ratios(each, at) for at, each in enumerate(comparisons) if each.measure == measure]
        what = "median ratio of time to accepted" if measure == "median" else "ratio of time spent an accepted task"
        title = f"Where another arm is faster: {what}"
        layout = _layout(title, "load", "first arm ÷ other arm")
        one = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1, "line": {"dash": "dot"}}
        loads = {"type": "log", "tickvals": sorted({load for trace in data for load in trace["x"]})}
        axes = {"xaxis": {**layout["xaxis"], **loads}, "yaxis": {**layout["yaxis"], "type": "log"}}
        plots.append(Plot(title, "below 1 the first arm is faster", data, {**layout, **axes, "shapes": [one]}))
    return plots


def plot_latency(results: Results) -> list[Plot]:
    """Where the time of a task goes, a bar an arm and load."""
    if not results.rows:
        return []
    names = [f"{row.arm}, {row.load}" for row in results.rows]
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": part,
            "y": names,
            "x": [row.parts[part] for row in results.rows],
            "marker": {"color": _COLOURS[at % len(_COLOURS)]},
        }
        for at, part in enumerate(_PARTS)
        if any(abs(row.parts[part]) > 1e-4 for row in results.rows)
    ]
    layout = _layout("Where a task's time goes", "seconds a task, mean", "")
    height = 160 + 28 * len(names)
    axis = {**layout["yaxis"], "automargin": True, "autorange": "reversed"}
    return [Plot("Where a task's time goes", "parts of the mean", data, _stacked(layout, axis, height))]


def plot_fingerprint(rows: Sequence[Row]) -> list[Plot]:
    """How many steps blocks took, a line each fingerprint."""
    found = {(row.arm, str(row.load), name): each for row in rows for name, each in row.fingerprints.items()}
    if not found:
        return []
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": f"{arm}, {load}",
            "x": list(each.blocks),
            "y": [count / each.total for count in each.blocks.values()],
        }
        for (arm, load, _), each in found.items()
    ]
    layout = _layout("Denoising steps of a block", "steps", "share of blocks")
    return [Plot("Denoising steps of a block", "a histogram an arm and load", data, layout)]


def _line_of_ratios(comparison: Comparison, at: int) -> dict[str, Any]:
    points = comparison.crossover.points
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{comparison.first} ÷ {comparison.second}",
        "x": [point.load for point in points],
        "y": [_finite(point.ratio) for point in points],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [_finite(point.interval.high - point.ratio) for point in points],
            "arrayminus": [_finite(point.ratio - point.interval.low) for point in points],
        },
        "marker": {"color": _COLOURS[at % len(_COLOURS)]},
    }


def _error(figure: Figure) -> dict[str, Any]:
    if figure.interval is None:
        return {}
    above, below = figure.interval.high - figure.value, figure.value - figure.interval.low
    return {"type": "data", "symmetric": False, "array": [_finite(above)], "arrayminus": [_finite(below)]}


def _colour(results: Results, arm: str) -> str:
    arms = list(dict.fromkeys(row.arm for row in results.rows))
    return _COLOURS[arms.index(arm) % len(_COLOURS)]


def _layout(title: str, x: str, y: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "font": {"size": 15}},
        "xaxis": {"title": {"text": x}},
        "yaxis": {"title": {"text": y}},
        "margin": {"l": 60, "r": 20, "t": 50, "b": 50},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "font": {"family": "system-ui, sans-serif"},
        "showlegend": True,
    }


def _stacked(layout: dict[str, Any], axis: dict[str, Any], height: int) -> dict[str, Any]:
    return {**layout, "barmode": "relative", "height": height, "yaxis": axis}


def _finite(value: float) -> float | None:
    return None if isinf(value) else value
