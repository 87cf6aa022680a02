"""`sudoku`: puzzles against a search that tries digit by digit, the five classes of grids, and near misses."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import Example, Split
from mezzotint.tasks.sudoku import Grid, accept, canonical, generate, solve
from mezzotint.text.parse import Reply

SPLITS: tuple[Split, ...] = ("train", "test")
SEEDS = st.integers(0, 2**40)
BLANK: Grid = (0,) * 16
ALL_GRIDS = solve(BLANK)


def read(text: str) -> Grid:
    rows = text.split("\n")
    assert len(rows) == 4
    cells = [cell for row in rows for cell in row.split(" ")]
    assert len(cells) == 16
    return tuple(0 if cell == "." else int(cell) for cell in cells)


def read_puzzle(example: Example) -> Grid:
    instruction, rows = example.messages[0]["content"].split("\n", 1)
    assert instruction == "Put 1 to 4 in each row, column and box."
    return read(rows)


def search(puzzle: Grid) -> Iterator[Grid]:
    """Every solution, by trying each digit in the first blank that is left."""
    if 0 not in puzzle:
        yield puzzle
        return
    cell = puzzle.index(0)
    seen = {puzzle[other] for other in range(16) if other != cell and shares_unit(cell, other)}
    for digit in {1, 2, 3, 4} - seen:
        yield from search((*puzzle[:cell], digit, *puzzle[cell + 1 :]))


def shares_unit(a: int, b: int) -> bool:
    (row_a, column_a), (row_b, column_b) = divmod(a, 4), divmod(b, 4)
    return row_a == row_b or column_a == column_b or (row_a // 2, column_a // 2) == (row_b // 2, column_b // 2)


def disguise(grid: Grid, digits: tuple[int, ...], turns: int, *, mirrored: bool) -> Grid:
    """The grid with other digits, turned by quarters, and seen in a mirror."""
    rows = [[digits[digit - 1] for digit in grid[4 * row : 4 * row + 4]] for row in range(4)]
    for _ in range(turns):
        rows = [list(row) for row in zip(*rows[::-1], strict=True)]
    return tuple(digit for row in rows for digit in (row[::-1] if mirrored else row))


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_an_example_is_a_pure_function_of_seed_and_split(seed: int, split: Split) -> None:
    first = generate(seed, split)
    generate(seed + 1, split)
    assert generate(seed, split) == first


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_a_search_finds_the_answer_and_no_other(seed: int, split: Split) -> None:
    example = generate(seed, split)
    assert list(search(read_puzzle(example))) == [read(example.answer)]


def test_there_are_288_grids() -> None:
    assert list(ALL_GRIDS) == sorted(search(BLANK))
    assert len(ALL_GRIDS) == 288


@given(grid=st.sampled_from(ALL_GRIDS), data=st.data())
def test_all_solutions_of_a_puzzle_are_found(grid: Grid, data: st.DataObject) -> None:
    blanks = data.draw(st.sets(st.integers(0, 15)))
    puzzle = tuple(0 if cell in blanks else digit for cell, digit in enumerate(grid))
    assert list(solve(puzzle)) == sorted(search(puzzle))


def test_digits_that_clash_have_no_solution() -> None:
    assert solve((1, 1, *BLANK[2:])) == ()


@given(
    grid=st.sampled_from(ALL_GRIDS),
    digits=st.permutations((1, 2, 3, 4)),
    turns=st.integers(0, 3),
    mirrored=st.booleans(),
)
def test_a_grid_in_disguise_stays_in_its_class(grid: Grid, digits: list[int], turns: int, mirrored: bool) -> None:
    assert canonical(disguise(grid, tuple(digits), turns, mirrored=mirrored)) == canonical(grid)
    assert canonical(canonical(grid)) == canonical(grid)


def test_one_class_of_five_and_96_grids_of_288_are_held_out() -> None:
    assert sorted(Counter(map(canonical, ALL_GRIDS)).values()) == [24, 24, 48, 96, 96]
    shown = {split: {read(generate(seed, split).answer) for seed in range(2500)} for split in SPLITS}
    assert len(shown["train"]) == 192
    assert len(shown["test"]) == 96
    assert not {*map(canonical, shown["train"])} & {*map(canonical, shown["test"])}


@pytest.mark.parametrize("split", SPLITS)
def test_six_to_eleven_blanks_are_as_frequent_and_tell_easy_from_hard(split: Split) -> None:
    examples = [generate(seed, split) for seed in range(2000)]
    blanks = [read_puzzle(example).count(0) for example in examples]
    counts = Counter(blanks)
    assert counts.keys() == {6, 7, 8, 9, 10, 11}
    assert min(counts.values()) > 250
    assert all((e.variant == "easy") == (count <= 7) for e, count in zip(examples, blanks, strict=True))
    assert {example.variant for example in examples} == {"easy", "hard"}


def test_every_cell_is_blank_about_as_often() -> None:
    puzzles = [read_puzzle(generate(seed, "train")) for seed in range(2000)]
    shares = [sum(puzzle[cell] == 0 for puzzle in puzzles) / len(puzzles) for cell in range(16)]
    assert min(shares) > 0.45
    assert max(shares) < 0.6


@given(seed=SEEDS, grid=st.sampled_from(ALL_GRIDS))
def test_every_other_grid_is_refused(seed: int, grid: Grid) -> None:
    example = generate(seed, "test")
    text = "\n".join(" ".join(map(str, grid[start : start + 4])) for start in range(0, 16, 4))
    assert accept(example, Reply(text)) is (grid == read(example.answer))


@pytest.mark.parametrize("space", ["", " ", "  ", "\t"])
def test_white_space_in_and_around_rows_is_free(space: str) -> None:
    example = generate(3, "test")
    assert accept(example, Reply(f"\n{example.answer.replace(' ', space)} \n\n"))
    assert accept(example, Reply(example.answer.replace("\n", f"{space}\r\n{space}")))


@given(seed=SEEDS, place=st.integers(0, 30), other=st.sampled_from("1234.0x"))
def test_one_changed_or_lost_character_is_refused_unless_it_is_white_space(seed: int, place: int, other: str) -> None:
    example = generate(seed, "train")
    right = example.answer
    if right[place] != other:
        assert not accept(example, Reply(right[:place] + other + right[place + 1 :]))
    assert accept(example, Reply(right[:place] + right[place + 1 :])) is (right[place] == " ")


@pytest.mark.parametrize("wrap", ["{0}\n{0}", "Solution:\n{0}", "```\n{0}\n```", "{0}.", "[{0}]"])
def test_text_around_the_rows_is_refused(wrap: str) -> None:
    example = generate(5, "test")
    assert not accept(example, Reply(wrap.format(example.answer)))


def test_rows_in_one_line_and_the_unsolved_puzzle_are_refused() -> None:
    example = generate(6, "test")
    assert not accept(example, Reply(example.answer.replace("\n", " ")))
    assert not accept(example, Reply(example.messages[0]["content"].split("\n", 1)[1]))


def test_the_text_that_trained_models_know_has_not_changed() -> None:
    example = generate(1, "train")
    assert example.messages[0]["content"] == (
        "Put 1 to 4 in each row, column and box.\n2 3 . 4\n4 1 2 .\n1 . 3 2\n. . . ."
    )
    assert (example.answer, example.variant) == ("2 3 1 4\n4 1 2 3\n1 4 3 2\n3 2 4 1", "easy")
