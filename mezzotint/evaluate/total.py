"""Adds the records of a suite up to one row; nothing is asked or judged here."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from mezzotint.evaluate.ask import Record
from mezzotint.evaluate.interval import Interval, clustered_interval
from mezzotint.evaluate.passes import Tally, pass_all, pass_at
from mezzotint.evaluate.question import Cost
from mezzotint.text.detect import KINDS
from mezzotint.types import tokens_per_forward


@dataclass(frozen=True, kw_only=True)
class SuiteRow:
    """How one answerer did at one suite: `tasks` questions, each asked in `epochs` epochs.

    answers: those there are; unscored: those without a verdict; errors: questions asked in vain. None of the last two
    counts as passed or failed. pass_rate: mean over tasks of the share of accepted answers, pass@1, with its interval
    of 95 %, clustered by task. pass_at_k, pass_all_k: at least one, all of k answers accepted, over the `complete`
    tasks with k verdicts; None where there is none. signs: of each kind, the share of answers that show it. truncated:
    share that was cut at max_tokens. tokens_per_forward, steps (mean a block), step_budget, sampler: of a canvas, as
    far as they were told. seconds, output_tokens: mean of an answer.
    """

    suite: str
    model: str
    url: str | None
    decoder: str | None
    sampler: str | None
    preset: str | None
    temperature: float | None
    form: str
    step_budget: int | None
    tasks: int
    epochs: int
    answers: int
    unscored: int
    errors: int
    pass_rate: float | None
    interval: Interval | None
    k: int
    pass_at_k: float | None
    pass_all_k: float | None
    complete: int
    signs: Mapping[str, float]
    truncated: float
    seconds: float | None
    output_tokens: float | None
    tokens_per_forward: float | None
    steps: float | None


def add_up(
    suite: str, traits: Mapping[str, Any], records: Iterable[Record], *, epochs: int, k: int, errors: int
) -> SuiteRow:
    """One row of the records of a suite that have an answer. errors: questions that got none."""
    answered = list(records)
    costs = [record.cost for record in answered if record.cost is not None]
    tallies = tally_tasks(answered)
    judged = [tally for tally in tallies.values() if tally.judged]
    shares = [tally.accepted / tally.judged for tally in judged]
    complete = [tally for tally in judged if tally.judged >= k]
    return SuiteRow(
        suite=suite,
        **{name: traits[name] for name in ("model", "url", "decoder", "preset", "temperature", "form")},
        sampler=_known([cost.sampler for cost in costs]) or traits["sampler"],
        step_budget=_known([cost.step_budget for cost in costs]) or traits["steps"],
        tasks=len(tallies),
        epochs=epochs,
        answers=len(answered),
        unscored=sum(record.accepted is None for record in answered),
        errors=errors,
        pass_rate=fmean(shares) if shares else None,
        interval=clustered_interval(shares) if shares else None,
        k=k,
        pass_at_k=fmean(pass_at(k, tally) for tally in complete) if complete else None,
        pass_all_k=fmean(pass_all(k, tally) for tally in complete) if complete else None,
        complete=len(complete),
        signs={kind: _share(answered, kind) for kind in KINDS},
        truncated=fmean(record.finish_reason == "length" for record in answered) if answered else 0.0,
        **_add_costs(costs),
    )


def tally_tasks(records: Iterable[Record]) -> dict[str, Tally]:
    """Of each task with answers, how many were judged and accepted."""
    judged, accepted = Counter[str](), Counter[str]()
    for record in records:
        judged[record.id] += record.accepted is not None
        accepted[record.id] += record.accepted is True
    return {id: Tally(judged[id], accepted[id]) for id in judged}


def _add_costs(costs: Sequence[Cost]) -> dict[str, Any]:
    tokens = [cost.output_tokens for cost in costs if cost.output_tokens is not None]
    told = [cost for cost in costs if cost.forwards and cost.output_tokens is not None]
    steps = [step for cost in costs for step in cost.steps]
    forwards = sum(cost.forwards or 0 for cost in told)
    written = sum(cost.output_tokens or 0 for cost in told)
    return {
        "seconds": fmean(cost.seconds for cost in costs) if costs else None,
        "output_tokens": fmean(tokens) if tokens else None,
        "tokens_per_forward": tokens_per_forward(written, forwards) if told else None,
        "steps": fmean(steps) if steps else None,
    }


def _share(records: Sequence[Record], kind: str) -> float:
    return fmean(any(sign.kind == kind for sign in record.findings) for record in records) if records else 0.0


def _known(values: Sequence[Any]) -> Any:
    return next((value for value in values if value is not None), None)
