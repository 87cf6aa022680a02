"""Leaves an arm alone for a while once it fails again and again; what a failure is says whoever asks the arm."""

from collections.abc import Callable


class Breaker:
    """Closed while an arm answers; open, and nothing passes, behind `failures` failures in a row; half open after
    `pause_s` seconds, when one request may try."""

    def __init__(self, failures: int, pause_s: float, clock: Callable[[], float]) -> None:
        self._most, self._pause_s, self._clock = failures, pause_s, clock
        self._failures, self._until_s = 0, 0.0
        self._is_trying = False

    @property
    def is_passable(self) -> bool:
        """Whether a request may pass now."""
        return self._failures < self._most or (self._clock() >= self._until_s and not self._is_trying)

    def enter(self) -> None:
        """A request passes."""
        self._is_trying = self._failures >= self._most

    def succeed(self) -> None:
        """It was answered."""
        self._failures, self._is_trying = 0, False

    def fail(self) -> None:
        """It was not; the pause begins, or begins again."""
        self._failures, self._is_trying = min(self._failures + 1, self._most), False
        self._until_s = self._clock() + self._pause_s

    def leave(self) -> None:
        """It ended without showing anything: its client left, or it was refused."""
        self._is_trying = False
