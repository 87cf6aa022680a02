"""The forwards of a step over many rows, and what each row gets of them; a row's failure is no other's."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from mezzotint.decoding.program import Denoise, Encode, Guess
from mezzotint.engine.room import Room
from mezzotint.engine.row import Answer, Row
from mezzotint.engine.runner import Piece, Runner, Step, Wonder
from mezzotint.engine.scheduler import Plan
from mezzotint.engine.stats import Tally

Work = TypeVar("Work")


class Result(NamedTuple):
    """The answer to a row's need, or why there is none."""

    row: Row
    answer: Answer | Exception


class Batch:
    """The forwards of one engine, step by step."""

    def __init__(self, runner: Runner, room: Room, tally: Tally) -> None:
        """room: where settled tokens are noted. tally: where forwards are counted."""
        self._runner, self._room, self._tally = runner, room, tally

    def run(self, plan: Plan, rows: Mapping[int, Row]) -> list[Result]:
        """Run a plan, for which memory is reserved. rows: by order. Returns: of each need that it answers or fails."""
        self._tally.steps += bool(plan.encodes or plan.denoises)
        results = self._encode([(rows[order], size) for order, size in plan.encodes.items()])
        if waiting := [rows[order] for order in plan.denoises]:
            denoising = [(row, row.need) for row in waiting if isinstance(row.need, Denoise)]
            guessing = [(row, row.need) for row in waiting if isinstance(row.need, Guess)]
            results += _attempt(denoising, self._denoise) + _attempt(guessing, self._guess)
        return results

    def _encode(self, work: list[tuple[Row, int]]) -> list[Result]:
        """Encode pieces. Returns: of needs that they complete, and failures."""
        sizes, results = dict(work), list[Result]()
        for result in _attempt(work, self._encode_pieces):
            row = result.row
            if not isinstance(result.answer, Exception):
                row.held += sizes[row]
                self._room.settle(row, row.settled)
                if row.missing or not isinstance(row.need, Encode):
                    continue
            results.append(result)
        return results

    def _encode_pieces(self, work: Sequence[tuple[Row, int]]) -> Sequence[Answer]:
        answers = self._runner.encode([_piece(row, size) for row, size in work])
        self._tally.encodes.count([size for _, size in work])
        return answers

    def _denoise(self, work: Sequence[tuple[Row, Denoise]]) -> Sequence[Answer]:
        answers = self._runner.denoise([Step(row.table, need) for row, need in work if row.table is not None])
        self._tally.denoises.count([len(need.canvas) for _, need in work])
        return answers

    def _guess(self, work: Sequence[tuple[Row, Guess]]) -> Sequence[Answer]:
        self._tally.guesses += len(work)
        return self._runner.guess([Wonder(row.table, need) for row, need in work if row.table is not None])


def _attempt(
    work: list[tuple[Row, Work]], run: Callable[[Sequence[tuple[Row, Work]]], Sequence[Answer]]
) -> list[Result]:
    """Run work together; if that fails, each part alone."""
    if not work:
        return []
    try:
        return [Result(row, answer) for (row, _), answer in zip(work, run(work), strict=True)]
    except Exception as error:
        if len(work) == 1:
            return [Result(work[0][0], error)]
    return [result for part in work for result in _attempt([part], run)]


def _piece(row: Row, size: int) -> Piece:
    assert row.table is not None
    is_last = size == row.missing
    return Piece(row.table, row.context[row.held : row.held + size], row.held, row.read if is_last else 0)
