"""Puts the questions of a suite to an answerer, epoch by epoch, and judges what comes back; adds nothing up."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

from mezzotint.evaluate.extract import content_of
from mezzotint.evaluate.question import Answerer, AnswerError, Cost, Question, Suite
from mezzotint.text.detect import Finding, detect

MOST_EPOCHS = 1000


class Place(NamedTuple):
    """Which answer: that of a question in an epoch, counted from 0."""

    id: str
    epoch: int


@dataclass(frozen=True, kw_only=True)
class Record:
    """One question answered once.

    accepted: None where no verdict could be had, for `reason`. error: why there is no answer at all; then there is
    no cost. findings: signs in its content that the writing went wrong.
    """

    id: str
    epoch: int
    seed: int
    digest: str
    accepted: bool | None
    reason: str = ""
    error: str | None = None
    message: Mapping[str, Any] | None = None
    finish_reason: str | None = None
    findings: tuple[Finding, ...] = ()
    cost: Cost | None = None
    metrics: Mapping[str, Any] | None = None

    @property
    def place(self) -> Place:
        """Which answer it is."""
        return Place(self.id, self.epoch)

    def as_json(self) -> dict[str, Any]:
        """The record as one JSON object."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            **told,
            "findings": [finding._asdict() for finding in self.findings],
            "cost": None if self.cost is None else asdict(self.cost),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Record":
        """Read what `as_json` wrote. Raises: KeyError or TypeError for anything else."""
        findings = tuple(Finding(**finding) for finding in told["findings"])
        cost = told["cost"] and Cost(**{**told["cost"], "steps": tuple(told["cost"]["steps"])})
        return cls(**{**told, "findings": findings, "cost": cost})


async def ask_suite(
    suite: Suite, answerer: Answerer, *, epochs: int, seed: int, at_once: int, done: Collection[Place] = ()
) -> AsyncIterator[Record]:
    """Ask every question once an epoch, `at_once` at a time, what is `done` left out.

    Records come as they are ready. An error before the first answer ends the run: then nothing is as it should be.
    Raises: ValueError with what that error says, and SandboxError where no program can be run.
    """
    places = [(epoch, question) for epoch in range(epochs) for question in suite.questions]
    waiting = iter([each for each in places if Place(each[1].id, each[0]) not in done])
    is_proven, running, ended = bool(done), set[asyncio.Task[Record]](), set[asyncio.Task[Record]]()
    try:
        while True:
            while len(running) < at_once and (following := next(waiting, None)):
                epoch, question = following
                running.add(asyncio.create_task(_ask(suite, question, answerer, epoch, seed)))
            if not running:
                return
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for record in sorted((task.result() for task in ended), key=lambda record: record.place):
                if record.error is not None and not is_proven:
                    raise ValueError(f"question {record.id} got no answer: {record.error}")
                is_proven = True
                yield record
    finally:
        for task in running:
            task.cancel()
        # Those that ended are asked too: an error that nobody looks at is printed by asyncio, traceback and all.
        await asyncio.gather(*running, *ended, return_exceptions=True)


def draw_seed(seed: int, suite: str, id: str, epoch: int) -> int:
    """The seed of one answer: another for each question and epoch, the same in every run; below 2^48."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{suite}/{id}/{epoch}".encode()).digest()[:6], "big")


async def _ask(suite: Suite, question: Question, answerer: Answerer, epoch: int, seed: int) -> Record:
    drawn = draw_seed(seed, suite.name, question.id, epoch)
    place: dict[str, Any] = {"id": question.id, "epoch": epoch, "seed": drawn, "digest": question.digest}
    try:
        said = await answerer.answer(question, drawn)
    except AnswerError as error:
        return Record(**place, accepted=None, error=str(error))
    verdict = await question.verifier.verify(question.messages, said.message)
    return Record(
        **place,
        accepted=verdict.accepted,
        reason=verdict.reason,
        message=said.message,
        finish_reason=said.finish_reason,
        findings=_inspect(question, said.message, said.finish_reason, said.seams),
        cost=said.cost,
        metrics=said.metrics,
    )


def _inspect(
    question: Question, message: Mapping[str, Any], finish_reason: str | None, seams: tuple[int, ...]
) -> tuple[Finding, ...]:
    """Signs in what a reader sees, beyond what the question and a right answer say; calls may stand alone."""
    content = content_of(message)
    if message.get("tool_calls") and not content.strip():
        return ()
    findings = detect(content, seams=[seam for seam in seams if seam <= len(content)], known=question.told)
    is_whole = finish_reason == "stop" and question.around is None
    return tuple(finding for finding in findings if is_whole or finding.kind != "bracket")
