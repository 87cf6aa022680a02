"""The families of tasks as suites for any model that chats: schema extraction is `extract`, tool calls are `call`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mezzotint.evaluate.config import BLANKS, MAX_PROMPTS
from mezzotint.evaluate.extract import content_of
from mezzotint.evaluate.question import Question, Suite
from mezzotint.tasks import FAMILIES, Example
from mezzotint.text.parse import Reply, ToolCall
from mezzotint.types import Verdict

CHATS = tuple(name for name in FAMILIES if name not in BLANKS)  # a blank is no chat
_MAX_TOKENS = 512


@dataclass(frozen=True, kw_only=True)
class FamilyVerifier:
    """Takes what the family of an example takes."""

    example: Example

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """See Verifier."""
        try:
            reply = read_reply(answer)
        except (KeyError, TypeError, ValueError) as error:
            return Verdict(accepted=False, reason=f"a call cannot be read: {error!r}")
        accepted = FAMILIES[self.example.family].accept(self.example, reply)
        return Verdict(accepted=accepted, reason="" if accepted else "it is not the right answer")


def read_reply(answer: Mapping[str, Any]) -> Reply:
    """An assistant's message in OpenAI's form as a reply. Raises: KeyError, TypeError or ValueError for a bad call."""
    made = [call["function"] for call in answer.get("tool_calls") or ()]
    calls = tuple(ToolCall(call["name"], json.loads(call["arguments"])) for call in made)
    thoughts = answer.get("reasoning_content") or answer.get("reasoning") or ""
    return Reply(content_of(answer), thoughts if isinstance(thoughts, str) else "", calls)


def draw_family(name: str, n: int, seed: int) -> Suite:
    """The first `n` held-out examples of a seed. Raises: ValueError for more than 1,000,000."""
    if n > MAX_PROMPTS:
        raise ValueError(f"n is {n}; ask for at most {MAX_PROMPTS} questions")
    first = seed * MAX_PROMPTS
    examples = [(at, FAMILIES[name].generate(at, "test")) for at in range(first, first + n)]
    return Suite(name=name, questions=tuple(_question(at, example) for at, example in examples))


def _question(at: int, example: Example) -> Question:
    # The labels of `choose` are answered bare, which its schema does not say.
    is_bare = example.family == "choose" and example.schema is not None
    return Question(
        id=str(at),
        messages=example.messages,
        tools=example.tools,
        verifier=FamilyVerifier(example=example),
        max_tokens=_MAX_TOKENS,
        schema=None if is_bare else example.schema,
        choices=tuple(example.schema["enum"]) if is_bare and example.schema else (),
        right=example.answer,
        thinking=example.thinking,
    )
