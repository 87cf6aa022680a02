"""One choice among feasible arms: by pin, by rule, by plans, and the share spent on learning; no state but seats."""

from collections.abc import Callable, Sequence
from math import sqrt
from random import Random
from typing import NamedTuple

import numpy as np

from mezzotint.router.estimates import Estimates, writer_of
from mezzotint.router.exploring import find_least_known
from mezzotint.router.feasible import Option, find_pin
from mezzotint.router.incumbents import Incumbents
from mezzotint.router.latency import load_bucket
from mezzotint.router.plan import MOST_ARMS, Choices, Floats, Terms, weigh_plans
from mezzotint.router.policy_file import PolicyConfig
from mezzotint.router.record import Ask
from mezzotint.router.rule import order_by_rule

_DRAWS = 200


class Choice(NamedTuple):
    """What of a decision is chosen; seconds, cost_usd: of the whole plan."""

    plan: tuple[str, ...]
    reason: str
    propensity: float
    seconds: float
    cost_usd: float


class _Best(NamedTuple):
    """The best plan that begins with an arm."""

    plan: tuple[str, ...]
    objective: float
    seconds: float
    cost_usd: float


class Chooser:
    """Chooses by a policy's configuration from what is believed."""

    def __init__(self, config: PolicyConfig, estimates: Estimates, seed: int) -> None:
        """seed: of what is drawn."""
        self._config, self._estimates = config, estimates
        self._random, self._draws = Random(seed), np.random.default_rng(seed)
        self.incumbents = Incumbents(config)

    def choose(self, ask: Ask, options: Sequence[Option], cold_cache: Callable[[], Sequence[Option]]) -> Choice:
        """Choose among options that are feasible.

        cold_cache: the same options, as they were if no engine held what the talk began with.
        """
        if not options:
            return Choice((), "none", 1.0, 0.0, 0.0)
        pin = find_pin(ask, self._config.pins)
        options = sorted(options, key=lambda option: (option.arm.name != pin, _time_to_accepted(option)))[:MOST_ARMS]
        best = self._best_by_arm(ask, options)
        if pin in best:
            return _choice(best[pin], "pinned", 1.0)
        if len(options) == 1:
            return _choice(best[options[0].arm.name], "only_one", 1.0)
        arm, reason = self._prefer(ask, options, best, cold_cache)
        share = self._share(options)
        learnt = find_least_known(ask, options, self._config.weights[ask.goal], arm) if share else None
        if learnt is None:
            return _choice(best[arm], reason, 1.0)
        if self._random.random() < share:
            return _choice(best[learnt], "explore", share)
        return _choice(best[arm], reason, 1.0 - share)

    def _prefer(
        self, ask: Ask, options: Sequence[Option], best: dict[str, _Best], cold_cache: Callable[[], Sequence[Option]]
    ) -> tuple[str, str]:
        """The arm to take if nothing is to be learnt, and why."""
        measured = {option.arm.name for option in options if option.is_measured}
        if not measured:
            tokens = max(self._estimates.tokens(option.arm.name, ask.kind, ask.most_tokens) for option in options)
            return order_by_rule(options, self._config.crossover, tokens)[0].arm.name, "rule"
        known = {arm: best[arm].objective for arm in best if arm in measured}
        least = min(known, key=lambda arm: known[arm])
        place = (ask.kind, ask.goal, max(load_bucket(option.load) for option in options))
        if any(option.cached for option in options):
            names = {option.arm.name for option in options}
            plain = self._best_by_arm(ask, [option for option in cold_cache() if option.arm.name in names])
            if least != min(plain, key=lambda arm: plain[arm].objective):
                return least, "sticky"
        seated = self.incumbents.choose(place, known, self._compare(ask, options, best))
        if len(measured) < len(options):
            return seated, "cold"
        return seated, "expected_time" if seated == least else "incumbent"

    def _best_by_arm(self, ask: Ask, options: Sequence[Option]) -> dict[str, _Best]:
        """For each arm the best plan that begins with it."""
        plans = weigh_plans(self._choices(ask, options), self._terms(ask))
        found = {}
        for index, option in enumerate(options):
            rows = np.flatnonzero(plans.arms[:, 0] == index)
            row = rows[np.argmin(plans.objective[rows])]
            names = tuple(options[arm].arm.name for arm in plans.arms[row] if arm >= 0)
            numbers = (plans.objective[row], plans.seconds[row], plans.cost_usd[row])
            found[option.arm.name] = _Best(names, *map(float, numbers))
        return found

    def _choices(self, ask: Ask, options: Sequence[Option]) -> Choices:
        alone = [option.estimate.acceptance.mean for option in options]
        writers = [writer_of(option.arm) for option in options]
        rejected = np.array(self._estimates.acceptance.behind(ask.kind, writers, alone))
        answering = np.array([option.estimate.answering for option in options])
        acceptance = np.array([option.acceptance for option in options])
        return Choices(
            seconds=np.array([option.seconds for option in options]),
            cost_usd=np.array([option.estimate.cost_usd for option in options]),
            deviation=np.array([option.estimate.deviation for option in options]),
            acceptance=acceptance,
            failure=1.0 - answering,
            second=_behind(np.array(alone), answering, rejected),
        )

    def _terms(self, ask: Ask) -> Terms:
        weights = self._config.weights[ask.goal]
        return Terms(
            time=weights.time,
            money=weights.money,
            miss_s=weights.miss_s,
            deadline_s=ask.deadline_s,
            most_cost_usd=ask.max_cost_usd,
            most_attempts=ask.max_attempts,
            verifies=ask.verifies,
        )

    def _compare(self, ask: Ask, options: Sequence[Option], best: dict[str, _Best]) -> Callable[[str, str], float]:
        """How probable it is that one arm's plan is better than another's, by draws from what is believed."""
        seen = {option.arm.name: option for option in options}
        weights = self._config.weights[ask.goal]
        rates: dict[str, Floats] = {}  # arms of one writer are accepted alike, whatever their rate is

        def draw(arm: str, *, is_alike: bool) -> Floats:
            option, plan = seen[arm], best[arm]
            own = weights.time * option.seconds + weights.money * option.estimate.cost_usd
            spent = weights.time * plan.seconds + weights.money * plan.cost_usd
            missed = plan.objective - spent
            writer = writer_of(option.arm)
            if writer not in rates:
                rates[writer] = self._draws.beta(*option.estimate.acceptance, _DRAWS)
            reach = (1.0 - option.estimate.answering * rates[writer]) / max(1e-6, 1.0 - option.acceptance)
            error = option.estimate.deviation / sqrt(max(1.0, self._estimates.attempts(arm)))
            times = np.exp(error * self._draws.standard_normal(_DRAWS))
            costs: Floats = own * times + reach * max(0.0, spent - own)
            return costs if is_alike else costs + reach * missed

        def is_better(new: str, old: str) -> float:
            writers = [sorted(writer_of(seen[name].arm) for name in best[arm].plan) for arm in (new, old)]
            is_alike = writers[0] == writers[1]  # then what is missed is the same, whatever it is
            return float((draw(new, is_alike=is_alike) < draw(old, is_alike=is_alike)).mean())

        return is_better

    def _share(self, options: Sequence[Option]) -> float:
        """Of decisions that is spent on learning here."""
        is_new = not all(option.is_measured for option in options)
        has_changed = any(self._estimates.is_to_remeasure(load) for load in _loads(options))
        return self._config.remeasure if is_new or has_changed else self._config.exploration


def _behind(alone: Floats, answering: Floats, rejected: Floats) -> Floats:
    """Acceptance of arms [j] behind attempts of arms [i] that came to nothing; rejected: behind rejections.

    Only a rejection tells of the request; where an arm did not even answer, another one has all of its own chances.
    """
    failed = ((1.0 - answering) / np.maximum(1e-9, 1.0 - alone * answering))[:, None]
    others = alone * (1.0 - np.eye(len(alone)))
    behind: Floats = answering * (failed * others + (1.0 - failed) * rejected)
    return behind


def _time_to_accepted(option: Option) -> float:
    return option.seconds / max(1e-3, option.acceptance)


def _loads(options: Sequence[Option]) -> set[int]:
    return {load_bucket(option.load) for option in options}


def _choice(best: _Best, reason: str, propensity: float) -> Choice:
    return Choice(best.plan, reason, propensity, best.seconds, best.cost_usd)
