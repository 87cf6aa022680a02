"""What a report on the bundled model keeps of its runs, and the file it is kept in; nothing is judged or shown here."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.distribution import Answers, Drawn
from mezzotint.evaluate.config import Arm, EvaluateConfig
from mezzotint.evaluate.interval import Interval
from mezzotint.evaluate.run import Answer, answer_prompts
from mezzotint.evaluate.score import Row, score
from mezzotint.llm import LLM

Kernels = Literal["compiled", "eager"]


class Scored(NamedTuple):
    """One arm at one task: its row, and for each prompt whether the answer was accepted and how long it took."""

    kernels: Kernels
    row: Row
    accepted: tuple[bool, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """All runs. run: command, machine, versions, commit and weights. drawn: beside transformers, if that was run."""

    run: dict[str, str]
    scored: list[Scored]
    drawn: Drawn | None = None


def score_arms(
    llm: LLM,
    config: EvaluateConfig,
    kernels: Kernels,
    follow: Callable[[Iterable[Answer]], Iterable[Answer]] = iter,
) -> Iterator[Scored]:
    """Answer the prompts of an evaluation. follow: is handed all answers and hands them on, to show progress.

    Returns: one for each task and arm, in that order.
    """
    groups: dict[tuple[str, Arm], list[Answer]] = {}
    for answer in follow(answer_prompts(llm, config)):
        groups.setdefault((answer.prompt.task, answer.arm), []).append(answer)
    for group in groups.values():
        group.sort(key=lambda answer: answer.prompt.index)
        receipts = [answer.completion.receipt for answer in group]
        yield Scored(
            kernels,
            score(group)[0],
            tuple(answer.accepted for answer in group),
            tuple(receipt.prefill_s + receipt.generation_s for receipt in receipts),
        )


def write_report(path: Path, report: Report) -> None:
    """Write a report as JSON."""
    told = {
        "run": report.run,
        "scored": [{**each._asdict(), "row": asdict(each.row)} for each in report.scored],
        "drawn": report.drawn and {side: answers._asdict() for side, answers in report.drawn._asdict().items()},
    }
    path.write_text(json.dumps(told, allow_nan=False) + "\n", encoding="utf-8")


def read_report(path: Path) -> Report:
    """What write_report wrote. Raises: ValueError for a file that is no report."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        sides = told["drawn"]
        return Report(
            run=told["run"],
            scored=[_read_scored(each) for each in told["scored"]],
            drawn=None if sides is None else Drawn(_read_answers(sides["ours"]), _read_answers(sides["theirs"])),
        )
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no report of this version; run the evaluation again without --from") from error


def _read_scored(told: dict[str, Any]) -> Scored:
    names = ("interval", "tokens_per_forward_interval")
    row = Row(**told["row"] | {name: Interval(*told["row"][name]) for name in names})
    return Scored(told["kernels"], row, tuple(told["accepted"]), tuple(told["seconds"]))


def _read_answers(told: dict[str, Any]) -> Answers:
    return Answers(tuple(told["accepted"]), tuple(told["steps"]))
