"""What a server asks of a fleet of arms, where it was given one; how an arm is chosen and tried lives in router."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Protocol

Chunk = dict[str, Any]


class Opened(Protocol):
    """An answer that may leave: its headers, and the chunks of a chat."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Which arm answers, at which attempt, by which decision."""

    @property
    def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Chunks in OpenAI's form; the last one tells `metrics`. Closing it cancels what they are made from."""


class Fleet(Protocol):
    """Several arms behind one model name.

    on_attempt: told arm, outcome and dollars of every attempt. on_settled: told of every request the arm that was tried
    last, the class, how it ended, and the seconds that it took.
    """

    on_attempt: Callable[[str, str, float], None]
    on_settled: Callable[[str, str, str, float], None]

    @property
    def names(self) -> Sequence[str]:
        """Models that it answers for: auto with each goal, and every arm."""

    async def start(self) -> None:
        """Begin to watch the arms, and recall what the ledger holds."""

    async def stop(self) -> None:
        """Let go of arms and ledger."""

    async def open(self, body: Mapping[str, Any], *, stream: bool, usage: bool) -> Opened:
        """Decide, try, and verify where that is asked for, until an answer may leave.

        body: a chat in OpenAI's form. stream: whether an answer may leave while it is being written. usage: whether a
        last chunk without choices tells the usage. Raises: ApiError.
        """

    async def note_outcome(self, outcome: Mapping[str, Any], key: str | None) -> bool:
        """Take a late verdict, once for each key. Returns: whether it was new. Raises: ApiError."""

    async def table(self) -> Sequence[Mapping[str, Any]]:
        """The ledger, a row for each arm and class."""
