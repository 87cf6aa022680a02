"""`sudoku`: fill the blanks of a 4×4 grid so that rows, columns and 2×2 boxes hold each digit once.

There are 288 full grids. Up to relabelling of digits, turns and reflections they form 5 classes; a hash of the
smallest member holds out one of the five, 96 grids. Test draws solutions from that class only and train from the
other 192 grids. So few grids could be learnt by heart, but none of test is a train grid in disguise. The hold-out
goes no further: swapping two rows of a band leads from one class into another.
"""

from collections.abc import Iterator
from functools import cache
from itertools import permutations
from typing import NamedTuple

from mezzotint.tasks.family import Example, Family, Split, example_random, is_held_out
from mezzotint.text.parse import Reply

SIDE = 4
CELLS = SIDE * SIDE
FEWEST_BLANKS, MOST_BLANKS = 6, 11
_EASY_BLANKS = 7
_INSTRUCTION = "Put 1 to 4 in each row, column and box."

Grid = tuple[int, ...]  # 16 digits 1 to 4, row by row; 0 is a blank


class _Grids(NamedTuple):
    all: tuple[Grid, ...]
    of: dict[Split, tuple[Grid, ...]]
    holding: dict[tuple[int, int], frozenset[int]]  # (cell, digit) → places in `all` of the grids that have it there


def generate(seed: int, split: Split) -> Example:
    """Draw a puzzle of 6 to 11 blanks, each number as likely, that has one solution.

    Returns: the example; its answer is the four solved rows, variant "easy" (up to 7 blanks) or "hard".
    Raises: ValueError for an unknown split.
    """
    rng = example_random("sudoku", split, seed)
    grid = rng.choice(_grids().of[split])
    blanks = rng.randint(FEWEST_BLANKS, MOST_BLANKS)
    while True:
        hidden = set(rng.sample(range(CELLS), blanks))
        puzzle = tuple(0 if cell in hidden else digit for cell, digit in enumerate(grid))
        if len(solve(puzzle)) == 1:
            break
    return Example(
        family="sudoku",
        messages=({"role": "user", "content": f"{_INSTRUCTION}\n{_spell(puzzle)}"},),
        answer=_spell(grid),
        variant="easy" if blanks <= _EASY_BLANKS else "hard",
    )


def accept(example: Example, reply: Reply) -> bool:
    """Check that the content of `reply` is the four rows of the solution; white space in and around a row is free.

    Returns: true for the right grid only.
    """
    return _rows(reply.content) == _rows(example.answer)


def solve(puzzle: Grid) -> tuple[Grid, ...]:
    """Find every full grid that agrees with the digits of `puzzle`, 0 being a blank.

    Returns: the solutions in ascending order, none if two digits clash.
    """
    grids = _grids()
    fitting = set(range(len(grids.all)))
    for cell, digit in enumerate(puzzle):
        if digit:
            fitting &= grids.holding[cell, digit]
    return tuple(grids.all[place] for place in sorted(fitting))


def canonical(grid: Grid) -> Grid:
    """Name the class of a full grid: the smallest grid that relabelling, turns and reflections make of it."""
    turned = grid
    forms = []
    for _ in range(4):
        turned = tuple(turned[SIDE * (SIDE - 1 - column) + row] for row in range(SIDE) for column in range(SIDE))
        mirrored = tuple(turned[SIDE * row + SIDE - 1 - column] for row in range(SIDE) for column in range(SIDE))
        forms += [_relabel(turned), _relabel(mirrored)]
    return min(forms)


@cache
def _grids() -> _Grids:
    grids = tuple(sorted(_complete(())))
    test = tuple(grid for grid in grids if is_held_out("".join(map(str, canonical(grid))), 5))
    holding = {
        (cell, digit): frozenset(place for place, grid in enumerate(grids) if grid[cell] == digit)
        for cell in range(CELLS)
        for digit in range(1, SIDE + 1)
    }
    return _Grids(grids, {"train": tuple(grid for grid in grids if grid not in test), "test": test}, holding)


def _complete(rows: tuple[Grid, ...]) -> Iterator[Grid]:
    if len(rows) == SIDE:
        yield sum(rows, ())
        return
    for row in permutations(range(1, SIDE + 1)):
        if _fits(rows, row):
            yield from _complete((*rows, row))


def _fits(rows: tuple[Grid, ...], row: Grid) -> bool:
    in_columns = all(above[column] != row[column] for above in rows for column in range(SIDE))
    if len(rows) % 2 == 0:
        return in_columns
    return in_columns and {*rows[-1][:2]}.isdisjoint(row[:2]) and {*rows[-1][2:]}.isdisjoint(row[2:])


def _relabel(grid: Grid) -> Grid:
    labels: dict[int, int] = {}
    return tuple(labels.setdefault(digit, len(labels) + 1) for digit in grid)


def _spell(grid: Grid) -> str:
    cells = [str(digit) if digit else "." for digit in grid]
    return "\n".join(" ".join(cells[start : start + SIDE]) for start in range(0, CELLS, SIDE))


def _rows(text: str) -> list[str]:
    return ["".join(line.split()) for line in text.strip().splitlines()]


SUDOKU = Family("sudoku", generate, accept)
