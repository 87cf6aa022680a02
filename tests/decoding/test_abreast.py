"""Programs side by side: what is asked for together, who gets which answer, and what each makes of it."""

from collections.abc import Generator
from typing import Any

from mezzotint.decoding.abreast import Abreast, run_abreast
from mezzotint.decoding.program import Draft, Encode


def program(name: int, needs: int) -> Generator[Any, Any, list[Any]]:
    """Asks for `needs` encodes, tells a draft behind each, and returns all answers."""
    answers = []
    for number in range(needs):
        answers.append((yield Encode([name, number], 5, 1)))
        assert (yield Draft(0, 1, [], [])) is None, "nobody answers what is told"
    return answers


def test_the_needs_of_all_that_go_on_are_asked_for_together_and_each_gets_its_own_answers() -> None:
    running = run_abreast([program(0, 1), program(1, 0), program(2, 3)])
    asked, answer = [], None
    while True:
        try:
            item = running.send(answer)  # type: ignore[arg-type]
        except StopIteration as end:
            results = end.value
            break
        assert isinstance(item, Abreast)
        asked.append([need.tokens for need in item.needs if isinstance(need, Encode)])
        answer = [sum(tokens) for tokens in asked[-1]]
    assert asked == [[[0, 0], [2, 0]], [[2, 1]], [[2, 2]]]
    assert results == [[0], [], [2, 3, 4]]


def test_programs_that_need_nothing_ask_for_nothing() -> None:
    assert not list(run_abreast([program(0, 0), program(1, 0)]))
    assert not list(run_abreast([]))
