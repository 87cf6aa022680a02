from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mezzotint.decoding.generate import Limits
from mezzotint.decoding.policy import Costs
from mezzotint.decoding.program import Block, Draft, Encode, Event, Finished, Prefilled, Program
from mezzotint.decoding.sampler import Sampler
from mezzotint.engine import engine as engine_module
from mezzotint.engine.request import Failed, Request, Told, UnavailableError
from mezzotint.engine.room import Claim, Room
from mezzotint.engine.row import Row
from mezzotint.engine.runner import Piece, Runner
from mezzotint.engine.start import start_program
from tests.engine.tiny import AR, ASKED, CANVAS, DIFFUSION, Run, alone, engine, guess, request, tokens_of

SHORT = CANVAS + 1


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[list[Piece]]:
    """The pieces of every encode that runs."""
    ran, plain = list[list[Piece]](), Runner.encode

    def encode(self: Runner, given: Any) -> Any:
        ran.append(list(given))
        return plain(self, given)

    monkeypatch.setattr(Runner, "encode", encode)
    return ran


def long_tokens(ran: list[Piece], lengths: list[int]) -> int:
    """Tokens that an encode held of the prompts of these lengths of which more than a short piece was left."""
    total = 0
    for piece in ran:
        for length in lengths:
            is_own = tuple(piece.tokens) == tokens_of(length, length)[piece.start : piece.start + len(piece.tokens)]
            total += len(piece.tokens) if is_own and length - piece.start > SHORT else 0
    return total


def steps_until(run: Run, id: str, kind: type[Event], count: int = 1) -> int:
    """Step until a request has told so many events of a kind. Returns: the step in which it did."""
    while sum(isinstance(event, kind) for event in run.told[id]) < count:
        run.step()
    return run.steps


@pytest.mark.parametrize("name", ASKED)
def test_a_request_alone_gets_what_the_plain_loop_gives(name: str) -> None:
    asked = request(name, 20, ASKED[name])
    run = Run(engine(chunk_tokens=7, guesses=guess([asked])))
    run.submit(asked)
    assert run.finish().answer(name) == alone(asked)


def test_a_step_is_a_chunk_a_canvas_or_a_commit() -> None:
    run = Run(engine(chunk_tokens=10))
    run.submit(request("steps", 32, replace(DIFFUSION, ignore_eos=True, steps=2, max_tokens=16)))
    told = []
    while not run.engine.is_idle:
        told.append([type(outcome.event).__name__ for outcome in run.step() if isinstance(outcome, Told)])
    # 32 tokens are two chunks of ten and then twelve, of which two are left behind ten: they go on their own.
    assert told[:4] == [[], [], [], ["Prefilled"]]
    assert told[4:] == [["Draft"], ["Draft", "Block"], [], ["Draft"], ["Draft", "Block", "Finished"]]


def test_a_receipt_tells_when_a_request_waited_and_when_it_wrote() -> None:
    clock = Clock()
    run = Run(engine(max_rows=1, chunk_tokens=10, clock=clock))
    first, second = request("first", 20, AR), request("second", 18, AR)
    run.submit(first)
    while not run.engine.is_idle:
        if run.steps == 1:
            run.submit(second)
        run.step()
        clock.now += 1.0
    receipt = run.done["first"]
    assert (receipt.queue_s, receipt.prefill_s, receipt.generation_s) == (0.0, 1.0, 11.0)
    receipt = run.done["second"]
    assert (receipt.queue_s, receipt.prefill_s, receipt.generation_s) == (12.0, 1.0, 11.0)
    assert [run.answer(each.id) for each in (first, second)] == [alone(first), alone(second)]


def test_a_request_without_a_seed_is_told_one_that_gives_the_same_answer() -> None:
    run = Run(engine())
    seed = run.engine.submit(request("unseeded", 10, replace(DIFFUSION, seed=None)))
    run.told["unseeded"] = []
    run.finish()
    assert run.done["unseeded"].seed == seed
    seeded = request("seeded", 10, replace(DIFFUSION, seed=seed))
    assert run.answer("unseeded").tokens == alone(seeded).tokens


def test_an_engine_that_tells_no_drafts_tells_the_same_blocks() -> None:
    run = Run(engine(drafts=False))
    asked = request("blocks", 10)
    run.submit(asked)
    run.finish()
    assert run.told["blocks"] == [event for event in alone(asked).events if not isinstance(event, Draft)]


def test_a_prompt_that_is_all_cached_costs_no_encode() -> None:
    run = Run(engine(page_size=4))
    for id in ("first", "again"):
        run.submit(request(id, 12, replace(DIFFUSION, max_tokens=8)))
        run.finish()
    assert run.done["again"].cached_tokens == 12
    assert run.engine.stats().encodes.forwards == 1


def test_of_long_prompts_no_step_encodes_more_than_a_chunk(pieces: list[list[Piece]]) -> None:
    run = Run(engine(chunk_tokens=12))
    lengths = [60, 31, 70, 44]
    run.submit(*[request(f"prompt {length}", length, replace(AR, max_tokens=1)) for length in lengths])
    run.submit(*[request(f"token {length}", length) for length in (3, 9)])
    run.finish()
    totals = [long_tokens(ran, lengths) for ran in pieces]
    assert max(totals) == 12
    assert totals.count(12) >= 10


def test_of_a_prompts_pieces_the_last_alone_is_read(pieces: list[list[Piece]]) -> None:
    run = Run(engine(chunk_tokens=10))
    run.submit(request("read", 33, replace(AR, max_tokens=1)), request("unread", 3, replace(DIFFUSION, max_tokens=1)))
    run.finish()
    assert [[piece.read for piece in ran] for ran in pieces] == [[0, 0], [0], [0], [1]]


def test_a_canvas_takes_a_step_at_every_step_while_prompts_are_encoded(pieces: list[list[Piece]]) -> None:
    run = Run(engine(chunk_tokens=10))
    canvas = request("canvas", 5, replace(DIFFUSION, ignore_eos=True, max_tokens=24))
    run.submit(canvas)
    steps_until(run, "canvas", Prefilled)
    lengths = [70, 60, 50]
    run.submit(*[request(f"prompt {length}", length) for length in lengths])
    # Three canvases of four steps and two commits.
    assert steps_until(run, "canvas", Finished) == 1 + 14
    assert [long_tokens(ran, lengths) for ran in pieces[1:15]] == [10] * 14
    run.finish()
    assert run.answer("canvas") == alone(canvas)


def test_a_long_prompt_and_many_short_ones_all_get_on() -> None:
    run = Run(engine(chunk_tokens=8, page_size=3))
    long = request("long", 80, replace(AR, max_tokens=4))
    run.submit(long)
    short = [request(f"short {index}", 10 + index, replace(AR, max_tokens=4, seed=index)) for index in range(12)]
    prefilled: dict[str, int] = {}
    while not run.engine.is_idle:
        if run.steps < len(short):
            run.submit(short[run.steps])
        told = [outcome for outcome in run.step() if isinstance(outcome, Told)]
        prefilled |= {each.id: run.steps for each in told if isinstance(each.event, Prefilled)}
    # The long prompt has four tokens of a step at least, and so have the others, whose last nine are short pieces.
    assert prefilled["long"] <= 80 // 4
    assert [prefilled[f"short {index}"] for index in range(3)] == [2, 3, 4]
    assert max(prefilled.values()) <= (80 + sum(range(10, 22))) // 8
    assert [run.answer(each.id) for each in (long, *short)] == [alone(each) for each in (long, *short)]


def test_the_urgent_are_admitted_first_and_equals_in_order_of_arrival() -> None:
    run = Run(engine(max_rows=1))
    priorities = {"first": 0, "second": 0, "urgent": 5, "later": -1, "urgent too": 5}
    run.submit(*[request(id, 5, replace(AR, max_tokens=2), priority=priority) for id, priority in priorities.items()])
    run.finish()
    assert list(run.done) == ["urgent", "urgent too", "first", "second", "later"]


def test_a_request_that_yielded_still_tells_what_its_first_admission_was_like() -> None:
    clock = Clock()
    run = Run(engine(pages=(18, 30), page_size=3, clock=clock))
    endless = replace(AR, ignore_eos=True, max_tokens=30)
    asked = [request(id, 10, replace(endless, seed=seed)) for seed, id in enumerate(("older", "younger"))]
    run.submit(*asked)
    while not run.engine.is_idle:
        run.step()
        clock.now += 1.0
    assert run.engine.stats().preemptions > 0
    assert (run.done["younger"].queue_s, run.done["younger"].cached_tokens) == (0.0, 0)
    assert run.done["younger"].generation_s > run.done["older"].generation_s == 29.0
    assert [run.answer(each.id) for each in asked] == [alone(each) for each in asked]


def test_where_memory_is_short_the_urgent_keep_theirs() -> None:
    run = Run(engine(pages=(18, 30), page_size=3, prefix_cache=False))
    endless = replace(AR, ignore_eos=True, max_tokens=30)
    older, urgent = request("older", 10, endless), request("urgent", 11, endless, priority=1)
    run.submit(older)
    steps_until(run, "older", Block, 3)
    run.submit(urgent)
    began = steps_until(run, "urgent", Prefilled)
    assert steps_until(run, "urgent", Finished) == began + 29
    run.finish()
    assert run.engine.stats().preemptions > 0
    assert [run.answer(each.id) for each in (older, urgent)] == [alone(older), alone(urgent)]


def test_a_request_that_memory_does_not_hold_yet_is_passed_over_eight_times_at_most() -> None:
    run = Run(engine(pages=(17, 40), page_size=4, prefix_cache=False))
    endless = replace(AR, ignore_eos=True, max_tokens=40)
    run.submit(request("running", 5, endless))
    run.step()
    large = request("large", 60, replace(AR, max_tokens=3))  # 16 pages, and 15 are free
    run.submit(large, *[request(f"small {index}", 3, replace(AR, max_tokens=1)) for index in range(20)])
    before: set[str] = set()
    while not run.told["large"]:
        before = set(run.done) - {"running"}
        run.step()
    assert len(before) == 8
    run.finish()
    assert run.answer("large") == alone(large)


def test_in_little_memory_few_rows_are_let_in_only_to_yield() -> None:
    asked = [
        request(f"{name} {length}", length, replace(params, ignore_eos=True))
        for length, (name, params) in zip(range(12, 60, 2), [*ASKED.items(), *ASKED.items()], strict=False)
    ]
    runs = [Run(engine(pages=(40, 40), chunk_tokens=16, guesses=True, hasty=hasty)) for hasty in (True, False)]
    for run in runs:
        for each in asked:
            run.submit(each)
            run.step()
        run.finish()
        assert [run.answer(each.id) for each in asked] == [alone(each) for each in asked]
    hasty, stats = (run.engine.stats() for run in runs)
    assert hasty.preemptions > 2 * len(asked)
    assert stats.preemptions < len(asked) / 4
    assert stats.steps < 1.1 * hasty.steps, "rows that would yield again got nothing done"
    assert stats.encodes.tokens < hasty.encodes.tokens


def test_rows_that_are_let_in_at_once_are_not_promised_the_same_pages() -> None:
    run = Run(engine(pages=(18, 60), chunk_tokens=16, prefix_cache=False))
    asked = [request(f"request {index}", 30, replace(AR, ignore_eos=True, seed=index)) for index in range(3)]
    run.submit(*asked)  # of 18 pages each takes 10 for its prompt and a canvas behind it
    run.step()
    assert (run.engine.stats().running, run.engine.stats().waiting) == (1, 2)
    run.finish()
    assert run.engine.stats().preemptions == 0
    assert [run.answer(each.id) for each in asked] == [alone(each) for each in asked]


def test_for_the_urgent_nothing_is_kept_that_less_urgent_ones_will_need() -> None:
    run = Run(engine(pages=(20, 60), prefix_cache=False))
    run.submit(request("running", 40, replace(AR, ignore_eos=True)))
    run.step()  # it holds 10 pages, and will soon need 3 more
    run.submit(request("equal", 30, AR), request("urgent", 30, AR, priority=1))
    run.step()
    assert [row.request.id for row in run.engine._running] == ["urgent", "running"]
    assert [row.request.id for row in run.engine._waiting] == ["equal"]
    run.finish()


def test_of_those_that_memory_does_not_hold_eight_are_tried_at_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(engine(pages=(14, 40), prefix_cache=False))
    run.submit(request("running", 40, replace(AR, ignore_eos=True)))
    run.step()
    run.submit(*[request(f"waiting {index}", 30, AR) for index in range(30)])
    tried, start = list[str](), Room.start

    def trying(self: Room, row: Row, claims: Sequence[Claim]) -> bool:
        tried.append(row.request.id)
        return start(self, row, claims)

    monkeypatch.setattr(Room, "start", trying)
    run.step()
    assert tried == [f"waiting {index}" for index in range(8)]
    run.finish()


def test_a_verification_that_yielded_begins_anew_in_no_more_memory_than_a_request_is_granted() -> None:
    params = replace(AR, decoder="verified", ignore_eos=True, max_tokens=30, draft_tokens=5, draft_steps=1)
    asked = [request(f"request {index}", 60, replace(params, seed=index)) for index in range(2)]
    # Of 90 positions the sliding layers need 10 pages of 2: a window of 6, a canvas or a verification and two ends.
    run = Run(engine(pages=(90, 10), page_size=2, chunk_tokens=4, prefix_cache=False, hasty=True), limit=400)
    run.submit(*asked)
    run.finish()
    assert run.engine.stats().preemptions > 10
    assert [run.answer(each.id) for each in asked] == [alone(each) for each in asked]


def test_a_deadline_ends_a_request_wherever_it_is() -> None:
    clock = Clock()
    run = Run(engine(max_rows=1, clock=clock))
    run.submit(request("running", 10, deadline_s=5.0), request("waiting", 10, deadline_s=5.0), request("patient", 10))
    run.step()
    run.step()
    clock.now += 5.0
    run.step()
    assert not run.failed
    clock.now += 0.5
    outcomes = run.step()
    assert outcomes[:2] == [
        Failed(id, "deadline", "the deadline of 5.0 s passed first") for id in ("running", "waiting")
    ]
    run.finish()
    assert set(run.done) == {"patient"}
    assert run.answer("patient") == alone(request("patient", 10))


PHASES: dict[str, Callable[[Run], object]] = {
    "waiting": lambda run: None,
    "prefilling": lambda run: (run.step(), run.step()),
    "denoising": lambda run: steps_until(run, "gone", Draft, 2),
    "between blocks": lambda run: steps_until(run, "gone", Block),
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_cancelled_request_is_gone_at_once_with_all_its_pages(phase: str) -> None:
    run = Run(engine(chunk_tokens=10, prefix_cache=False))
    gone, other = request("gone", 40, replace(DIFFUSION, ignore_eos=True)), request("other", 12)
    run.submit(gone)
    PHASES[phase](run)
    run.submit(other)
    run.cancel("gone")
    assert run.failed == {"gone": Failed("gone", "cancelled", "the request was cancelled")}
    stats = run.engine.stats()
    assert (stats.full.used, stats.sliding.used, stats.running, stats.waiting) == (0, 0, 0, 1)
    told = tuple(run.told["gone"])
    assert told == alone(gone).events[: len(told)]
    run.finish()
    assert run.answer("other") == alone(other)
    assert run.engine.cancel("gone") == run.engine.cancel("other") == run.engine.cancel("never seen") == []


def test_a_program_that_fails_ends_its_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(asked: Request, seed: int, limits: Limits, defaults: Sampler, weigh: Callable[[], Costs]) -> Program:
        return failing() if asked.id == "failing" else start_program(asked, seed, limits, defaults, weigh)

    def failing() -> Program:
        yield Encode([4, 5], 0, 1)
        yield Prefilled(2)
        raise ZeroDivisionError("in a program")

    monkeypatch.setattr(engine_module, "start_program", start)
    run = Run(engine())
    run.submit(request("other", 12), request("failing", 2))
    run.finish()
    assert run.failed == {"failing": Failed("failing", "error", "ZeroDivisionError: in a program")}
    assert run.answer("other") == alone(request("other", 12))


def test_an_id_that_runs_already_and_more_than_may_wait_are_refused() -> None:
    run = Run(engine(max_waiting=2))
    run.submit(request("one"))
    with pytest.raises(ValueError, match="a request 'one' is running already; give another id"):
        run.engine.submit(request("one"))
    run.submit(request("two"))
    with pytest.raises(UnavailableError, match="2 requests wait already; try again later or raise max_waiting"):
        run.engine.submit(request("three"))
    run.finish()
    run.submit(request("three"))
    assert run.finish().answer("three") == alone(request("three"))


def test_a_request_that_memory_could_never_hold_is_refused_before_it_waits() -> None:
    run = Run(engine(pages=(8, 12)))
    with pytest.raises(ValueError, match="a request of 33 tokens needs 9 and 9 pages of 4 tokens, and there are 8"):
        run.engine.submit(request("too long", 21, AR))
    assert run.engine.is_idle
    run.submit(request("just fits", 20, AR))
    assert run.finish().answer("just fits") == alone(request("just fits", 20, AR))


def test_an_abandoned_engine_has_failed_all_its_requests_and_serves_the_next() -> None:
    run = Run(engine(max_rows=1))
    run.submit(request("running"), request("waiting"))
    run.step()
    run.engine.room.pools.full.references[0] += 1  # an account that is wrong
    with pytest.raises(AssertionError, match="full page 0 counts 2 references"):
        run.engine.check_integrity()
    run.take(run.engine.abandon("crashed", "the step failed"))
    assert run.failed == {id: Failed(id, "crashed", "the step failed") for id in ("running", "waiting")}
    assert run.engine.is_idle
    run.engine.check_integrity()
    run.submit(request("next"))
    assert run.finish().answer("next") == alone(request("next"))
    assert run.engine.stats().failed == {"crashed": 2}
