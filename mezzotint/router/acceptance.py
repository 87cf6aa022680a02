"""How likely an arm answers, and its answer is accepted, by class and by what was rejected before; no time taken."""

from collections.abc import Callable, Hashable, Sequence
from math import exp, log
from typing import NamedTuple, TypeVar

WEIGHT = 4.0  # verdicts that a prior is worth, of a class below another, or of a second attempt
PRIOR = 16.0  # of an arm in a class, which all arms and all classes have told: what it tells is seldom far off
_KEEP = 0.5 ** (1.0 / 200.0)  # a verdict counts half after 200 more
AFTER_REJECTION = 0.6  # of its own acceptance, where another arm's answer was rejected before, until that is known
SAME_AGAIN = 0.2  # where its own was
_UNKNOWN = 0.7  # the acceptance of an arm of which nothing is known
_ANSWERS = 0.998  # an arm of which nothing is known; worth one attempt
_FEW = 10.0  # attempts after which what went before counts half, of whether an arm answers
_RECALLED_S = 60.0  # after which it counts half, whatever came
_Key = TypeVar("_Key", bound=Hashable)
_MOST_CLASSES = 4096  # remembered; the one noted longest ago goes first


class Belief(NamedTuple):
    """A Beta distribution of a rate."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """Between 0 and 1."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> float:
        """Of the rate."""
        total = self.alpha + self.beta
        return self.alpha * self.beta / (total * total * (total + 1.0))


class Rates:
    """Rates that forget, of things keyed by a path: a path's prior is what its head says, worth four verdicts.

    The path ("a", "b", "c") is shrunk to ("a", "b"), that to ("a",), and that to `prior`.
    """

    def __init__(self, prior: float) -> None:
        """prior: the rate of what nothing is known of."""
        self._prior = prior
        self._counts: dict[tuple[str, ...], list[float]] = {}

    def note(self, path: tuple[str, ...], good: float, bad: float) -> None:
        """Count for a path and each of its heads; a negative count takes back what was counted before."""
        keep = _KEEP if good + bad > 0 else 1.0  # a correction is no further verdict
        for end in range(len(path), 0, -1):
            before = self._counts.pop(path[:end], [0.0, 0.0])
            self._counts[path[:end]] = [max(0.0, before[0] * keep + good), max(0.0, before[1] * keep + bad)]
        while len(self._counts) > _MOST_CLASSES:
            del self._counts[next(iter(self._counts))]

    def belief(self, path: tuple[str, ...]) -> Belief:
        """What is believed of a path's rate."""
        found = Belief(WEIGHT * self._prior, WEIGHT * (1.0 - self._prior))
        for end in range(1, len(path) + 1):
            mean = found.mean
            good, bad = self._counts.get(path[:end], (0.0, 0.0))
            found = Belief(WEIGHT * mean + good, WEIGHT * (1.0 - mean) + bad)
        return found

    def counts(self, path: tuple[str, ...]) -> tuple[float, float]:
        """What was counted of a path, faded."""
        good, bad = self._counts.get(path, (0.0, 0.0))
        return good, bad

    def fade(self, head: tuple[str, ...], share: float) -> None:
        """Let what is known of all paths below a head count only a share."""
        for path, counts in self._counts.items():
            if path[: len(head)] == head:
                counts[:] = [count * share for count in counts]


class Acceptance:
    """Acceptance of each arm: of a first answer, and of one behind another that was rejected."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._classes = Rates(_UNKNOWN)
        self._own = Rates(_UNKNOWN)
        self._effects: dict[tuple[str, ...], list[float]] = {}
        self._second: dict[tuple[str, str, str], list[float]] = {}
        self._dependence: dict[str, list[float]] = {}

    def note(self, kind: str, arm: str, after: str | None, good: float, bad: float) -> None:
        """Count verdicts, signed; after: the arm whose answer was rejected before, if one was."""
        verdicts = good + bad
        if after is None:
            expected = self._classes.belief(_path(kind)).mean * verdicts
            for head in ((arm,), (arm, _path(kind)[1])):
                _add(self._effects, head, (good, expected, verdicts), verdicts)
            self._classes.note(_path(kind), good, bad)
            self._own.note((arm, kind), good, bad)
            return
        if after != arm:
            _add(self._dependence, kind, (good, self.first(kind, arm).mean * verdicts), verdicts)
        _add(self._second, (kind, after, arm), (good, bad), verdicts)

    def first(self, kind: str, arm: str) -> Belief:
        """Of the first attempt at a request.

        The prior is what all arms together have of the class, moved on the scale of log odds by what this arm has more
        or less than all of them: everywhere, then in classes of this form.
        """
        common = self._classes.belief(_path(kind)).mean
        effect = self._effect((arm, _path(kind)[1]), self._effect((arm,), 0.0))
        prior = _rate(_log_odds(common) + effect)
        good, bad = self._own.counts((arm, kind))
        return Belief(PRIOR * prior + good, PRIOR * (1.0 - prior) + bad)

    def second(self, kind: str, after: str, arm: str, alone: float) -> Belief:
        """Of an attempt behind a rejected one; alone: the arm's rate as a first one.

        The prior is the arm's own rate, × 0.2 behind its own rejection, else × what the class has shown of all pairs,
        where 0.6 stands for eight attempts. Hard requests are hard for every arm, so attempts are not independent.
        """
        prior = alone * (SAME_AGAIN if after == arm else self._after_rejection(kind))
        good, bad = self._second.get((kind, after, arm), (0.0, 0.0))
        return Belief(WEIGHT * prior + good, WEIGHT * (1.0 - prior) + bad)

    def behind(self, kind: str, arms: Sequence[str], alone: Sequence[float]) -> list[list[float]]:
        """Of each arm (second index) behind a rejection of each (first), so that orders agree.

        That neither of two arms is accepted is as likely in one order as in the other; what both orders have told of it
        is put together, by the verdicts behind them. Else chance would choose the order, not time.
        """
        told = [[self.second(kind, i, j, rate) for j, rate in zip(arms, alone, strict=True)] for i in arms]
        missed = [max(1e-9, 1.0 - rate) for rate in alone]

        def rate_behind(i: int, j: int) -> float:
            if arms[i] == arms[j]:
                return told[i][j].mean
            here, there = sum(told[i][j]), sum(told[j][i])
            both = here * missed[i] * (1.0 - told[i][j].mean) + there * missed[j] * (1.0 - told[j][i].mean)
            return max(0.0, 1.0 - both / (here + there) / missed[i])

        return [[rate_behind(i, j) for j in range(len(arms))] for i in range(len(arms))]

    def fade(self, arm: str, share: float) -> None:
        """Let what is known of an arm count only a share."""
        self._own.fade((arm,), share)
        for head, counts in self._effects.items():
            if head[0] == arm:
                counts[:] = [count * share for count in counts]
        for key in [key for key in self._second if key[2] == arm]:
            self._second[key] = [count * share for count in self._second[key]]

    def _effect(self, head: tuple[str, ...], prior: float) -> float:
        """Log odds that an arm has above what was expected of the classes it met."""
        seen, expected, verdicts = self._effects.get(head, (0.0, 0.0, 0.0))
        total = verdicts + PRIOR
        told = _log_odds((seen + PRIOR * _rate(_log_odds(_UNKNOWN) + prior)) / total)
        return told - _log_odds((expected + PRIOR * _UNKNOWN) / total)

    def _after_rejection(self, kind: str) -> float:
        seen, expected = self._dependence.get(kind, (0.0, 0.0))
        worth = 2.0 * WEIGHT * _UNKNOWN
        return min(1.0, (worth * AFTER_REJECTION + seen) / (worth + expected))


class Answering:
    """Whether arms answer at all: a state of now, so what was seen is forgotten within minutes, tried or not."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock: seconds."""
        self._clock = clock
        self._counts: dict[str, list[float]] = {}

    def note(self, arm: str, *, answered: bool) -> None:
        """Take one attempt."""
        good, bad = self._faded(arm)
        keep = 0.5 ** (1.0 / _FEW)
        self._counts[arm] = [good * keep + answered, bad * keep + (not answered), self._clock()]

    def rate(self, arm: str) -> float:
        """That it answers the next request."""
        good, bad = self._faded(arm)
        return (_ANSWERS + good) / (1.0 + good + bad)

    def _faded(self, arm: str) -> tuple[float, float]:
        good, bad, at = self._counts.get(arm, (0.0, 0.0, 0.0))
        keep = 0.5 ** (max(0.0, self._clock() - at) / _RECALLED_S)
        return good * keep, bad * keep


def _add(counts: dict[_Key, list[float]], key: _Key, more: tuple[float, ...], verdicts: float) -> None:
    """Count numbers under a key, signed; further verdicts fade what went before, corrections do not."""
    before = counts.pop(key, [0.0] * len(more))
    keep = _KEEP if verdicts > 0 else 1.0
    counts[key] = [max(0.0, old * keep + new) for old, new in zip(before, more, strict=True)]
    while len(counts) > _MOST_CLASSES:
        del counts[next(iter(counts))]


def _log_odds(rate: float) -> float:
    rate = min(0.999, max(0.001, rate))
    return log(rate / (1.0 - rate))


def _rate(log_odds: float) -> float:
    return 1.0 / (1.0 + exp(-log_odds))


def _path(kind: str) -> tuple[str, ...]:
    """All classes, those of one form, and one where it is finer: of `schema-short#1f00` also `schema-short`."""
    coarse, mark, _ = kind.partition("#")
    return ("", coarse, kind) if mark else ("", coarse)
