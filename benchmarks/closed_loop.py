"""So many requests in flight on one engine, each followed by the next as it ends; what they ask lives in workload.

    slot 0   ├ warm-up ┤├── measured ──┤├─ measured ─┤├ …
    slot 1   ├── warm-up ──┤├─ measured ─┤├── filler ──┤
             ▲ all slots stay taken until the last measured request has its answer

So requests a second are slots ÷ mean latency (Little's law): a slot's time is the sum of its latencies, nothing between
them. The clock stands still between turns, so that several loops can share a machine turn by turn.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

from mezzotint.decoding.program import Block
from mezzotint.engine.engine import Engine
from mezzotint.engine.request import Done, Failed, Outcome, Request, Told
from mezzotint.types import Receipt


class Served(NamedTuple):
    """An answer as its reader had it: whole, `latency_s` after it was asked for."""

    tokens: list[int]
    receipt: Receipt
    latency_s: float


class TurnClock:
    """Seconds that pass only while it runs."""

    def __init__(self, source: Callable[[], float] = time.perf_counter) -> None:
        """source: the clock of the machine."""
        self._source = source
        self._passed = 0.0
        self._started: float | None = None

    def __call__(self) -> float:
        """Seconds of all turns so far."""
        return self._passed + (0.0 if self._started is None else self._source() - self._started)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let it run for a turn."""
        self._started = self._source()
        try:
            yield
        finally:
            self._passed, self._started = self(), None


class ClosedLoop:
    """An engine and its readers, who ask again at once."""

    def __init__(
        self,
        engine: Engine,
        clock: TurnClock,
        slots: int,
        *,
        warm_up: Sequence[Request],
        measured: Sequence[Request],
        fillers: Sequence[Request],
    ) -> None:
        """clock: the engine's. warm_up: asked first, at least one a slot. fillers: asked at last, over and over."""
        if len(warm_up) < slots:
            raise ValueError(f"{slots} slots begin with {len(warm_up)} requests of warm-up; give one a slot at least")
        self.engine, self._clock, self._slots = engine, clock, slots
        self.served: dict[str, Served] = {}
        self._asks = _in_order(warm_up, measured, fillers)
        self._measured = {request.id for request in measured}
        self._asked_s: dict[str, float] = {}
        self._tokens: dict[str, list[int]] = {}

    def run(self, answers: int) -> None:
        """Go on until so many measured requests, at most all, have their answer.

        Raises: RuntimeError for a request that fails.
        """
        with self._clock.running():
            self._ask(self._clock())
            while len(self.served) < answers:
                outcomes = self.engine.step()
                now = self._clock()
                for outcome in outcomes:
                    self._take(outcome, now)
                self._ask(now)

    def _ask(self, now: float) -> None:
        """Fill the slots that have fallen free, all at the same moment."""
        while len(self._asked_s) < self._slots:
            request = next(self._asks)
            self._asked_s[request.id], self._tokens[request.id] = now, []
            self.engine.submit(request)

    def _take(self, outcome: Outcome, now: float) -> None:
        match outcome:
            case Told(id, Block() as block):
                self._tokens[id] += block.tokens
            case Done(id, receipt):
                tokens, latency_s = self._tokens.pop(id), now - self._asked_s.pop(id)
                if id in self._measured:
                    self.served[id] = Served(tokens, receipt, latency_s)
            case Failed(id, _, reason):
                raise RuntimeError(f"request {id!r} failed: {reason}")


def _in_order(warm_up: Sequence[Request], measured: Sequence[Request], fillers: Sequence[Request]) -> Iterator[Request]:
    yield from warm_up
    yield from measured
    for number in count():
        filler = fillers[number % len(fillers)]
        yield Request(id=f"{filler.id} again {number}", prompt=filler.prompt, params=filler.params)
