"""What an engine tells of one request, until its reader, who may be slow, takes it; threads live in service."""

import threading
from collections import deque
from collections.abc import Callable

from mezzotint.decoding.program import Draft
from mezzotint.engine.request import Outcome, Told

Letter = Outcome | Exception


class Mailbox:
    """Letters in order. Of drafts only the latest few are kept, of everything else nothing is lost.

    So it holds at most `drafts` of them and as many blocks as the answer has.
    """

    def __init__(self, notify: Callable[[], object], *, drafts: int) -> None:
        """notify: called by the sender, after something came where nothing was."""
        self._notify, self._most = notify, drafts
        self._lock = threading.Lock()
        self._letters: deque[Letter] = deque()
        self._drafts = 0

    def put(self, letter: Letter) -> None:
        """Leave a letter; never waits for the reader."""
        with self._lock:
            was_empty = not self._letters
            self._letters.append(letter)
            self._drafts += _is_draft(letter)
            if self._drafts > self._most:
                self._letters.remove(next(held for held in self._letters if _is_draft(held)))
                self._drafts -= 1
        if was_empty:
            self._notify()

    def take(self) -> list[Letter]:
        """Everything that is there, oldest first."""
        with self._lock:
            letters = list(self._letters)
            self._letters.clear()
            self._drafts = 0
        return letters


def _is_draft(letter: Letter) -> bool:
    return isinstance(letter, Told) and isinstance(letter.event, Draft)
