"""Several streams read at once, each item as it comes."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class _End(NamedTuple):
    error: BaseException | None


async def merge(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """Items with the index of their stream. Closing it, or an error in one of them, closes all.

    Raises: the first error.
    """
    if len(streams) == 1:
        async with aclosing(streams[0]) as alone:
            async for item in alone:
                yield 0, item
        return
    queue: asyncio.Queue[tuple[int, T] | _End] = asyncio.Queue(maxsize=2 * len(streams))

    async def read(index: int, stream: AsyncGenerator[T, None]) -> None:
        error: BaseException | None = None
        try:
            async with aclosing(stream) as items:
                async for item in items:
                    await queue.put((index, item))
        except Exception as raised:
            error = raised
        await queue.put(_End(error))

    tasks = [asyncio.create_task(read(index, stream)) for index, stream in enumerate(streams)]
    try:
        left = len(streams)
        while left:
            arrived = await queue.get()
            if not isinstance(arrived, _End):
                yield arrived
            elif arrived.error is not None:
                raise arrived.error
            else:
                left -= 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
