"""What policies of routing are worth beside each other: paired figures of one experiment; nothing is asked here."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mezzotint.evaluate.interval import Interval

_TAILS = (2.5, 97.5)
_RESAMPLES = 4000


class Task(NamedTuple):
    """One task under one policy. seconds: from when it was due until an answer was accepted, or the deadline."""

    seconds: float
    accepted: bool


Tasks = Sequence[Task]  # of one policy at one load, or of all loads; the same prompts stand at the same places


class Figure(NamedTuple):
    """A value with its 95 % interval, of resampled prompts."""

    value: float
    interval: Interval


class Standing(NamedTuple):
    """A policy beside another one on the same prompts.

    slower: how many times its mean seconds to accepted are the other's. more_accepted: share of tasks, minus the
    other's.
    """

    slower: Figure
    more_accepted: Figure


def mean_seconds(tasks: Tasks) -> Figure:
    """To accepted, tasks that never were at their deadline."""
    return _resampled(len(tasks), lambda picked: _seconds(tasks)[picked].mean(-1))


def acceptance(tasks: Tasks) -> Figure:
    """Share of tasks that were accepted in time."""
    return _resampled(len(tasks), lambda picked: _accepted(tasks)[picked].mean(-1))


def compare(tasks: Tasks, others: Tasks) -> Standing:
    """One policy beside another. Raises: ValueError unless both did the same number of tasks."""
    if len(tasks) != len(others) or not tasks:
        raise ValueError(f"{len(tasks)} tasks stand beside {len(others)}; give the same prompts to both")
    ours, theirs = _seconds(tasks), _seconds(others)
    gained = _accepted(tasks) - _accepted(others)
    return Standing(
        _resampled(len(tasks), lambda picked: ours[picked].mean(-1) / theirs[picked].mean(-1)),
        _resampled(len(tasks), lambda picked: gained[picked].mean(-1)),
    )


def best(policies: Mapping[str, Tasks]) -> str:
    """The policy whose tasks took the least seconds."""
    return min(policies, key=lambda name: _seconds(policies[name]).mean())


def choose_oracle(arms: Mapping[str, Mapping[str, Tasks]]) -> dict[str, str]:
    """For each family of tasks the arm that was fastest to accepted. arms: tasks by family, by arm."""
    families = next(iter(arms.values()))
    return {family: best({arm: tasks[family] for arm, tasks in arms.items()}) for family in families}


def _seconds(tasks: Tasks) -> NDArray[np.float64]:
    return np.array([task.seconds for task in tasks])


def _accepted(tasks: Tasks) -> NDArray[np.float64]:
    return np.array([task.accepted for task in tasks], dtype=np.float64)


def _resampled(count: int, of: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> Figure:
    """A figure of prompts, and where it lies were others of the kind drawn. Source: contract 14."""
    picked = np.random.default_rng(0).integers(count, size=(_RESAMPLES, count))
    low, high = np.percentile(of(picked), _TAILS)
    return Figure(float(of(np.arange(count)[None])[0]), Interval(float(low), float(high)))
