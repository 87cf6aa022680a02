"""Rows behind one context: what is held of it, what each sees, and that none sees another."""

from collections.abc import Generator
from typing import Any

import torch

from mezzotint import LLM
from mezzotint.decoding.abreast import Abreast
from mezzotint.decoding.program import Encode, run_encode
from mezzotint.llm.rows import Rows
from tests.llm.tiny import CANVAS

PROMPT = [2, 40, 50, 60, 70]


def ask(rows: Rows, *items: Any) -> list[Any]:
    """The answers to needs, one behind the other."""
    answers = []

    def program() -> Generator[Any, Any, None]:
        for item in items:
            answers.append((yield item))

    assert not list(rows.run(program()))
    return answers


def alone(llm: LLM, tokens: list[int], read: int) -> torch.Tensor:
    """Logits of the last tokens of a context by the plain forward."""
    encoded = run_encode(Encode(tokens, 0, read), llm.model, llm.model.new_kv(1, 64))
    assert encoded is not None
    return encoded.logits


def test_each_row_sees_the_context_and_itself(llm: LLM) -> None:
    rows = Rows(llm.model, len(PROMPT) + CANVAS, 3, CANVAS)
    assert rows.hold(PROMPT) == 0
    texts = [[80, 81], [90, 91, 92, 93], [80]]
    for _ in range(2):  # what rows have encoded is forgotten
        at = len(PROMPT)
        [_, together] = ask(rows, Encode(PROMPT, 0, 0), Abreast([Encode(text, at, len(text)) for text in texts]))
        for text, encoded in zip(texts, together, strict=True):
            torch.testing.assert_close(encoded.logits, alone(llm, PROMPT + text, len(text)))


def test_of_a_prompt_that_begins_as_the_last_one_did_so_much_is_held(llm: LLM) -> None:
    rows = Rows(llm.model, len(PROMPT) + CANVAS, 2, CANVAS)
    rows.hold(PROMPT)
    ask(rows, Encode(PROMPT, 0, 0), Abreast([Encode([80], len(PROMPT), 1)] * 2))
    later = [*PROMPT[:3], 99, 98]
    assert rows.hold(later) == 3
    [_, [first, second]] = ask(rows, Encode(later[3:], 3, 0), Abreast([Encode([n], len(later), 1) for n in (80, 81)]))
    torch.testing.assert_close(first.logits, alone(llm, [*later, 80], 1))
    torch.testing.assert_close(second.logits, alone(llm, [*later, 81], 1))


def test_a_longer_prompt_than_was_reckoned_with_gets_room_and_is_encoded_anew(llm: LLM) -> None:
    rows = Rows(llm.model, len(PROMPT) + CANVAS, 1, CANVAS)
    rows.hold(PROMPT)
    ask(rows, Encode(PROMPT, 0, 0))
    longer = [*PROMPT, *range(100, 120)]
    assert rows.hold(longer) == 0
    [encoded] = ask(rows, Encode(longer, 0, 1))
    torch.testing.assert_close(encoded.logits, alone(llm, longer, 1))
