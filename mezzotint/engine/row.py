"""One running request: its program, what its context holds, and what it needs next; whose turn it is, others say."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mezzotint.decoding.program import Block, Denoise, Encode, Encoded, Event, Guess, Need, Program
from mezzotint.engine.request import Request
from mezzotint.engine.table import PageTable
from mezzotint.types import Reading

Answer = Encoded | Reading | list[int] | None


@dataclass(eq=False, kw_only=True)
class Row:
    """A request between its submission and its end.

    order: of arrival. positions: how many it will ever touch; widest: at once behind its context, at most.
    table: its pages while it runs.
    context: the tokens that its need stands behind, and those that it encodes; the first `held` of them have keys and
    values. cached: prompt tokens that a prefix spared. passed_over: later requests that were admitted before it.
    """

    request: Request
    program: Program
    seed: int
    order: int
    positions: int
    arrived_s: float
    widest: int = 1
    table: PageTable | None = None
    need: Need | None = None
    context: list[int] = field(default_factory=list)
    held: int = 0
    cached: int = 0
    admissions: int = 0
    passed_over: int = 0
    admitted_s: float = 0.0
    prefilled_s: float = 0.0
    blocks: list[Block] = field(default_factory=list)

    @property
    def missing(self) -> int:
        """Tokens still to encode before, or for, the need."""
        return len(self.context) - self.held

    @property
    def read(self) -> int:
        """How many of the last tokens to encode are read, and so must be encoded together."""
        return self.need.read if isinstance(self.need, Encode) else 0

    @property
    def settled(self) -> int:
        """How many of the tokens held are never taken back: of those that the need encodes only verified ones may be,
        and these are read.
        """
        return self.held if self.need is None or self.read <= 1 else min(self.held, self.need.at)

    @property
    def rank(self) -> tuple[int, int]:
        """The least is admitted first and yields last."""
        return -self.request.priority, self.order

    @property
    def width(self) -> int:
        """Positions that the need uses behind the context."""
        return len(self.need.canvas) if isinstance(self.need, Denoise) else 0

    def advance(self, answer: Answer) -> list[Event]:
        """Let the program go on with an answer up to its next need. Returns: what it tells; need is None at its end."""
        told: list[Event] = []
        while True:
            try:
                item = self.program.send(answer)
            except StopIteration:
                self.need = None
                return told
            if isinstance(item, Encode | Denoise | Guess):
                self._face(item)
                return told
            told.append(item)
            answer = None

    def _face(self, need: Need) -> None:
        """Take on a need: what stood behind its context is forgotten, and what it encodes is to come."""
        new: Sequence[int] = need.tokens if isinstance(need, Encode) else ()
        self.need = need
        del self.context[need.at :]
        self.context += new
        self.held = min(self.held, need.at)
