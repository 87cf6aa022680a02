"""The canvas as it settles, drawn in a terminal or as plain lines; what settles it lives in decoding."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from rich.console import Console
from rich.live import Live
from rich.text import Text

from mezzotint.llm import BlockEvent, Completion, DraftEvent, Event
from mezzotint.text.tokenizer import Tokenizer

Condition = Literal["accepted", "renoised", "stable"]
STYLES: dict[Condition, str] = {"accepted": "yellow", "renoised": "dim red", "stable": "green"}
_SETTLED_LINES = 6  # of what is final: more would push the canvas off the screen


class Cell(NamedTuple):
    """One canvas position: what it says, and how this step left it."""

    text: str
    condition: Condition


class Frame(NamedTuple):
    """One moment of an answer: what happens, the text that is final, the canvas behind it."""

    caption: str
    settled: str
    cells: list[Cell]


@contextmanager
def watching(console: Console, tokenizer: Tokenizer | None, max_tokens: int) -> Iterator[Callable[[Event], None]]:
    """Draw one answer: a canvas that redraws itself, or one line an event where there is no terminal.

    Returns: what to call with each event, in order. At the end, however it comes, the drawing is gone and the
    cursor is back.
    """
    watcher = Watcher(tokenizer, max_tokens)
    if console.is_terminal and not console.is_dumb_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield lambda event: live.update(_picture(watcher.follow(event), console.width), refresh=True)
    else:
        yield lambda event: console.print(_line(watcher.follow(event)), soft_wrap=True)


class Watcher:
    """What has been seen of one answer: its final text, and the last draft."""

    def __init__(self, tokenizer: Tokenizer | None, max_tokens: int) -> None:
        self._tokenizer, self._max_tokens = tokenizer, max_tokens
        self._settled, self._tokens = "", 0
        self._draft: list[int] = []

    def follow(self, event: Event) -> Frame:
        """The frame that shows an event."""
        match event:
            case DraftEvent():
                return self._draft_frame(event)
            case BlockEvent():
                return self._block_frame(event)
            case Completion():
                return Frame(f"finished: {event.finish_reason}", "", [Cell(_printable(event.text), "stable")])

    def _draft_frame(self, event: DraftEvent) -> Frame:
        before: list[int | None] = [*self._draft] or [None] * len(event.token_ids)
        cells = [
            Cell(self._spell(token), _condition(accepted=accepted, unchanged=token == old))
            for token, accepted, old in zip(event.token_ids, event.accepted, before, strict=True)
        ]
        self._draft = event.token_ids
        counts = Counter(cell.condition for cell in cells)
        told = ", ".join(f"{counts[condition]} {condition}" for condition in STYLES)
        caption = f"denoising {event.step} of {event.step_budget} · block {event.block + 1} · {told}"
        return Frame(caption, self._settled, cells)

    def _block_frame(self, event: BlockEvent) -> Frame:
        cells = [Cell(self._spell(token), "stable") for token in event.token_ids]
        self._tokens += len(cells)
        caption = f"block {event.block + 1} final after {event.steps} steps"
        if not cells:  # nothing but what was held back: half a character, or no stop string after all
            cells = [Cell(_printable(event.text), "stable")]
            caption = "the rest of the text"
        elif not event.steps:  # no canvas: ar's own
            caption = f"token {self._tokens} of at most {self._max_tokens}"
        frame = Frame(caption, self._settled, cells)
        self._settled, self._draft = self._settled + _printable(event.text), []
        return frame

    def _spell(self, token: int) -> str:
        """A token in the room of a line: noise is full of control characters, which a terminal would obey."""
        if self._tokenizer is None:
            return f"{token} "
        if token in self._tokenizer.control_ids:
            return "□"
        return _printable(self._tokenizer.token_bytes(token).decode(errors="replace"))


def _condition(*, accepted: bool, unchanged: bool) -> Condition:
    if not accepted:
        return "renoised"
    return "stable" if unchanged else "accepted"


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "·" for each in text.replace("\n", "↵"))


def _line(frame: Frame) -> Text:
    """Colours do not survive a pipe: what was renoised is drawn as noise."""
    canvas = "".join("░" if cell.condition == "renoised" else cell.text for cell in frame.cells)
    return Text(f"{frame.caption} │ {canvas}")


def _picture(frame: Frame, width: int) -> Text:
    canvas = [(cell.text, STYLES[cell.condition]) for cell in frame.cells]
    return Text.assemble(frame.settled[-_SETTLED_LINES * width :], *canvas, (f"\n{frame.caption}", "dim"))
