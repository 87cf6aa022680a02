"""An experiment of routing as Markdown: policies beside each other, what was asked of auto, and where it went."""

from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks.report import markdown_table, run_table
from benchmarks.routing_scores import (
    Figure,
    Standing,
    Task,
    acceptance,
    best,
    choose_oracle,
    compare,
    mean_seconds,
)
from mezzotint.bench.record import Played

Measured = dict[int, dict[str, dict[int, Played]]]  # tasks by load, arm and index

AUTO, COLD, ORACLE, RULE = "auto, calibrated", "auto, cold", "oracle", "rule of thumb"
DEADLINE_S = 2.0  # of a task
THUMB = 32  # requests at once below which the published rule takes the canvas
SLOWER, LESS, REGRET = 1.05, 0.02, 0.15  # asked of auto: times the best arm, share not accepted, over the oracle
_HEAD = ("at once", "policy", "n", "accepted", "s to accepted", "auto ÷ it", "auto accepts more by")


def render(measured: Mapping[str, Measured], facts: Mapping[str, str]) -> str:
    """All of it. measured: by stage: calibration, experiment, cold."""
    policies = {load: list_policies(measured, load) for load in measured["experiment"]}
    everything = {name: [task for load in policies for task in policies[load][name]] for name in _names(policies)}
    fixed = list(measured["calibration"][next(iter(policies))])
    rows = [row for load in policies for row in _rows(str(load), policies[load])] + _rows("all", everything)
    note = (
        f"Seconds until an answer was accepted, on the client's clock; a task that was not counts {DEADLINE_S:g} s, "
        "its deadline. One attempt a task. Intervals are of resampled prompts, 95 %, the same ones on both sides of "
        "a ratio."
    )
    asked = markdown_table(
        ("at once", "asked of calibrated auto", "found", "95 %", ""),
        [row for load in policies for row in _verdicts(str(load), policies[load], fixed)] + _pooled(everything, fixed),
    )
    where = markdown_table(("at once", "family", "oracle", "auto went to"), _choices(measured))
    return "\n\n".join([run_table(facts), note, markdown_table(_HEAD, rows), asked, where])


def list_policies(measured: Mapping[str, Measured], load: int) -> dict[str, list[Task]]:
    """Every policy's tasks at one load. The oracle and the rule are put together from the tasks of the arms."""
    arms = dict(measured["experiment"][load])
    auto = arms.pop("auto")
    indices = sorted(auto)
    oracle = read_oracle(measured, load)
    thumb = "canvas-16" if load < THUMB else "ar"
    return {
        **{name: [_task(tasks[index]) for index in indices] for name, tasks in arms.items()},
        RULE: [_task(arms[thumb][index]) for index in indices],
        COLD: [_task(measured["cold"][load]["auto"][index]) for index in indices],
        AUTO: [_task(auto[index]) for index in indices],
        ORACLE: [_task(arms[oracle[auto[index].family]][index]) for index in indices],
    }


def read_oracle(measured: Mapping[str, Measured], load: int) -> dict[str, str]:
    """The best arm of each family at a load, by the prompts of calibration."""
    arms: dict[str, dict[str, list[Task]]] = {}
    for arm, tasks in measured["calibration"][load].items():
        by_family: dict[str, list[Task]] = {}
        for played in tasks.values():
            by_family.setdefault(played.family, []).append(_task(played))
        arms[arm] = by_family
    return choose_oracle(arms)


def _task(played: Played) -> Task:
    """One that was not accepted counts as its deadline at least, however soon it was given up. Source: contract 10."""
    seconds = played.seconds if played.is_accepted else max(played.seconds, DEADLINE_S)
    return Task(seconds, played.is_accepted)


def _names(policies: Mapping[int, Mapping[str, Sequence[Task]]]) -> list[str]:
    return list(next(iter(policies.values())))


def _rows(load: str, policies: Mapping[str, Sequence[Task]]) -> list[list[str]]:
    rows = []
    for name, tasks in policies.items():
        beside = None if name == AUTO else compare(policies[AUTO], tasks)
        told = ["", ""] if beside is None else [_ratio(beside.slower), _points(beside.more_accepted)]
        rows.append([load, name, str(len(tasks)), _share(acceptance(tasks)), _seconds(mean_seconds(tasks)), *told])
    return rows


def _verdicts(load: str, policies: Mapping[str, Sequence[Task]], fixed: Sequence[str]) -> list[list[str]]:
    chosen = best({name: policies[name] for name in fixed})
    beside = compare(policies[AUTO], policies[chosen])
    return [
        _slower(load, f"at most {SLOWER} × the best arm, {chosen} (upper end)", beside),
        _accepts(load, f"accepts no more than {100 * LESS:g} points less than it (lower end)", beside),
        _regret(load, policies),
    ]


def _pooled(everything: Mapping[str, Sequence[Task]], fixed: Sequence[str]) -> list[list[str]]:
    rows = []
    for name in fixed:
        beside = compare(everything[AUTO], everything[name]).slower
        rows.append(["all", f"faster than {name}", f"{beside.value:.2f}", _span(beside, 2), _met(beside.value < 1)])
    return [*rows, _regret("all", everything)]


def _slower(load: str, what: str, beside: Standing) -> list[str]:
    is_met = beside.slower.interval.high <= SLOWER
    return [load, what, f"{beside.slower.value:.2f}", _span(beside.slower, 2), _met(is_met)]


def _accepts(load: str, what: str, beside: Standing) -> list[str]:
    more, is_met = beside.more_accepted, beside.more_accepted.interval.low >= -LESS
    return [load, what, f"{100 * more.value:+.1f}", _points(more).split(" ", 1)[1], _met(is_met)]


def _regret(load: str, policies: Mapping[str, Sequence[Task]]) -> list[str]:
    over = compare(policies[AUTO], policies[ORACLE]).slower
    is_met = over.value <= 1 + REGRET
    return [load, f"at most {1 + REGRET:.2f} × the oracle", f"{over.value:.2f}", _span(over, 2), _met(is_met)]


def _choices(measured: Mapping[str, Measured]) -> list[list[str]]:
    rows = []
    for load, arms in measured["experiment"].items():
        oracle = read_oracle(measured, load)
        for family, arm in oracle.items():
            went = Counter(
                played.requests[0].routed[0]
                for played in arms["auto"].values()
                if played.family == family and played.requests
            )
            rows.append([str(load), f"`{family}`", arm, ", ".join(f"{name} {n}" for name, n in went.most_common())])
    return rows


def _met(is_met: object) -> str:
    return "met" if is_met else "**unmet**"


def _span(figure: Figure, digits: int) -> str:
    return f"{figure.interval.low:.{digits}f} – {figure.interval.high:.{digits}f}"


def _ratio(figure: Figure) -> str:
    return f"{figure.value:.2f} ({_span(figure, 2)})"


def _seconds(figure: Figure) -> str:
    return f"{figure.value:.3f} ({_span(figure, 3)})"


def _share(figure: Figure) -> str:
    return f"{100 * figure.value:.1f} %"


def _points(figure: Figure) -> str:
    low, high = figure.interval
    return f"{100 * figure.value:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
