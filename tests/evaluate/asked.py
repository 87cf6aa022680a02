"""Questions, answers and an answerer for tests of what is done with them; no test lives here."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mezzotint.evaluate.ask import Record
from mezzotint.evaluate.question import AnswerError, Cost, Question, Said, Suite
from mezzotint.types import Verdict

TRAITS = {
    "model": "m",
    "url": None,
    "decoder": "diffusion",
    "sampler": None,
    "steps": None,
    "preset": None,
    "temperature": 1.0,
    "form": "free",
}


class SaysYes:
    """Takes answers that say yes, refuses those that say no, and cannot tell of others."""

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        said = answer["content"]
        return Verdict(accepted={"yes": True, "no": False}.get(said), reason="" if said == "yes" else "not yes")


def question(id: str, **more: Any) -> Question:
    asked = {"messages": ({"role": "user", "content": f"question {id}"},), "verifier": SaysYes(), "max_tokens": 9}
    return Question(id=id, **{**asked, **more})


def suite(*ids: str, **more: Any) -> Suite:
    return Suite(name="s", questions=tuple(question(id) for id in ids), **more)


def record(id: str, epoch: int = 0, accepted: bool | None = True, **more: Any) -> Record:
    whole: dict[str, Any] = {
        "seed": 1,
        "digest": question(id).digest,
        "message": {"role": "assistant", "content": {True: "yes", False: "no", None: "so"}[accepted]},
        "finish_reason": "stop",
        "cost": Cost(seconds=0.5, output_tokens=8),
    }
    return Record(id=id, epoch=epoch, accepted=accepted, **{**whole, **more})


class Scribe:
    """Answers as `say` does, a text each or an error, and notes what it was asked and how much of that at once."""

    def __init__(self, say: Callable[[str, int], str | AnswerError]) -> None:
        self.asked: list[tuple[str, int]] = []
        self.most_at_once = 0
        self.traits = TRAITS
        self._say, self._now = say, 0

    async def answer(self, question: Question, seed: int) -> Said:
        self.asked.append((question.id, seed))
        self._now += 1
        self.most_at_once = max(self._now, self.most_at_once)
        await asyncio.sleep(0)
        self._now -= 1
        said = self._say(question.id, seed)
        if isinstance(said, AnswerError):
            raise said
        message = {"role": "assistant", "content": said}
        return Said(message=message, finish_reason="stop", cost=Cost(seconds=0.25, output_tokens=4), seams=(3,))
