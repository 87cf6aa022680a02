"""The watched canvas: what each position is called, and how it is drawn with and without a terminal."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mezzotint.cli.watch import Cell, Watcher, watching
from mezzotint.llm import BlockEvent, Completion, DraftEvent
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Receipt


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> Tokenizer:
    return Tokenizer.from_directory(tiny)


def draft(step: int, ids: list[int], accepted: list[bool], block: int = 0) -> DraftEvent:
    return DraftEvent(block, step, 48, ids, accepted)


def finished(text: str) -> Completion:
    receipt = Receipt(decoder="diffusion", sampler="report", seed=0, prompt_tokens=1, output_tokens=2)
    return Completion(text=text, token_ids=[1, 2], finish_reason="stop", receipt=receipt)


def test_accepted_again_unchanged_is_stable_and_not_accepted_is_renoised() -> None:
    watcher = Watcher(None, 64)
    first = watcher.follow(draft(1, [10, 11, 12, 13], [True, True, False, True]))
    second = watcher.follow(draft(2, [10, 21, 12, 13], [True, True, False, False]))
    assert [cell.condition for cell in first.cells] == ["accepted", "accepted", "renoised", "accepted"]
    assert [cell.condition for cell in second.cells] == ["stable", "accepted", "renoised", "renoised"]
    assert second.caption == "denoising 2 of 48 · block 1 · 1 accepted, 2 renoised, 1 stable"


def test_a_new_block_remembers_nothing_of_the_last_one() -> None:
    watcher = Watcher(None, 64)
    watcher.follow(draft(1, [10, 11], [True, True]))
    watcher.follow(BlockEvent(0, 1, [10, 11], "ab"))
    frame = watcher.follow(draft(1, [10, 11], [True, True], block=1))
    assert [cell.condition for cell in frame.cells] == ["accepted", "accepted"]
    assert frame.settled == "ab"


def test_under_ar_tokens_are_counted() -> None:
    watcher = Watcher(None, 9)
    watcher.follow(BlockEvent(0, 0, [10], "a"))
    assert watcher.follow(BlockEvent(1, 0, [11], "b")).caption == "token 2 of at most 9"


def test_the_rest_of_a_character_is_no_token() -> None:
    watcher = Watcher(None, 9)
    watcher.follow(BlockEvent(0, 3, [10, 11], "a"))
    frame = watcher.follow(BlockEvent(0, 0, [], "\ufffd"))
    assert frame.caption == "the rest of the text"
    assert (frame.settled, frame.cells) == ("a", [Cell("\ufffd", "stable")])
    assert watcher.follow(draft(1, [10], [True])).settled == "a\ufffd"


def test_no_token_can_move_the_cursor(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_text("a\x1b[2J\r\n")
    for event in (draft(1, ids, [True] * len(ids)), BlockEvent(0, 1, ids, "a\x1b[2J\r\n")):
        frame = Watcher(tokenizer, 64).follow(event)
        assert "".join(cell.text for cell in frame.cells) == "a·[2J·↵"
    settled = Watcher(tokenizer, 64)
    settled.follow(BlockEvent(0, 1, ids, "a\x1b[2J\r\n"))
    assert settled.follow(draft(1, [10], [True])).settled == "a·[2J·↵"
    assert settled.follow(finished("\x1b")).cells == [Cell("·", "stable")]


def test_a_control_token_and_half_a_character_take_their_room(tokenizer: Tokenizer) -> None:
    half = tokenizer.encode_text("é")[0]
    assert tokenizer.token_bytes(half) == b"\xc3"
    frame = Watcher(tokenizer, 64).follow(draft(1, [tokenizer.control["<turn|>"], half], [True, True]))
    assert [cell.text for cell in frame.cells] == ["□", "�"]


def test_without_a_terminal_renoised_positions_are_drawn_as_noise(tokenizer: Tokenizer) -> None:
    out = StringIO()
    a, b = tokenizer.encode_text("a")[0], tokenizer.encode_text("b")[0]
    with watching(Console(file=out, width=40), tokenizer, 64) as draw:
        draw(draft(7, [a, b], [True, False]))
        draw(BlockEvent(0, 7, [a, b], "ab"))
        draw(finished("ab"))
    assert out.getvalue().splitlines() == [
        "denoising 7 of 48 · block 1 · 1 accepted, 1 renoised, 0 stable │ a░",
        "block 1 final after 7 steps │ ab",
        "finished: stop │ ab",
    ]


def test_in_a_terminal_each_condition_has_its_colour_and_the_drawing_goes(tokenizer: Tokenizer) -> None:
    out = StringIO()
    a, b, c = (tokenizer.encode_text(letter)[0] for letter in "abc")
    terminal = Console(file=out, force_terminal=True, color_system="standard", width=100, legacy_windows=False)
    with watching(terminal, tokenizer, 64) as draw:
        draw(draft(1, [a, c, b], [True, False, False]))
        draw(draft(2, [a, b, c], [True, True, False]))
    text = out.getvalue()
    assert "\x1b[32ma\x1b[0m\x1b[33mb\x1b[0m\x1b[2;31mc\x1b[0m" in text
    assert "denoising 2 of 48" in text
    assert text.index("\x1b[?25l") < text.index("denoising 1 of 48")
    assert text.rindex("\x1b[?25h") > text.rindex("denoising 2 of 48")
    assert text.rindex("\x1b[2K") > text.rindex("denoising 2 of 48"), "its lines are erased"


def test_an_interrupt_gives_the_cursor_back() -> None:
    out = StringIO()
    with pytest.raises(KeyboardInterrupt):
        watch_until_interrupted(Console(file=out, force_terminal=True, legacy_windows=False))
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


def watch_until_interrupted(console: Console) -> None:
    with watching(console, None, 64) as draw:
        draw(draft(1, [10], [True]))
        raise KeyboardInterrupt
