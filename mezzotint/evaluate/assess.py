"""What a judge makes of answers, and what is to be made of the judge: its noise, and its agreement with verifiers."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from mezzotint.evaluate.ask import Place, Record
from mezzotint.evaluate.interval import Interval, clustered_interval
from mezzotint.evaluate.judge import EndpointJudge, Preference
from mezzotint.evaluate.question import Suite
from mezzotint.evaluate.verify import Rating

S = TypeVar("S")
T = TypeVar("T")


class Standard(NamedTuple):
    """What answers are judged by: grades from 1 to `grades`, of which those from `least` on are taken."""

    rubric: str
    grades: int = 5
    least: int = 4


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """A judge's grades of `answers` answers, each graded 1 + `retests` times.

    unscored: gradings that could not be read, of all; they count nowhere else. accepted: share of answers whose first
    grade is high enough. agreement: share of answers of which judge and verifier say the same, with its interval of
    95 %, clustered by task; kappa: the same beyond chance (Cohen), None where one of them says one thing only;
    compared: answers with both verdicts. flips: share of answers of which the judge itself says both; spread: mean
    difference of two of its grades for one answer; None without retests.
    """

    answers: int
    retests: int
    unscored: int
    mean_grade: float | None
    accepted: float | None
    compared: int
    agreement: float | None
    agreement_interval: Interval | None
    kappa: float | None
    flips: float | None
    spread: float | None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How a judge likes answers beside other ones to the same questions.

    swayed: verdicts that changed with the order of the two, which are among the ties. unscored: pairs without a verdict
    that could be read. preference: wins and half of the ties ÷ pairs with a verdict, its interval clustered by task.
    """

    pairs: int
    wins: int
    ties: int
    losses: int
    swayed: int
    unscored: int
    preference: float | None
    interval: Interval | None


async def assess(
    judge: EndpointJudge, suite: Suite, records: Iterable[Record], standard: Standard, *, retests: int, at_once: int
) -> Assessment:
    """Have each answer graded, again for each retest. Raises: ValueError where the judge is refused altogether."""
    messages = {question.id: question.messages for question in suite.questions}
    answered = [record for record in records if record.message is not None]

    async def rate(record: Record) -> list[Rating]:
        how: Any = {"rubric": standard.rubric, "grades": standard.grades}
        return [await judge.rate(messages[record.id], record.message or {}, **how) for _ in range(1 + retests)]

    rated = await _map(rate, answered, at_once)
    grades = [[rating.grade for rating in ratings if rating.grade is not None] for ratings in rated]
    firsts = [ratings[0].grade for ratings in rated]
    known = [grade for grade in firsts if grade is not None]
    both = [
        (record.id, record.accepted, grade >= standard.least)
        for record, grade in zip(answered, firsts, strict=True)
        if record.accepted is not None and grade is not None
    ]
    again = [each for each in grades if len(each) > 1]
    shares = _by_task([(id, float(verified == judged)) for id, verified, judged in both])
    return Assessment(
        answers=len(answered),
        retests=retests,
        unscored=sum(rating.grade is None for ratings in rated for rating in ratings),
        mean_grade=fmean(known) if known else None,
        accepted=fmean(grade >= standard.least for grade in known) if known else None,
        compared=len(both),
        agreement=fmean(verified == judged for _, verified, judged in both) if both else None,
        agreement_interval=clustered_interval(shares) if shares else None,
        kappa=cohen_kappa([(verified, judged) for _, verified, judged in both]),
        flips=fmean(len({grade >= standard.least for grade in each}) > 1 for each in again) if again else None,
        spread=fmean(abs(a - b) for each in again for a, b in combinations(each, 2)) if again else None,
    )


async def compare_answers(
    judge: EndpointJudge,
    suite: Suite,
    ours: Mapping[Place, Record],
    theirs: Mapping[Place, Record],
    rubric: str,
    *,
    at_once: int,
) -> Comparison:
    """Compare the answers that both have to the same questions in the same epochs.

    Raises: ValueError where there is none, or the judge is refused altogether.
    """
    messages = {question.id: question.messages for question in suite.questions}
    if not (shared := [place for place in ours if place in theirs]):
        raise ValueError("the two have no answered question in common; compare answers to the same suite")

    async def compare(place: Place) -> Preference:
        pair = ours[place].message or {}, theirs[place].message or {}
        return await judge.compare(messages[place.id], *pair, rubric=rubric)

    said = await _map(compare, shared, at_once)
    worth = {"first": 1.0, "tie": 0.5, "second": 0.0}
    scored = [(place.id, worth[one.better]) for place, one in zip(shared, said, strict=True) if one.better]
    count = {name: sum(one.better == name for one in said) for name in worth}
    return Comparison(
        pairs=len(shared),
        wins=count["first"],
        ties=count["tie"],
        losses=count["second"],
        swayed=sum(one.swayed for one in said),
        unscored=len(shared) - len(scored),
        preference=fmean(value for _, value in scored) if scored else None,
        interval=clustered_interval(_by_task(scored)) if scored else None,
    )


def cohen_kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Agreement of two raters beyond what their own rates would bring about; None where that is certain anyway.

    Source: Cohen 1960.
    """
    if not pairs:
        return None
    seen = fmean(a == b for a, b in pairs)
    first, second = fmean(a for a, _ in pairs), fmean(b for _, b in pairs)
    due = first * second + (1 - first) * (1 - second)
    return None if due == 1 else (seen - due) / (1 - due)


def _by_task(values: Sequence[tuple[str, float]]) -> list[float]:
    tasks: dict[str, list[float]] = {}
    for id, value in values:
        tasks.setdefault(id, []).append(value)
    return [fmean(each) for each in tasks.values()]


async def _map(work: Callable[[S], Awaitable[T]], items: Sequence[S], at_once: int) -> list[T]:
    """`work` on each item, so many at a time, in their order; the first error ends all."""
    gate = asyncio.Semaphore(at_once)

    async def one(item: S) -> T:
        async with gate:
            return await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    return [task.result() for task in tasks]
