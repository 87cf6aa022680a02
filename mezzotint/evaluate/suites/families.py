"""The families of tasks as suites for any model that chats: schema extraction is `extract`, tool calls are `call`."""

from mezzotint.evaluate.config import BLANKS, MAX_PROMPTS
from mezzotint.evaluate.question import Question, Suite
from mezzotint.tasks import FAMILIES, Example
from mezzotint.tasks.message import FamilyVerifier

CHATS = tuple(name for name in FAMILIES if name not in BLANKS)  # a blank is no chat
_MAX_TOKENS = 512


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
        verifier=FamilyVerifier(family=FAMILIES[example.family], example=example),
        max_tokens=_MAX_TOKENS,
        schema=None if is_bare else example.schema,
        choices=tuple(example.schema["enum"]) if is_bare and example.schema else (),
        right=example.answer,
        thinking=example.thinking,
    )
