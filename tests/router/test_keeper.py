"""A ledger written aside: in order, whoever waits, and told where it cannot be."""

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from mezzotint.router.keeper import Keeper
from mezzotint.router.ledger import Ledger
from mezzotint.server.errors import ApiError


def test_what_is_to_be_kept_is_kept_in_order_though_whoever_waits_for_it_leaves() -> None:
    done: list[int] = []

    async def go() -> None:
        keeper = Keeper(Ledger(Path(":memory:"), "x"))
        free = threading.Event()

        def hold(_book: Ledger) -> None:
            free.wait(10)
            done.append(0)

        async def wait(number: int) -> None:
            await keeper.do(lambda _book: done.append(number))

        first = keeper.do(hold)
        others = [asyncio.create_task(wait(number)) for number in (1, 2, 3)]
        await asyncio.sleep(0)
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        assert done == []
        free.set()
        await first
        await keeper.close()

    asyncio.run(go())
    assert done == [0, 1, 2, 3]


def test_a_file_that_cannot_be_written_is_told_and_the_next_job_is_done() -> None:
    def fail(_book: Ledger) -> Any:
        raise sqlite3.OperationalError("disk is full")

    async def go() -> None:
        keeper = Keeper(Ledger(Path(":memory:"), "x"))
        with pytest.raises(ApiError, match="disk is full") as error:
            await keeper.do(fail)
        assert (error.value.status, error.value.code) == (500, "ledger")
        assert await keeper.do(lambda book: book.table()) == []
        await keeper.close()

    asyncio.run(go())
