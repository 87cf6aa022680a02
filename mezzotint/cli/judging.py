"""The flags of a judge, and what it is asked once answers are there; how it judges is said by the evaluate room."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from mezzotint.evaluate.judge import EndpointJudge
    from mezzotint.evaluate.question import Suite
    from mezzotint.evaluate.session import Result

_AT_ONCE = 8


def _option(help: str) -> Any:
    return typer.Option(help=help)


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Which model judges answers, and by what."""

    judge_url: Annotated[str | None, _option("The server of a model that judges, up to and with /v1.")] = None
    judge_model: Annotated[str | None, _option("Its name there; not the model under test.")] = None
    judge_self: Annotated[
        bool, typer.Option("--judge-self", help="Let the model under test judge itself nevertheless.")
    ] = False
    rubric: Annotated[
        str | None, _option("What the judge goes by; that an answer is complete and correct unless given.")
    ] = None
    retests: Annotated[
        int | None, _option("Times that each grade is asked for again, which shows the judge's noise; 1 unless given.")
    ] = None
    against: Annotated[
        Path | None, _option("Compare with the answers of this file, an earlier --output, in both orders.")
    ] = None


class Judged(NamedTuple):
    """What a judge gave, as sentences and as JSON."""

    lines: tuple[str, ...] = ()
    told: Mapping[str, Any] = {}


def open_judge(judging: Judging, url: str | None, model: str | None) -> "EndpointJudge | None":
    """The judge that the flags name, if they do. url, model: of the one under test, where that is on a server.

    Raises: ValueError naming flag, value and remedy; OSError for a file --against that is not there.
    """
    from mezzotint.evaluate.journal import read_journal
    from mezzotint.evaluate.judge import EndpointJudge, is_same_model

    if judging.judge_url is None or judging.judge_model is None:
        if judging != Judging():
            raise ValueError("a judge needs --judge-url and --judge-model; give both, or no flag of a judge")
        return None
    is_same = url and model and is_same_model((judging.judge_url, judging.judge_model), (url, model))
    if is_same and not judging.judge_self:
        told = f"--judge-model is {judging.judge_model!r} at {judging.judge_url}, the model under test"
        raise ValueError(f"{told}; name another one, or say --judge-self")
    if judging.retests is not None and judging.retests < 0:
        raise ValueError(f"--retests is {judging.retests}; give 0 or more")
    if judging.against is not None:
        read_journal(judging.against)  # a wrong file is told before anything is asked, not behind all answers
    key = os.environ.get("MEZZOTINT_JUDGE_API_KEY") or os.environ.get("OPENAI_API_KEY") or "none"
    return EndpointJudge(judging.judge_url, judging.judge_model, key)


async def judge_answers(judging: Judging, judge: "EndpointJudge", suite: "Suite", result: "Result") -> Judged:
    """Have answers graded, and compared where there are others. Raises: ValueError naming what is wrong."""
    from mezzotint.evaluate.assess import Standard, assess, compare_answers
    from mezzotint.evaluate.journal import answers_of, read_journal
    from mezzotint.evaluate.judge import DEFAULT_RUBRIC
    from mezzotint.evaluate.suite_table import format_assessment, format_comparison

    if any(question.around is not None for question in suite.questions):
        raise ValueError(f"suite {suite.name} has blanks, which no judge is asked about; leave the judge out")
    rubric = judging.rubric or DEFAULT_RUBRIC
    how: dict[str, int] = {"retests": 1 if judging.retests is None else judging.retests, "at_once": _AT_ONCE}
    graded = await assess(judge, suite, result.answers.values(), Standard(rubric), **how)
    lines, told = [format_assessment(graded)], {"judge": asdict(graded)}
    if judging.against is not None:
        others = answers_of(read_journal(judging.against)[1], suite)
        compared = await compare_answers(judge, suite, result.answers, others, rubric, at_once=_AT_ONCE)
        lines.append(format_comparison(compared))
        told["comparison"] = asdict(compared)
    return Judged(tuple(lines), told)
