"""A ledger as an event loop uses it: written by a thread of its own, in order; what is written says whoever asks."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from mezzotint.router.ledger import Ledger
from mezzotint.server.errors import ApiError

T = TypeVar("T")


class Keeper:
    """The only one that touches its book while an event loop runs."""

    def __init__(self, book: Ledger) -> None:
        self._book = book
        self._thread = ThreadPoolExecutor(1, "mezzotint-ledger")
        self._open: set[asyncio.Task[object]] = set()

    def do(self, job: Callable[[Ledger], T]) -> asyncio.Future[T]:
        """Do something with the book, behind all that was to be done before.

        It begins once the caller waits for anything: what is kept of a request takes none of the time before its arm is
        asked. Returns: what ends when it is done; whoever waits for it may be cancelled, and it is done all the same.
        Raises, from there: ApiError where the file cannot be used.
        """
        task = asyncio.create_task(self._do(job))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return asyncio.shield(task)

    async def close(self) -> None:
        """Let go of the book, once all is done."""
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._do(lambda book: book.close())
        self._thread.shutdown()

    async def _do(self, job: Callable[[Ledger], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, job, self._book)
        except sqlite3.Error as error:
            told = f"the ledger cannot be used: {error}; see that its folder can be written and has room"
            raise ApiError(500, told, kind="server_error", code="ledger") from error
