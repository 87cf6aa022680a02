"""The ablations' figures as Markdown tables; nothing is trained or scored here."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.held_out import BUDGET, NOISE
from benchmarks.report import markdown_table
from benchmarks.variants import SHAPES

_STARTS = {
    ("nothing",): "From nothing",
    ("copying",): "From the weights at which the first of these had learnt to copy",
    ("lab",): "From the bundled weights",
    tuple(SHAPES): "From nothing, one shape beside another",
}
_HEAD = (
    "run",
    "s",
    "examples",
    "a second",
    "task",
    "causal",
    *(f"t {t:g}" for t in NOISE),
    "heard",
    f"diffusion, {BUDGET} steps",
    "ar",
)


def tables(runs: Sequence[Mapping[str, Any]]) -> str:
    """A table for each start: two rows a run, one for each of its tasks."""
    parts = []
    for starts, title in _STARTS.items():
        chosen = [run for run in runs if run["asked"]["start"] in starts]
        weights = sorted({run["start_weights"] for run in chosen} - {None})
        told = f" ({', '.join(weights)})" if weights else ""
        rows = [row for run in chosen for row in _rows(run)]
        if rows:
            parts.append(f"{title}{told}:\n\n{markdown_table(_HEAD, rows)}")
    return "\n\n".join(parts) or "No run is finished."


def _rows(run: Mapping[str, Any]) -> list[list[str]]:
    seconds, examples = run["seconds"], run["examples"]
    rate = f"{examples / seconds:.1f}" if seconds else "–"
    facts = [run["asked"]["says"], f"{seconds:.0f}", f"{examples:,}", rate]
    rows = [[*facts, *_scores(task, found)] for task, found in run["tasks"].items()]
    return [rows[0], *([""] * len(facts) + row[len(facts) :] for row in rows[1:])]


def _scores(task: str, found: Mapping[str, Any]) -> list[str]:
    losses = [found["causal"], *(found["denoise"][str(t)] for t in NOISE), found["heard"]]
    passed = {row["decoder"]: _passed(row) for row in found["rows"]}
    return [f"`{task}`", *(f"{loss:.3f}" for loss in losses), passed["diffusion"], passed["ar"]]


def _passed(row: Mapping[str, Any]) -> str:
    low, high = row["interval"]
    return f"{100 * row['pass_rate']:.0f} % ({100 * low:.0f} – {100 * high:.0f})"
