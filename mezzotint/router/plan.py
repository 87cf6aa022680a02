"""Which arms to try, one behind the other: every sequence of up to three of up to eight arms, weighed at once."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_ARMS = 8
MOST_ATTEMPTS = 3
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Arms as a plan is made from: all [A] but the last.

    seconds, cost_usd: of one attempt, verification included. deviation: of the logarithm of its seconds.
    acceptance: of a first attempt. failure: that it does not even answer. second: [A, A] acceptance of arm j where arm
    i was rejected before.
    """

    seconds: Floats
    cost_usd: Floats
    deviation: Floats
    acceptance: Floats
    failure: Floats
    second: Floats


class Terms(NamedTuple):
    """What a plan is judged by. verifies: whether a rejected answer is followed by a further attempt, not only none."""

    time: float
    money: float
    miss_s: float
    deadline_s: float
    most_cost_usd: float | None
    most_attempts: int
    verifies: bool


class Plans(NamedTuple):
    """Every plan: the arms [S, 3], −1 behind its end, and all [S] what to minimise, seconds, dollars, acceptance."""

    arms: NDArray[np.int64]
    objective: Floats
    seconds: Floats
    cost_usd: Floats
    acceptance: Floats


def weigh_plans(choices: Choices, terms: Terms) -> Plans:
    """Weigh all plans: J = Σ P(reach k)(T_k + V_k) + P(none)·(deadline − spent), cut at the deadline; money alike.

    A plan that may cost more than allowed is out, whatever it would bring: its objective is infinite. Where nothing
    cuts a plan, the best order is that of (T + V) ÷ p ascending. Source: Weitzman 1979, for independent attempts.
    """
    arms = _sequences(len(choices.seconds), min(MOST_ATTEMPTS, terms.most_attempts))
    reach, answered, left = (np.full(len(arms), value) for value in (1.0, 0.0, terms.deadline_s))
    seconds, money, ceiling = (np.zeros(len(arms)) for _ in range(3))
    for place in range(arms.shape[1]):
        arm, is_there = np.maximum(arms[:, place], 0), arms[:, place] >= 0
        share = np.where(is_there & (left > 0.0), reach, 0.0)
        in_time = _in_time(choices.seconds[arm], choices.deviation[arm], left)
        accepted = _acceptance(choices, arms, place) * in_time
        seconds += share * np.minimum(choices.seconds[arm], np.maximum(left, 0.0))
        money += share * choices.cost_usd[arm]
        ceiling += np.where(is_there, choices.cost_usd[arm], 0.0)
        answered += share * accepted
        goes_on = (1.0 - accepted) if terms.verifies else choices.failure[arm]
        reach = np.where(is_there, reach * goes_on, reach)
        left = np.where(is_there, left - choices.seconds[arm], left)
    miss = np.clip(left, 0.0, terms.miss_s)
    objective = terms.time * (seconds + (1.0 - answered) * miss) + terms.money * money
    if terms.most_cost_usd is not None:
        objective = np.where(ceiling > terms.most_cost_usd, np.inf, objective)
    return Plans(arms, objective, seconds, money, answered)


def _acceptance(choices: Choices, arms: NDArray[np.int64], place: int) -> Floats:
    """Of the arm at a place behind those before it: each rejection there scales its rate as it would alone."""
    arm = np.maximum(arms[:, place], 0)
    rate = choices.acceptance[arm]
    scaled = rate
    for before in range(place):
        scaled = scaled * choices.second[np.maximum(arms[:, before], 0), arm] / np.maximum(rate, 1e-9)
    return np.clip(scaled, 0.0, 1.0)


def _in_time(seconds: Floats, deviation: Floats, left: Floats) -> Floats:
    """Probability that an answer is there in time, its logarithm being about normal."""
    ratio = seconds / np.maximum(left, 1e-9)
    exponent = np.clip(np.log(np.maximum(ratio, 1e-12)) * 1.702 / np.maximum(deviation, 1e-3), -50.0, 50.0)
    return np.where(left > 0.0, 1.0 / (1.0 + np.exp(exponent)), 0.0)


@cache
def _sequences(arms: int, length: int) -> NDArray[np.int64]:
    """All sequences of 1 to `length` of `arms` numbers [S, length], −1 behind the end; 584 for 8 and 3."""
    parts = []
    for count in range(1, length + 1):
        grid = np.indices((arms,) * count).reshape(count, -1).T
        parts.append(np.pad(grid, ((0, 0), (0, length - count)), constant_values=-1))
    found = np.concatenate(parts).astype(np.int64)
    found.setflags(write=False)
    return found
