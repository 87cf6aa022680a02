"""Fits the constants of `mezzotint plan` by least squares of relative errors; measures nothing."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import product
from math import exp, log

from scipy.optimize import least_squares

from mezzotint.bench import published
from mezzotint.bench.agreement import report_question
from mezzotint.bench.operators import Forward, Setting, operators
from mezzotint.bench.roofline import Efficiency, Work, seconds

# Each fit is run from every corner of these and the best is kept: the longer of two times has a kink, where one start
# may get stuck. In the order of the fields.
_STARTS = ((0.3, 1.2), (0.4, 0.9), (0.4,), (1.0,), (20.0, 100.0), (0.1,))
_LEAST, _MOST = (0.01, 0.001, 0.001, 0.01, 0.1, 1e-4), (50.0, 5.0, 5.0, 1e3, 1e4, 1e2)


def fit(errors: Callable[[Efficiency], Sequence[float]]) -> Efficiency:
    """The efficiencies with the least squares of `errors`, to three significant digits."""
    bounds = ([log(number) for number in _LEAST], [log(number) for number in _MOST])
    found = [
        least_squares(lambda logs: errors(_efficiency(logs)), [log(number) for number in start], bounds=bounds)
        for start in product(*_STARTS)
    ]
    best = min(found, key=lambda each: float(each.cost))
    return _efficiency([log(float(f"{exp(number):.3g}")) for number in best.x])


def fit_published() -> Efficiency:
    """The efficiencies that the twelve published operator times give, and the published wait between two steps."""
    question = report_question()
    context, C = published.CONTEXT + published.OUTPUT / 2, question.setting.config.canvas_length
    step = operators(question.setting, Forward(1, 1, context, sampled=1))
    canvas = operators(question.setting, Forward(1, C, context, C, denoises=True))
    timed = [
        (works, 1e-3 * taken_ms)
        for name, times in published.OPERATORS_MS.items()
        for works, taken_ms in ((step[name], times.ar), (canvas[name], times.diffusion))
    ]

    def errors(efficiency: Efficiency) -> list[float]:
        said = [
            sum(seconds(work, question.setting.accelerator, efficiency) for work in works) / taken
            for works, taken in timed
        ]
        return [log(efficiency.host_ms / published.HOST_MS), *map(log, said)]

    return fit(errors)


def fit_forwards(setting: Setting, measured: Sequence[tuple[Forward, float]]) -> Efficiency:
    """The efficiencies that times of whole forwards with their sampling give, in ms."""
    timed = [(_works(setting, forward), taken_ms) for forward, taken_ms in measured]
    return fit(lambda efficiency: [log(_ms(setting, works, efficiency) / taken_ms) for works, taken_ms in timed])


def forward_ms(setting: Setting, forward: Forward, efficiency: Efficiency) -> float:
    """Milliseconds of a forward with its sampling and the wait before it."""
    return _ms(setting, _works(setting, forward), efficiency)


def _works(setting: Setting, forward: Forward) -> list[Work]:
    return [work for part in operators(setting, forward).values() for work in part]


def _ms(setting: Setting, works: Sequence[Work], efficiency: Efficiency) -> float:
    return efficiency.host_ms + 1e3 * sum(seconds(work, setting.accelerator, efficiency) for work in works)


def _efficiency(logs: Sequence[float]) -> Efficiency:
    names = (field.name for field in fields(Efficiency))
    return Efficiency(**{name: float(f"{exp(number):.12g}") for name, number in zip(names, logs, strict=True)})
