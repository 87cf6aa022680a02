"""What is asked of the bundled model, and whether what was measured meets it; nothing is run or shown here."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.lab_scores import Kernels, Scored
from benchmarks.two_samples import difference_interval
from mezzotint.evaluate.interval import Interval, ratio_interval

USUAL = 16  # denoising steps: the checkpoint's own budget
FEW, MANY = 4, 48
# By what they ask: each bit of the one can be looked up at once, each of the other needs the one before it.
LEAST_SEQUENTIAL, MOST_SEQUENTIAL = "parallel_rule", "sequential_rule"
_RESAMPLES = 2000


class Key(NamedTuple):
    """One arm at one task; budget: of diffusion's denoising steps, 0 for ar."""

    task: str
    decoder: str
    budget: int
    kernels: Kernels = "compiled"


Arms = Mapping[Key, Scored]


class Finding(NamedTuple):
    """What a gate found over n prompts: figure and 95 % interval as they are shown; whether limit and goal hold."""

    figure: str
    interval: str
    n: int
    met: bool
    reaches_goal: bool = False


class Gate(NamedTuple):
    """What is asked for at least, what is aimed at (empty where that is the same), and how it is found."""

    says: str
    limit: str
    goal: str
    judge: Callable[[Arms], Finding | None]


class Verdict(NamedTuple):
    """A gate and what it found, None where the runs for it are missing."""

    gate: Gate
    finding: Finding | None

    @property
    def met(self) -> bool:
        """Whether the limit holds; what was not measured does not."""
        return self.finding is not None and self.finding.met


def check_gates(scored: Sequence[Scored]) -> list[Verdict]:
    """Every gate, in the order in which they are shown."""
    arms = {key_of(each): each for each in scored}
    return [Verdict(gate, gate.judge(arms)) for gate in GATES]


def key_of(scored: Scored) -> Key:
    """Where its arm is found."""
    row = scored.row
    return Key(row.task, row.decoder, row.step_budget if row.decoder == "diffusion" else 0, scored.kernels)


def passes(task: str, decoder: str, least: float, goal: float | None = None, budget: int = USUAL) -> Gate:
    """At least so many percent of the answers are accepted."""
    key = Key(task, decoder, budget if decoder == "diffusion" else 0)

    def judge(arms: Arms) -> Finding | None:
        if (found := arms.get(key)) is None:
            return None
        rate, row = 100 * found.row.pass_rate, found.row
        aimed = goal is not None and _at_least(rate, goal)
        return Finding(f"{rate:.1f} %", _span(row.interval, 100, 1), row.n, _at_least(rate, least), aimed)

    return Gate(f"{_name(key)} passes", f"≥ {least:g} %", "" if goal is None else f"≥ {goal:g} %", judge)


def writes(task: str, least: float, goal: float) -> Gate:
    """Diffusion writes at least so many tokens a forward."""
    key = Key(task, "diffusion", USUAL)

    def judge(arms: Arms) -> Finding | None:
        if (found := arms.get(key)) is None:
            return None
        row, rate = found.row, found.row.tokens_per_forward
        interval = _span(row.tokens_per_forward_interval, 1, 1)
        return Finding(f"{rate:.1f}", interval, row.n, _at_least(rate, least), _at_least(rate, goal))

    return Gate(f"{_name(key)}, tokens per forward", f"≥ {least:g}", f"≥ {goal:g}", judge)


def gains(task: str, points: float) -> Gate:
    """Diffusion, which sees both sides of a blank, passes so much more often than ar, which sees what is before it."""

    def judge(arms: Arms) -> Finding | None:
        both, before = arms.get(Key(task, "diffusion", USUAL)), arms.get(Key(task, "ar", 0))
        if both is None or before is None:
            return None
        gain = 100 * (both.row.pass_rate - before.row.pass_rate)
        interval = difference_interval(sum(both.accepted), both.row.n, sum(before.accepted), before.row.n)
        span = f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}"
        return Finding(f"{gain:+.1f} points", span, both.row.n, _at_least(gain, points))

    return Gate(f"`{task}`, diffusion minus ar, which sees only what is before", f"≥ {points:g} points", "", judge)


def is_quick(task: str, kernels: Kernels, most: float) -> Gate:
    """A mean answer of diffusion takes at most so much of the time of ar's to the same prompts, in one run."""
    keys = Key(task, "diffusion", USUAL, kernels), Key(task, "ar", 0, kernels)

    def judge(arms: Arms) -> Finding | None:
        found = [arms[key] for key in keys if key in arms]
        if len(found) < len(keys):
            return None
        fast, slow = ([max(1, round(1e9 * each)) for each in arm.seconds] for arm in found)
        share = sum(fast) / sum(slow)
        return Finding(f"{share:.2f}", _span(ratio_interval(fast, slow), 1, 2), len(fast), share <= most)

    told = "as machine code" if kernels == "compiled" else "eager"
    return Gate(f"`{task}`, seconds of diffusion ÷ ar, {told}", f"≤ {most:g}", "", judge)


def find_fall(arms: Arms) -> Finding | None:
    """With more steps no family passes less often than the 95 % interval of fewer steps allows; the worst is told."""
    pairs = [
        (few, more)
        for few, more in combinations(sorted(arms), 2)
        if few[:2] == more[:2] and few.kernels == more.kernels == "compiled" and few.decoder == "diffusion"
    ]
    if not pairs:
        return None
    few, more = max(pairs, key=lambda pair: arms[pair[0]].row.interval.low - arms[pair[1]].row.pass_rate)
    before, after = arms[few].row, arms[more].row
    figure = (
        f"`{few.task}`: {100 * before.pass_rate:.1f} % of {few.budget}, {100 * after.pass_rate:.1f} % of {more.budget}"
    )
    return Finding(figure, _span(before.interval, 100, 1), before.n, after.pass_rate >= before.interval.low)


def find_spread(arms: Arms) -> Finding | None:
    """How much more of its score the least sequential family keeps with FEW steps than the most sequential one."""
    keys = [Key(task, "diffusion", b) for task in (LEAST_SEQUENTIAL, MOST_SEQUENTIAL) for b in (FEW, MANY)]
    found = [np.asarray(arms[key].accepted, dtype=float) for key in keys if key in arms]
    if len(found) < len(keys) or not (found[1].any() and found[3].any()):
        return None
    spread = 100 * (found[0].mean() / found[1].mean() - found[2].mean() / found[3].mean())
    rng = np.random.default_rng(0)
    kept = [_resample_ratio(few, many, rng) for few, many in (found[:2], found[2:])]
    low, high = np.nanquantile(100 * (kept[0] - kept[1]), (0.025, 0.975))
    n = min(map(len, found))
    return Finding(f"{spread:+.1f} points", f"{low:+.1f} to {high:+.1f}", n, _at_least(spread, 20))


def _resample_ratio(
    few: NDArray[np.float64], many: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Ratios of means over prompts drawn with replacement; nan where none passes. Source: Efron 1979."""
    picked = rng.integers(len(few), size=(_RESAMPLES, len(few)))
    under = many[picked].mean(1)
    ratios: NDArray[np.float64] = few[picked].mean(1) / np.where(under, under, np.nan)
    return ratios


def _name(key: Key) -> str:
    return f"`{key.task}`, {key.decoder}" + (f" of {key.budget} steps" if key.budget not in (0, USUAL) else "")


def _at_least(figure: float, limit: float) -> bool:
    return figure >= limit - 1e-9  # 100 × (0.94 − 0.79) is below 15 as floats have it


def _span(interval: Interval, scale: float, digits: int) -> str:
    return f"{scale * interval.low:.{digits}f} – {scale * interval.high:.{digits}f}"


GATES = (
    passes("extract", "ar", 97),
    passes("extract", "diffusion", 80, 92),
    writes("extract", 4, 8),
    passes("call", "ar", 95),
    passes("call", "diffusion", 75, 88),
    passes("repair", "ar", 70),
    passes("repair", "diffusion", 55),
    gains("infill", 15),
    passes(LEAST_SEQUENTIAL, "diffusion", 95, budget=FEW),
    is_quick("extract", "eager", 0.6),
    is_quick("extract", "compiled", 0.6),
    Gate(
        "with more steps no family passes less often; the nearest to it", "within the interval of fewer", "", find_fall
    ),
    Gate(
        f"passed of {FEW} ÷ of {MANY} steps, `{LEAST_SEQUENTIAL}` minus `{MOST_SEQUENTIAL}`",
        "≥ 20 points",
        "",
        find_spread,
    ),
)
