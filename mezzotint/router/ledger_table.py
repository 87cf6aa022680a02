"""The ledger's figures for people: acceptance, time and cost to accepted of each arm, class and load; no SQL."""

from collections.abc import Iterable
from itertools import groupby
from math import ceil, sqrt
from typing import NamedTuple

from mezzotint.router.latency import load_bucket

_Z = 1.959963984540054  # the normal quantile that leaves 2.5 % on either side


class Told(NamedTuple):
    """One attempt, by its decision and its place in the plan; deadline_s: of the decision, where that is known."""

    decision: str
    place: int
    arm: str
    kind: str
    outcome: str
    seconds: float
    cost_usd: float
    in_flight: int
    deadline_s: float | None


class LedgerRow(NamedTuple):
    """Requests that an arm was tried at first. load: most requests of its bucket, such as 3 for two or three.

    requests: not left by their callers. verdicts: first attempts that were judged or failed; acceptance of those with
    its interval of 95 %. rescued: requests accepted thanks to a fallback. seconds: median of first attempts.
    accepted_p50_s, accepted_p95_s: from the first attempt until accepted, over judged requests; one that is never
    accepted counts as its deadline at least. cost_per_accepted_usd: all that was spent ÷ accepted requests.
    None where there is nothing to tell. Source: contract 10, 14.
    """

    arm: str
    kind: str
    load: int
    requests: int
    verdicts: int
    acceptance: float | None
    acceptance_low: float | None
    acceptance_high: float | None
    rescued: int
    seconds: float | None
    accepted_p50_s: float | None
    accepted_p95_s: float | None
    cost_per_accepted_usd: float | None


class _Task(NamedTuple):
    """One request: its first attempt, whether it was accepted in the end (None: never judged), and what it took."""

    first: Told
    is_accepted: bool | None
    seconds: float
    cost_usd: float


def tabulate(attempts: Iterable[Told]) -> list[LedgerRow]:
    """Sum up attempts, which come by decision and place.

    Returns: a row for each arm, class and load, in that order.
    """
    cells: dict[tuple[str, str, int], list[_Task]] = {}
    for _, group in groupby(attempts, key=lambda told: told.decision):
        tried = [told for told in group if told.outcome != "cancelled"]
        if tried and tried[0].place == 0:
            first = tried[0]
            load = 2 ** (load_bucket(first.in_flight) + 1) - 1
            cells.setdefault((first.arm, first.kind, load), []).append(_sum_up(tried))
    return [_row(*cell, tasks) for cell, tasks in sorted(cells.items())]


def _sum_up(tried: list[Told]) -> _Task:
    last, seconds = tried[-1], sum(told.seconds for told in tried)
    is_accepted = None if last.outcome == "unverified" else last.outcome == "accepted"
    if is_accepted is False:
        seconds = max(seconds, last.deadline_s or 0.0)
    return _Task(tried[0], is_accepted, seconds, sum(told.cost_usd for told in tried))


def _row(arm: str, kind: str, load: int, tasks: list[_Task]) -> LedgerRow:
    judged = [task for task in tasks if task.first.outcome != "unverified"]
    passed = sum(task.first.outcome == "accepted" for task in judged)
    low, high = wilson(passed, len(judged)) if judged else (None, None)
    accepted = sum(task.is_accepted is True for task in tasks)
    spent = sum(task.cost_usd for task in tasks if task.is_accepted is not None)
    times = sorted(task.seconds for task in tasks if task.is_accepted is not None)
    return LedgerRow(
        arm=arm,
        kind=kind,
        load=load,
        requests=len(tasks),
        verdicts=len(judged),
        acceptance=passed / len(judged) if judged else None,
        acceptance_low=low,
        acceptance_high=high,
        rescued=sum(task.is_accepted is True and task.first.outcome != "accepted" for task in tasks),
        seconds=_quantile(sorted(task.first.seconds for task in tasks), 0.5),
        accepted_p50_s=_quantile(times, 0.5),
        accepted_p95_s=_quantile(times, 0.95),
        cost_per_accepted_usd=spent / accepted if accepted else None,
    )


def wilson(passed: int, n: int) -> tuple[float, float]:
    """Ends of the 95 % interval of a rate of which `passed` of `n` ≥ 1 trials are known. Source: Wilson 1927."""
    rate, z2 = passed / n, _Z**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    reach = _Z / (1 + z2 / n) * sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return max(0.0, min(rate, centre - reach)), min(1.0, max(rate, centre + reach))


def _quantile(ordered: list[float], share: float) -> float | None:
    """The least value that at least `share` of the values do not exceed."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else None
