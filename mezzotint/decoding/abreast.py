"""Programs side by side behind one context: at each step the needs of all that go on are one; who runs it, others say.

canvas a │ needs ─┐
canvas b │ needs ─┼─► Abreast ──► whoever runs forwards: one of all rows, or one after another
canvas c │ is done
"""

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from mezzotint.decoding.program import Denoise, Encode

T = TypeVar("T")


class Abreast(NamedTuple):
    """Needs of one kind behind the same tokens of context, one a row; no row sees what another one encodes.

    What they encode is forgotten. Answered by a list of their answers.
    """

    needs: Sequence[Encode | Denoise]


def run_abreast(programs: Sequence[Generator[Any, Any, T]]) -> Generator[Abreast, list[Any], list[T]]:
    """Run programs whose needs are all of one kind, each to its end; what else they tell is not passed on.

    Returns: what each of them returns.
    """
    results = dict[int, T]()
    needs = dict[int, Encode | Denoise]()
    for row, program in enumerate(programs):
        _advance(row, program, None, needs, results)
    while needs:
        rows = list(needs)
        answers = yield Abreast(list(needs.values()))
        needs = {}
        for row, answer in zip(rows, answers, strict=True):
            _advance(row, programs[row], answer, needs, results)
    return [results[row] for row in range(len(programs))]


def _advance(
    row: int, program: Generator[Any, Any, T], answer: Any, needs: dict[int, Encode | Denoise], results: dict[int, T]
) -> None:
    """Let a program go on with an answer up to its next need, or to its end."""
    while True:
        try:
            item = program.send(answer)
        except StopIteration as end:
            results[row] = end.value
            return
        answer = None
        if isinstance(item, Encode | Denoise):
            needs[row] = item
            return
