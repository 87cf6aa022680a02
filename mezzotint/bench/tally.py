"""Adds records up to figures: of tasks, requests, canvases, traffic; what a figure means is said in figures."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import fmean

import numpy as np

from mezzotint.bench.arrival import Load
from mezzotint.bench.config import BenchConfig, Prices
from mezzotint.bench.figures import ENOUGH_FOR_P95, Figure, find_budget, find_semantics, time_per_token
from mezzotint.bench.interval import Interval, quantile_interval, ratio_interval, wilson
from mezzotint.bench.point import Done
from mezzotint.bench.record import PARTS, Played, Request
from mezzotint.types import tokens_per_forward

_SIGNS = {"stutter": "stutter_rate", "loop": "loop_rate", "control": "control_leak_rate", "pad": "pad_flood_rate"}


@dataclass(frozen=True)
class Group:
    """One arm at one load: the points that were measured of it."""

    arm: str
    load: Load
    points: tuple[Done, ...]

    @cached_property
    def played(self) -> tuple[Played, ...]:
        """Its tasks, by their index."""
        return tuple(sorted((each for done in self.points for each in done.played), key=lambda each: each.task))

    @cached_property
    def requests(self) -> tuple[Request, ...]:
        """All attempts of its tasks."""
        return tuple(request for played in self.played for request in played.requests)

    @cached_property
    def answers(self) -> tuple[Request, ...]:
        """Attempts that did not fail as requests."""
        return tuple(request for request in self.requests if not request.category)

    @property
    def window_s(self) -> float:
        """Seconds in which its tasks were served; of a closed loop the time of its tasks ÷ slots (Little's law)."""
        if self.load.slots:
            return sum(played.seconds for played in self.played) / self.load.slots
        return sum(done.window_s for done in self.points)


def tally(group: Group, config: BenchConfig) -> dict[str, Figure]:
    """All figures of a group that its records allow, by name. Raises: ValueError for canvases without a step budget."""
    semantics, budget = find_semantics(group.answers), find_budget(group.answers)
    found = [*_tasks(group, config), *_requests(group), *_traffic(group, config), *_work(group), *_stability(group)]
    return {
        name: Figure(
            name=name,
            value=told.value,
            semantics=semantics,
            n=told.n,
            interval=told.interval,
            step_budget=budget,
            note=told.note,
        )
        for name, told in found
        if told is not None
    }


def count_outcomes(group: Group) -> dict[str, int]:
    """Tasks by their outcome, the most frequent first."""
    return dict(Counter(played.outcome for played in group.played).most_common())


def count_errors(group: Group) -> dict[str, int]:
    """Attempts that failed as requests, by category, the most frequent first; dropped tasks among them."""
    categories = [request.category for request in group.requests if request.category]
    dropped = ["dropped"] * sum(not played.requests and played.outcome == "cancelled" for played in group.played)
    return dict(Counter([*categories, *dropped]).most_common())


def mean_parts(group: Group) -> dict[str, float]:
    """Seconds of a task by part, and the residual that no part claims: means over tasks. Source: contract 10."""
    parts = {name: fmean(getattr(played.parts, name) for played in group.played) for name in PARTS}
    return {**parts, "residual": fmean(played.residual_s for played in group.played)}


def spend(requests: Iterable[Request], prices: Prices) -> float:
    """Dollars for tokens, and for the seconds in which a server worked, or in which we waited if it does not tell."""
    return sum(
        (request.prompt_tokens * prices.input + request.output_tokens * prices.output) / 1e6
        + (request.seconds if request.generation_s is None else request.generation_s) * prices.busy
        for request in requests
    )


def keeps_goals(played: Played, goals: Mapping[str, float]) -> bool:
    """Whether an accepted task kept to every goal. Raises: ValueError for a goal that means nothing for its answers."""
    reached: dict[str, Callable[[], float]] = {
        "tta": lambda: played.seconds,
        "e2e": lambda: max(_latencies(played, lambda request: request.ended_s), default=0.0),
        "ttfc": lambda: max(_latencies(played, _first), default=0.0),
        "itl": lambda: max(time_per_token(played.requests), default=0.0),
        "tpot": lambda: max(time_per_token(played.requests), default=0.0),
    }
    return all(reached[name]() <= seconds for name, seconds in goals.items())


@dataclass(frozen=True)
class _Told:
    value: float
    n: int
    interval: Interval | None = None
    note: str = ""


_Found = Iterator[tuple[str, _Told | None]]


def _tasks(group: Group, config: BenchConfig) -> _Found:
    tasks, deadline_s = group.played, config.play.deadline_s
    accepted = [played for played in tasks if played.is_accepted]
    once = [played for played in accepted if len(played.requests) == played.hops]
    yield "acceptance_rate", _rate(len(accepted), len(tasks))
    yield "first_try_rate", _rate(len(once), len(tasks))
    yield "rescue_rate", _rate(len(accepted) - len(once), len(tasks))
    yield from _quantiles("tta", [(played.seconds, played.task) for played in accepted])
    censored = [
        (played.seconds if played.is_accepted else max(played.seconds, deadline_s), played.task) for played in tasks
    ]
    yield from _quantiles("tta_censored", censored)
    passed = [float(played.is_accepted) for played in tasks]
    yield "expected_tta", _ratio([played.seconds for played in tasks], passed)
    if any(played.hops > 1 for played in tasks):
        yield from _hops(tasks)
    whole = sum(played.seconds for played in tasks)
    for name, seconds in (
        ("verification_share", sum(played.parts.verification for played in tasks)),
        ("residual_share", sum(abs(played.residual_s) for played in tasks)),
        ("dispatch_share", sum(played.parts.dispatch for played in tasks)),
    ):
        mind = "the client was busy" if name == "dispatch_share" and seconds > 0.02 * whole else ""
        mind = "parts do not add up" if name == "residual_share" and seconds > 0.01 * whole else mind
        yield name, _Told(seconds / whole, len(tasks), note=mind) if whole else None
    yield from _quantiles("dispatch", [(played.parts.dispatch, played.task) for played in tasks])
    if config.prices != Prices():
        yield "cost_per_accepted", _ratio([spend(played.requests, config.prices) for played in tasks], passed)


def _hops(tasks: Sequence[Played]) -> _Found:
    hops: dict[str, list[tuple[float, int]]] = {"hop": [], "plan": [], "tool": []}
    for played in tasks:
        kinds = {request.hop: request.kind for request in played.requests}
        for place, seconds in enumerate(played.accepted_hops):
            for kind in ("hop", kinds[place]):
                hops.setdefault(kind, []).append((seconds, played.task))
    for kind in ("hop", "plan", "tool"):
        yield f"{kind}_tta_p50", _quantile(hops[kind], 0.5)


def _requests(group: Group) -> _Found:
    pairs = [
        (latency, request, played.task)
        for played in group.played
        for request, latency in zip(played.requests, _latencies(played, lambda one: one.ended_s), strict=True)
        if not request.category
    ]
    yield from _quantiles("e2e", [(latency, task) for latency, _, task in pairs])
    firsts = [(latency - one.ended_s + one.arrivals[0], task) for latency, one, task in pairs if one.arrivals]
    yield from _quantiles("ttfc", firsts)
    usable = [(latency - one.ended_s + one.usable_s, task) for latency, one, task in pairs if one.usable_s is not None]
    yield "usable_p50", _quantile(usable, 0.5)
    written = [(latency, one.output_tokens, task) for latency, one, task in pairs if one.output_tokens]
    yield "ntpot_p50", _quantile([(latency / tokens, task) for latency, tokens, task in written], 0.5)
    yield "e2e_rate_p50", _quantile([(tokens / latency, task) for latency, tokens, task in written], 0.5)
    gaps = [late - early for request in group.answers for early, late in pairwise(request.arrivals)]
    for name, q in (("icl_p50", 0.5), ("icl_p95", 0.95)):
        yield name, _Told(float(np.quantile(gaps, q)), len(gaps), note=_small(len(gaps), q)) if gaps else None
    if group.answers and find_semantics(group.answers) == "token":
        times = time_per_token(group.answers)
        yield "tpot_p50", _Told(float(np.median(times)), len(times)) if times else None


def _traffic(group: Group, config: BenchConfig) -> _Found:
    tasks, window_s = group.played, group.window_s
    good = [played for played in tasks if played.is_accepted and keeps_goals(played, config.goals)]
    written = [sum(request.output_tokens for request in played.requests) for played in tasks]
    if window_s > 0:
        yield "accepted_goodput", _Told(len(good) / window_s, len(tasks))
        yield "task_rate", _Told(sum(bool(played.requests) for played in tasks) / window_s, len(tasks))
        yield "output_rate", _Told(sum(written) / window_s, len(tasks))
    yield "output_tokens", _Told(fmean(written), len(tasks))
    if read := [request.prompt_tokens for request in group.answers if request.prompt_tokens]:
        cached = sum(request.cached_tokens for request in group.answers)
        yield "prompt_tokens", _Told(fmean(read), len(read))
        yield "cached_share", _Told(cached / sum(read), len(read))
    hops = sum(len(played.accepted_hops) for played in tasks)
    yield "attempts_per_accepted", _Told(len(group.requests) / hops, len(tasks)) if hops else None


def _work(group: Group) -> _Found:
    worked = [request for request in group.answers if request.forwards]
    if worked:
        forwards = sum(request.forwards for request in worked)
        share = tokens_per_forward(sum(request.output_tokens for request in worked), forwards)
        counts = [float(request.output_tokens) for request in worked], [float(request.forwards) for request in worked]
        yield "tpf", _Told(share, len(worked), ratio_interval(*counts))
    canvases = [request for request in worked if request.semantics == "canvas" and request.steps]
    if not canvases:
        return
    steps = [count for request in canvases for count in request.steps]
    places = sum(len(request.steps) * request.canvas for request in canvases)
    hits = sum(request.budget_hits for request in canvases)
    told = [request for request in canvases if request.generation_s is not None]
    yield "blocks", _Told(len(steps) / len(canvases), len(canvases))
    written = sum(request.output_tokens for request in canvases)
    yield "canvas_utilisation", _Told(written / places, len(canvases)) if places else None
    yield "steps_p50", _Told(float(np.median(steps)), len(steps))
    yield "steps_p95", _Told(float(np.quantile(steps, 0.95)), len(steps), note=_small(len(steps), 0.95))
    yield "budget_hit_rate", _Told(hits / len(steps), len(steps))
    yield "early_halt_rate", _Told(1 - hits / len(steps), len(steps))
    if told:
        blocks = sum(len(request.steps) for request in told)
        yield "block_latency", _Told(sum(request.generation_s or 0.0 for request in told) / blocks, blocks)


def _stability(group: Group) -> _Found:
    attempts, answers, tasks = group.requests, group.answers, group.played
    if attempts:
        yield "retry_rate", _rate(sum(request.attempt > 0 for request in attempts), len(attempts))
        yield "error_rate", _rate(sum(bool(request.category) for request in attempts), len(attempts))
    yield "timeout_rate", _rate(sum(played.outcome == "timeout" for played in tasks), len(tasks))
    yield "drop_rate", _rate(sum(played.outcome == "cancelled" for played in tasks), len(tasks))
    if not answers:
        return
    yield "malformed_rate", _rate(sum(request.outcome == "malformed" for request in answers), len(answers))
    yield "empty_rate", _rate(sum(request.outcome == "empty" for request in answers), len(answers))
    yield "truncation_rate", _rate(sum(request.finish_reason == "length" for request in answers), len(answers))
    for sign, name in {**_SIGNS, "bracket": "bracket_rate"}.items():
        yield name, _rate(sum(sign in request.findings for request in answers), len(answers))


def _latencies(played: Played, stamp: Callable[[Request], float]) -> list[float]:
    """Seconds to a stamp of each request, from the scheduled arrival of the first one and the sending of others."""
    return [
        stamp(request) - request.sent_s + (played.parts.dispatch if request.hop == request.attempt == 0 else 0.0)
        for request in played.requests
    ]


def _first(request: Request) -> float:
    return request.arrivals[0] if request.arrivals else request.ended_s


def _rate(part: int, whole: int) -> _Told:
    return _Told(part / whole, whole, wilson(part, whole))


def _ratio(over: Sequence[float], under: Sequence[float]) -> _Told | None:
    if not sum(under):
        return None
    return _Told(sum(over) / sum(under), len(over), ratio_interval(over, under))


def _quantiles(name: str, values: Sequence[tuple[float, int]]) -> _Found:
    yield f"{name}_p50", _quantile(values, 0.5)
    yield f"{name}_p95", _quantile(values, 0.95)


def _quantile(values: Sequence[tuple[float, int]], q: float) -> _Told | None:
    """Of values with the tasks that they belong to, which are resampled whole."""
    if not values:
        return None
    numbers, tasks = [value for value, _ in values], [task for _, task in values]
    interval = quantile_interval(numbers, tasks, q)
    return _Told(float(np.quantile(numbers, q)), len(values), interval, _small(len(values), q))


def _small(n: int, q: float) -> str:
    return "n small" if q == 0.95 and n < ENOUGH_FOR_P95 else ""
