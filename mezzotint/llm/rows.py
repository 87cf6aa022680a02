"""One context in memory with rows behind it, and the program that asks for them run there; no text.

context │ its own canvas
        ├ row 1
        └ row 2 …        each sees the context's keys and values where they are, and its own
"""

from collections.abc import Generator, Iterator, Sequence
from itertools import takewhile
from typing import Any, TypeVar

from mezzotint.decoding.abreast import Abreast
from mezzotint.decoding.program import Denoise, Encode, Encoded
from mezzotint.engine.pages import PagePool
from mezzotint.engine.runner import Piece, Runner, Step
from mezzotint.engine.table import PageTable, Pools
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.ragged import Store
from mezzotint.types import Reading

Told = TypeVar("Told")
Answers = Sequence[Encoded | Reading | None]


class Rows:
    """A context of up to `capacity` tokens, its canvas included, and up to `rows` rows of `width` behind it."""

    def __init__(self, model: DiffusionGemma, capacity: int, rows: int, width: int) -> None:
        """Allocate keys and values."""
        self._model, self._capacity, self._width = model, capacity, width
        self._count, self._ids = rows, list[int]()
        self._allocate()

    def _allocate(self) -> None:
        slots = self._capacity + self._count * self._width
        store = Store(
            self._model.config,
            {"full_attention": slots, "sliding_attention": slots},
            dtype=self._model.dtype,
            device=self._model.device,
        )
        # Pages of one token: a row shares exactly the context and nothing has to be copied.
        self._pools = Pools(PagePool(slots), PagePool(slots))
        self._runner, self._context = Runner(self._model, store), PageTable(self._pools, 1)
        self._context.reserve(self._capacity)
        self._rows, self._ids = list[PageTable](), []

    def hold(self, prompt: list[int]) -> int:
        """Make room for a prompt and a canvas behind it. Returns: how many of its first tokens are held already."""
        if len(prompt) + self._width > self._capacity:
            self._capacity = len(prompt) + self._width
            self._allocate()
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self._ids, prompt, strict=False))
        held = sum(1 for _ in same)
        for row in self._rows:
            row.release()
        self._rows, self._ids = [], prompt
        return held

    def run(self, program: Generator[Any, Any, Any]) -> Iterator[Any]:
        """Run a program behind the prompt that is held. Returns: what it tells besides its needs."""
        answer: Any = None
        while True:
            try:
                item = program.send(answer)
            except StopIteration:
                return
            answer = None
            match item:
                case Encode() | Denoise():
                    [answer] = self._answer([self._context], [item])
                case Abreast(needs):
                    answer = self._answer(self._fork(needs[0].at, len(needs)), needs)
                case _:
                    yield item

    def _answer(self, tables: Sequence[PageTable], needs: Sequence[Encode | Denoise]) -> Answers:
        """Answer needs of one kind in one forward."""
        pairs = list(zip(tables, needs, strict=True))
        if isinstance(needs[0], Encode):
            return self._runner.encode(
                [Piece(table, need.tokens, need.at, need.read) for table, need in pairs if isinstance(need, Encode)]
            )
        return self._runner.denoise([Step(table, need) for table, need in pairs if isinstance(need, Denoise)])

    def _fork(self, at: int, count: int) -> list[PageTable]:
        """`count` rows behind the first `at` tokens of the context, which is all of the prompt."""
        assert at == len(self._ids)
        while len(self._rows) < count:
            row = PageTable(self._pools, 1)
            row.share(self._context.full.pages[:at], self._context.sliding.pages[:at])
            row.reserve(at + self._width)
            self._rows.append(row)
        return self._rows[:count]
