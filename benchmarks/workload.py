"""Real held-out prompts as requests, and whether their answers are right; nothing runs here."""

from collections.abc import Sequence
from typing import NamedTuple

from mezzotint.engine.request import Request
from mezzotint.evaluate.config import Arm
from mezzotint.evaluate.run import answer_limit
from mezzotint.llm import LLM
from mezzotint.tasks import FAMILIES, Example
from mezzotint.text.parse import parse_reply
from mezzotint.text.prompt import Chat

TASKS = ("extract", "call", "repair")  # whose answers have nothing behind them, so that every decoder sees all


class Ask(NamedTuple):
    """Example `seed` of a task's held-out split: its prompt's ids, and how many tokens an answer may have."""

    task: str
    seed: int
    example: Example
    ids: tuple[int, ...]
    max_tokens: int

    def request(self, arm: Arm) -> Request:
        """The same request under the same arm whenever it is asked for."""
        params = arm.params(max_tokens=self.max_tokens, seed=self.seed)
        return Request(id=f"{self.task} {self.seed}", prompt=self.ids, params=params)

    def is_right(self, tokens: Sequence[int], llm: LLM) -> bool:
        """Whether the task's verifier takes an answer."""
        assert llm.tokenizer is not None  # it has encoded the prompt
        return FAMILIES[self.task].accept(self.example, parse_reply(tokens, llm.tokenizer))


def draw_asks(llm: LLM, tasks: Sequence[str], count: int) -> list[Ask]:
    """The first `count` examples of the held-out split, the tasks in turn."""
    return [_ask(llm, tasks[index % len(tasks)], index // len(tasks)) for index in range(count)]


def _ask(llm: LLM, task: str, seed: int) -> Ask:
    example = FAMILIES[task].generate(seed, "test")
    chat = Chat(
        messages=example.messages, tools=example.tools, thinking=example.thinking, begins=example.begins, ends=""
    )
    return Ask(task, seed, example, tuple(llm.encode(chat)), answer_limit(llm, example))
