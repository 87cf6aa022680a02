"""The page of a run, whole in one file: tables, and plots where a reader has JavaScript; computes nothing."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from plotly.offline import get_plotlyjs

from mezzotint.bench.config import BenchConfig, restore
from mezzotint.bench.matrix import GROUPS, columns, configuration, lines
from mezzotint.bench.plots import Plot, plot_crossover, plot_fingerprint, plot_frontier, plot_latency
from mezzotint.bench.results import Results, compute, find_warnings
from mezzotint.bench.store import Point, Run

_TEMPLATE = Path(__file__).with_name("report.html.jinja")


def render(run: Run, points: Sequence[Point]) -> str:
    """The page as HTML. It asks for nothing that it does not hold, and its tables need no JavaScript.

    Raises: ValueError for canvases whose step budget no server told.
    """
    config = restore(run.told["config"])
    results = compute(config, points)
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return template.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        run=run,
        config=config,
        facts=_facts(run, config),
        results=results,
        warnings=find_warnings(results),
        columns=columns(results),
        groups={name: lines(results, name) for name in GROUPS} | {"configuration": configuration(results)},
        plots=_plots(results),
        plotly=get_plotlyjs(),
        as_json=_as_json,
    )


def _facts(run: Run, config: BenchConfig) -> dict[str, str]:
    """What stands above all figures."""
    play = config.play
    tries = f"{play.max_attempts} attempts a hop" if play.max_attempts > 1 else "one attempt a hop"
    warm_up = ", ".join(dict.fromkeys(str(config.warm_up_at(load)) for load in config.loads))
    return {
        "what": f"{run.told['workload']['name']}: {run.told['workload']['note']}",
        "who answers": config.target,
        "tasks": f"{config.tasks} for each arm at each load, in {config.rounds} rounds, their order of arms turning",
        "warm-up": f"{warm_up} tasks before each round were discarded",
        "rules": f"{tries}, given up {play.deadline_s:g} s after arrival, at most {play.max_tokens} tokens an answer",
        "goals": ", ".join(f"{name} ≤ {seconds:g} s" for name, seconds in config.goals.items())
        or "none but acceptance",
        "prices": f"$ {config.prices.input:g} a million tokens read, {config.prices.output:g} written, "
        f"{config.prices.busy:g} a second of work",
        "seed": str(config.seed),
        **run.told["environment"],
    }


def _plots(results: Results) -> dict[str, list[Plot]]:
    return {
        "frontier": plot_frontier(results),
        "crossover": plot_crossover(results.comparisons),
        "latency": plot_latency(results),
        "fingerprint": plot_fingerprint(results.rows),
    }


def _as_json(value: Any) -> str:
    """JSON that may stand in a script, whatever names it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
