"""One suite put to one answerer from beginning to end, or on from where an earlier run was."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mezzotint.evaluate.ask import MOST_EPOCHS, Place, Record, ask_suite
from mezzotint.evaluate.config import MAX_SEED
from mezzotint.evaluate.journal import Journal, answers_of
from mezzotint.evaluate.question import Answerer, Suite
from mezzotint.evaluate.total import SuiteRow, add_up


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often what is asked.

    epochs: times that each question is asked, with other seeds. k: of pass@k and pass^k; None means epochs. seed: the
    same one gives the same questions and seeds. at_once: questions that wait for an answer. output: the file that
    answers are written to, and that a run goes on with.
    Raises: ValueError naming option, value and remedy.
    """

    epochs: int = 1
    k: int | None = None
    seed: int = 0
    at_once: int = 1
    output: Path | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.epochs <= MOST_EPOCHS:
            raise ValueError(f"epochs is {self.epochs}; ask each question 1 to {MOST_EPOCHS} times")
        if not 1 <= self.most <= self.epochs:
            raise ValueError(f"k is {self.k}; take 1 to {self.epochs}, the epochs, or ask for more of those")
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed is {self.seed}; it must lie between 0 and {MAX_SEED}")
        if self.at_once < 1:
            raise ValueError(f"at_once is {self.at_once}; ask at least 1 question at once")

    @property
    def most(self) -> int:
        """k, whichever way it was said."""
        return self.epochs if self.k is None else self.k


class Result(NamedTuple):
    """The row of a run, and its answers by their places."""

    row: SuiteRow
    answers: Mapping[Place, Record]


async def run_suite(suite: Suite, answerer: Answerer, plan: Plan, note: Callable[[Record], None]) -> Result:
    """Ask what has no answer yet, write down what comes, and add it up. note: is called with each record, old ones too.

    Raises: ValueError for a file of other answers, and where nothing can be asked; SandboxError.
    """
    configuration = {"suite": suite.name, "seed": plan.seed, **answerer.traits}
    with nullcontext() if plan.output is None else Journal(plan.output, configuration) as journal:
        answers = {} if journal is None else answers_of(journal.records, suite)
        answers = {place: record for place, record in answers.items() if place.epoch < plan.epochs}
        for record in answers.values():
            note(record)
        how = {"epochs": plan.epochs, "seed": plan.seed, "at_once": plan.at_once}
        async for record in ask_suite(suite, answerer, done=[*answers], **how):
            if journal is not None:
                journal.append(record)
            if record.error is None:
                answers[record.place] = record
            note(record)
    asked = len(suite.questions) * plan.epochs
    how = {"epochs": plan.epochs, "k": plan.most, "errors": asked - len(answers)}
    return Result(add_up(suite.name, answerer.traits, answers.values(), **how), answers)
