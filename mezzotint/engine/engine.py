"""Many requests on one model, a step at a time: admit, plan, make room, run, answer; no thread and no text.

waiting ──admit──► running ──the program ends──► done
    ▲                 │
    └────preempt──────┘   gives its pages back; later its context is encoded anew, or found in the cache
"""

import logging
import time
from bisect import bisect_left, insort
from collections.abc import Callable
from itertools import count

import torch

from mezzotint.decoding.generate import Limits
from mezzotint.decoding.policy import Costs
from mezzotint.decoding.program import Block, Draft, Drafter, Encode, Event, Finished, Prefilled
from mezzotint.decoding.random import fresh_seed
from mezzotint.decoding.sampler import SAMPLERS, Sampler
from mezzotint.engine.batch import Batch
from mezzotint.engine.config import EngineConfig
from mezzotint.engine.costs import CostBook
from mezzotint.engine.entry import check_entry, find_widest
from mezzotint.engine.memory import divide_memory
from mezzotint.engine.receipt import write_row_receipt
from mezzotint.engine.request import Done, Failed, Outcome, Request, Told, UnavailableError
from mezzotint.engine.room import Room
from mezzotint.engine.row import Answer, Row
from mezzotint.engine.runner import Runner
from mezzotint.engine.scheduler import Plan, Wish, plan_step
from mezzotint.engine.start import start_program
from mezzotint.engine.stats import Stats, Tally, take_stats
from mezzotint.model.config import LayerKind
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.memory import available_bytes
from mezzotint.model.ragged import Store

_PATIENCE = 8  # later requests that may be admitted before one that waits for memory; as many may wait for it at once


class Engine:
    """One model and the requests that it serves. All happens in `step`; no answer depends on its neighbours."""

    def __init__(
        self,
        model: DiffusionGemma,
        limits: Limits,
        config: EngineConfig | None = None,
        *,
        defaults: Sampler = SAMPLERS["report"],
        drafter: Drafter | None = None,
        costs: CostBook | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Allocate the memory of keys and values.

        defaults: the sampler of requests that name none. drafter: for decoder `mtp`. costs: of forwards, which decoder
        `verified` weighs; None measures them. clock: seconds.
        Raises: ValueError for memory that holds no canvas.
        """
        self.config, self.limits = config or EngineConfig(), limits
        self._defaults, self._has_drafter, self._clock = defaults, drafter is not None, clock
        self._costs = costs or CostBook(model, limits)
        # A window shows a token and those before it; a drafter may read further back than its target.
        window = max(model.config.sliding_window, 0 if drafter is None else drafter.reach + 1)
        memory = divide_memory(self.config, model.config, model.dtype, available_bytes(model.device), window)
        self._short = limits.canvas_length + 1
        self.room = Room(self.config, memory, window, self._short)
        page = self.config.page_size
        slots: dict[LayerKind, int] = {
            "full_attention": memory.full * page,
            "sliding_attention": memory.sliding * page,
        }
        self._model = model.config
        store = Store(model.config, slots, dtype=model.dtype, device=model.device)
        self._tally = Tally()
        self._batch = Batch(Runner(model, store, drafter), self.room, self._tally)
        self._orders = count()
        self._rows: dict[str, Row] = {}  # every request that has not ended, by id
        self._timed: dict[str, Row] = {}  # those of them that have a deadline
        self._waiting: list[Row] = []  # in the order in which they are admitted
        self._running: list[Row] = []  # in the order in which they keep their memory

    @property
    def is_idle(self) -> bool:
        """Whether no request is left."""
        return not self._rows

    def check(self, request: Request) -> int:
        """Refuse a request that could never be answered, whoever else is there; changes nothing.

        Returns: the positions that it may touch. Raises: ValueError naming what is wrong, its value and the remedy.
        """
        positions = check_entry(request, self.limits, self._model, has_drafter=self._has_drafter)
        self.room.check(positions, find_widest(request, self.limits))
        return positions

    def submit(self, request: Request) -> int:
        """Take a request. Returns: its seed.

        Raises: ValueError as check, or for an id that runs already; UnavailableError where too many wait.
        """
        if request.id in self._rows:
            raise ValueError(f"a request {request.id!r} is running already; give another id")
        if len(self._waiting) >= self.config.max_waiting:
            raise UnavailableError(f"{len(self._waiting)} requests wait already; try again later or raise max_waiting")
        positions = self.check(request)
        seed = fresh_seed() if request.params.seed is None else request.params.seed
        row = Row(
            request=request,
            program=start_program(request, seed, self.limits, self._defaults, self._weigh),
            seed=seed,
            order=next(self._orders),
            positions=positions,
            widest=find_widest(request, self.limits),
            arrived_s=self._clock(),
        )
        row.advance(None)
        self._rows[request.id] = row
        if request.deadline_s is not None:
            self._timed[request.id] = row
        self._tally.submitted += 1
        self._wait(row)
        return seed

    def cancel(self, id: str) -> list[Outcome]:
        """End a request before its answer. Returns: nothing for one that has ended already."""
        row = self._rows.get(id)
        return [] if row is None else [self._fail(row, "cancelled", "the request was cancelled")]

    def abandon(self, kind: str, reason: str) -> list[Outcome]:
        """End every request and begin afresh, trusting no account: for a step that failed as a whole."""
        failed = list(self._rows.values())
        self._rows, self._timed, self._waiting, self._running = {}, {}, [], []
        self.room.clear()
        for row in failed:
            self._tally.failed[kind] += 1
            row.program.close()
        return [Failed(row.request.id, kind, reason) for row in failed]

    def stats(self) -> Stats:
        """What this engine has done, and how full it is."""
        return take_stats(self._tally, self.room, waiting=len(self._waiting), running=len(self._running))

    @torch.inference_mode()
    def step(self) -> list[Outcome]:
        """Do one step for all that can: at most one encode and one denoise forward. Returns: what came of it."""
        outcomes = self._expire() + self._admit()
        wishes = [_wish(row) for row in self._running]
        plan = self._make_room(plan_step(wishes, self.config.chunk_tokens, self._short))
        for row, answer in self._batch.run(plan, {row.order: row for row in self._running}):
            outcomes += self._answer(row, answer)
        return outcomes

    def check_integrity(self) -> None:
        """Raise AssertionError naming what is wrong if a page is lost, leaked or held twice, or a row is in no list."""
        self.room.check_integrity(self._running)
        listed = sorted(row.order for row in (*self._waiting, *self._running))
        if listed != sorted(row.order for row in self._rows.values()):
            raise AssertionError("a request is in no list, or in two")
        if idle := [row.request.id for row in self._waiting if row.table is not None]:
            raise AssertionError(f"request {idle[0]!r} waits and holds pages")

    def _weigh(self) -> Costs:
        """What forwards cost a row among those that run now."""
        return self._costs.read(len(self._running))

    def _wait(self, row: Row) -> None:
        insort(self._waiting, row, key=lambda row: row.rank)

    def _expire(self) -> list[Outcome]:
        now, outcomes = self._clock(), list[Outcome]()
        for row in list(self._timed.values()):
            limit = row.request.deadline_s
            if limit is not None and now - row.arrived_s > limit:
                outcomes.append(self._fail(row, "deadline", f"the deadline of {limit} s passed first"))
        return outcomes

    def _admit(self) -> list[Outcome]:
        """Let rows in while memory holds what they, and those that run and are no less urgent, will soon need.

        One for which it is too short is passed over, but not for ever.
        """
        outcomes: list[Outcome] = []
        stuck: list[Row] = []
        claims = {row: self.room.claim(row) for row in self._running if self._waiting}
        for row in list(self._waiting):
            is_full = len(self._running) >= self.config.max_rows
            if is_full or len(stuck) >= _PATIENCE or any(row.passed_over >= _PATIENCE for row in stuck):
                break
            urgency = row.request.priority
            if not self.room.start(
                row, [claim for other, claim in claims.items() if other.request.priority >= urgency]
            ):
                stuck.append(row)
                continue
            for other in stuck:
                other.passed_over += 1
            outcomes += self._begin(row)
            if row.table is not None:
                claims[row] = self.room.claim(row)
        return outcomes

    def _begin(self, row: Row) -> list[Outcome]:
        """Let a row that has its pages run."""
        _take_out(self._waiting, row)
        insort(self._running, row, key=lambda row: row.rank)
        if not row.admissions:
            row.cached, row.admitted_s = row.held, self._clock()
        row.admissions += 1
        return self._answer(row, None) if isinstance(row.need, Encode) and not row.missing else []

    def _make_room(self, plan: Plan) -> Plan:
        """Reserve what a plan needs, row by row as they rank; where pages are missing the last row yields its own."""
        for row in list(self._running):
            size = plan.encodes.get(row.order, row.width if row.order in plan.denoises else 0)
            while row.table is not None and size and not self.room.reserve(row, size):
                self._preempt(self._running[-1])
        kept = {row.order for row in self._running}
        encodes = {order: size for order, size in plan.encodes.items() if order in kept}
        return Plan(encodes, [order for order in plan.denoises if order in kept])

    def _preempt(self, row: Row) -> None:
        self._tally.preemptions += 1
        self.room.release(row)
        _take_out(self._running, row)
        self._wait(row)

    def _answer(self, row: Row, answer: Answer | Exception) -> list[Outcome]:
        """Hand a row its answer, let its program go on, and tell what it tells. A failure ends this row alone."""
        try:
            if isinstance(answer, Exception):
                raise answer
            events = row.advance(answer)
        except Exception as error:  # whatever it is, it must end no other request; the log keeps where it came from
            logging.getLogger(__name__).warning("request %s failed", row.request.id, exc_info=error)
            return [self._fail(row, "error", f"{type(error).__name__}: {error}")]
        if row.need is not None:
            self.room.settle(row, row.settled)
        outcomes: list[Outcome] = []
        for event in events:
            outcomes += self._tell(row, event)
        if row.need is None:
            self._end(row)
        return outcomes

    def _tell(self, row: Row, event: Event) -> list[Outcome]:
        id, now = row.request.id, self._clock()
        if isinstance(event, Prefilled):
            row.prefilled_s = now
        if isinstance(event, Block):
            row.blocks.append(event)
            self._tally.emitted_tokens += len(event.tokens)
        if isinstance(event, Draft) and not self.config.drafts:
            return []
        told: list[Outcome] = [Told(id, event)]
        if isinstance(event, Finished):
            self._tally.finished += 1
            width = self.limits.of(row.request.params).canvas_length
            told.append(Done(id, write_row_receipt(row, event, now, width, self._defaults, self._costs)))
        return told

    def _fail(self, row: Row, kind: str, reason: str) -> Failed:
        row.program.close()
        self._end(row)
        self._tally.failed[kind] += 1
        return Failed(row.request.id, kind, reason)

    def _end(self, row: Row) -> None:
        _take_out(self._waiting if row.table is None else self._running, row)
        self.room.release(row)
        del self._rows[row.request.id]
        self._timed.pop(row.request.id, None)


def _take_out(rows: list[Row], row: Row) -> None:
    """Take a row out of a list that is in order of rank."""
    index = bisect_left(rows, row.rank, key=lambda each: each.rank)
    assert rows[index] is row
    del rows[index]


def _wish(row: Row) -> Wish:
    waits = not isinstance(row.need, Encode)
    return Wish(row.order, row.order, row.missing, max(1, row.read), waits)
