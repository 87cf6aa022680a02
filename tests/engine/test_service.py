"""What readers see of an engine on its thread. Where order matters a test holds the engine before each of its steps."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from mezzotint.decoding.program import Block, Draft, Event, Prefilled
from mezzotint.engine.engine import Engine
from mezzotint.engine.request import Done, Failed, Outcome, Request, Told, UnavailableError
from mezzotint.engine.service import Service, Stream
from tests.engine.tiny import AR, DIFFUSION, Answer, alone, engine, request, settled

ENDLESS = replace(DIFFUSION, ignore_eos=True, max_tokens=80)


@contextmanager
def held(made: Engine) -> Iterator[Callable[[int], None]]:
    """Let an engine step only as often as it is told to, and freely in the end, so that a test that fails ends too."""
    permits, plain = threading.Semaphore(0), made.step

    def step() -> list[Outcome]:
        permits.acquire()
        return plain()

    made.step = step  # type: ignore[method-assign]
    try:
        yield permits.release
    finally:
        permits.release(100_000)


def answer_of(outcomes: Iterable[Outcome]) -> Answer:
    *told, done = outcomes
    assert isinstance(done, Done)
    receipt = replace(done.receipt, cached_tokens=0, queue_s=0.0, prefill_s=0.0, generation_s=0.0)
    return Answer(settled(each.event for each in told if isinstance(each, Told)), receipt)


async def read(service: Service, asked: Request) -> list[Outcome]:
    return [outcome async for outcome in service.stream(asked)]


def test_readers_on_one_loop_get_what_the_plain_loops_give() -> None:
    asked = [request("first", 12), request("second", 20, AR), request("third", 12)]

    async def read_all(service: Service) -> list[list[Outcome]]:
        return await asyncio.gather(*[read(service, each) for each in asked])

    with Service(engine()) as service:
        found = asyncio.run(read_all(service))
    assert [answer_of(outcomes) for outcomes in found] == [alone(each) for each in asked]


def test_readers_without_a_loop_get_what_the_plain_loops_give() -> None:
    asked = [request("first", 12), request("second", 20, AR), request("third", 12)]
    with Service(engine()) as service:
        streams = [service.submit(each) for each in asked]
        assert [answer_of(stream) for stream in streams] == [alone(each) for each in asked]
        assert [list(stream) for stream in streams] == [[]] * 3, "a stream that has ended stays so"


@pytest.mark.parametrize("kind", [Prefilled, Draft, Block])
def test_a_reader_that_leaves_has_cancelled_its_request_and_no_other(kind: type[Event]) -> None:
    made, other = engine(), request("other", 12)

    async def read_until(service: Service, release: Callable[[int], None]) -> Stream:
        """Read one request step by step up to an event of that kind, beside another one."""
        beside = None
        async with aclosing(service.stream(request("gone", 10, ENDLESS))) as outcomes:
            release(1)
            async for outcome in outcomes:
                beside = beside or service.submit(other)
                if isinstance(outcome, Told) and isinstance(outcome.event, kind):
                    return beside
                release(1)
        raise AssertionError("it ended first")

    async def leave(service: Service, release: Callable[[int], None]) -> Answer:
        beside = await read_until(service, release)
        release(100)
        await asyncio.to_thread(service.drain)  # while the loop goes on
        return answer_of(beside)

    with Service(made) as service, held(made) as release:
        assert asyncio.run(leave(service, release)) == alone(other)
        stats = service.stats()
    assert (stats.finished, stats.failed) == (1, {"cancelled": 1})
    assert (stats.full.used, stats.sliding.used) == (0, 0)


def test_a_task_that_is_cancelled_has_cancelled_its_request() -> None:
    made = engine()

    async def cancel(service: Service, release: Callable[[int], None]) -> None:
        begun = asyncio.Event()

        async def read_on() -> None:
            async for _ in service.stream(request("gone", 10, ENDLESS)):
                begun.set()

        task = asyncio.create_task(read_on())
        release(2)
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release(100)
        await asyncio.to_thread(service.drain)  # while the loop goes on

    with Service(made) as service, held(made) as release:
        asyncio.run(cancel(service, release))
        assert service.stats().failed == {"cancelled": 1}


def test_a_stream_that_is_closed_has_cancelled_its_request() -> None:
    made = engine()
    with Service(made) as service, held(made) as release:
        with service.submit(request("gone", 10, ENDLESS)) as stream:
            release(1)
            assert next(stream) == Told("gone", Prefilled(10))
        unread = service.submit(request("unread", 10, ENDLESS))
        unread.close()
        release(100)
        service.drain()
        assert service.stats().failed == {"cancelled": 2}
        assert list(stream) == list(unread) == []


def test_a_late_farewell_does_not_end_another_request_of_the_same_id() -> None:
    made = engine()

    async def leave_late(service: Service, release: Callable[[int], None]) -> Answer:
        first = service.stream(request("same", 5, replace(AR, max_tokens=1)))
        release(1)
        await anext(first)  # the request has ended, and its reader has not seen it
        second = service.submit(request("same", 12))
        release(1)
        prefilled = next(second)
        await first.aclose()
        release(100)
        return answer_of([prefilled, *second])

    with Service(made) as service, held(made) as release:
        assert asyncio.run(leave_late(service, release)) == alone(request("same", 12))


def test_a_reader_that_is_slow_loses_drafts_and_no_block() -> None:
    asked = request("slow", 5, ENDLESS)
    with Service(engine()) as service:
        stream = service.submit(asked)
        service.drain()  # nothing of it waits for the reader
        told = settled(outcome.event for outcome in stream if isinstance(outcome, Told))
    whole = alone(asked).events
    drafts = [event for event in whole if isinstance(event, Draft)]
    assert len(drafts) > 32
    assert [event for event in told if not isinstance(event, Draft)] == [
        event for event in whole if not isinstance(event, Draft)
    ]
    assert [event for event in told if isinstance(event, Draft)] == drafts[-32:]


def test_what_cannot_be_answered_is_told_to_its_reader_alone() -> None:
    made = engine(max_rows=1, max_waiting=1)
    with Service(made) as service, held(made) as release:
        first = service.submit(request("first", 12))
        release(1)
        assert next(first) == Told("first", Prefilled(12))
        others = [service.submit(request(id, 12)) for id in ("second", "third")]
        wrong = service.submit(request("wrong", 95))
        release(1)  # to the next look into the inbox
        with pytest.raises(UnavailableError, match="1 requests wait already"):
            next(others[1])
        with pytest.raises(UnavailableError, match="1 requests wait already"):
            next(wrong)
        release(100)
        assert answer_of(others[0]) == alone(request("second", 12))
        with pytest.raises(ValueError, match="exceed the context of 96"):
            asyncio.run(read(service, request("wrong", 95)))


def test_a_step_that_fails_as_a_whole_ends_its_requests_and_the_service_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = engine(max_rows=1)
    with Service(made) as service, held(made) as release:
        streams = [service.submit(request(id, 12)) for id in ("running", "waiting")]
        release(1)
        assert next(streams[0]) == Told("running", Prefilled(12))
        with monkeypatch.context() as patch:
            patch.setattr(made, "_make_room", lambda plan: 1 // 0)
            release(1)
            reason = "the engine failed: ZeroDivisionError: integer division or modulo by zero"
            ends = [list(stream)[-1] for stream in streams]
            assert ends == [Failed(id, "crashed", reason) for id in ("running", "waiting")]
        release(100)
        assert answer_of(service.submit(request("next", 12))) == alone(request("next", 12))
        service.drain()
        made.check_integrity()
    assert service.stats().failed == {"crashed": 2}
    assert "a step failed" in caplog.text


def test_a_service_that_drains_takes_no_more_and_ends_what_it_took() -> None:
    with Service(engine()) as service:
        streams = [service.submit(request(f"request {index}", 12)) for index in range(3)]
        service.drain()
        with pytest.raises(UnavailableError, match="takes no requests"):
            service.submit(request("late"))
        with pytest.raises(UnavailableError, match="takes no requests"):
            asyncio.run(read(service, request("late")))
        assert service.stats().finished == 3
        assert all(answer_of(stream) == alone(request("any", 12)) for stream in streams)


def test_a_service_that_stops_fails_what_runs() -> None:
    made = engine()
    service = Service(made)
    service.start()
    with held(made) as release:
        stream = service.submit(request("running", 12, ENDLESS))
        release(1)
        assert next(stream) == Told("running", Prefilled(12))
        stopping = threading.Thread(target=service.stop)
        stopping.start()
        with service._changed:
            service._changed.wait_for(lambda: service._is_stopping)
    stopping.join()
    *_, last = stream
    assert last == Failed("running", "stopped", "the service was stopped")
    assert service.stats().failed == {"stopped": 1}
    with pytest.raises(UnavailableError):
        service.submit(request("late"))
    stream.close()
    service.drain()
    service.stop()
    with pytest.raises(RuntimeError, match="once"):
        service.start()


def test_a_service_that_was_never_started_takes_nothing_and_stops() -> None:
    service = Service(engine())
    with pytest.raises(UnavailableError, match="it was not started"):
        service.submit(request("early"))
    assert service.stats().submitted == 0
    service.stop()


def test_a_reader_whose_loop_is_gone_costs_no_more_than_a_step() -> None:
    made = engine()
    with Service(made) as service, held(made) as release:
        loop = asyncio.new_event_loop()
        outcomes = service.stream(request("gone", 10, ENDLESS))
        release(1)
        assert loop.run_until_complete(anext(outcomes)) == Told("gone", Prefilled(10))
        loop.close()
        release(100)
        service.drain()
        stats = service.stats()
    assert stats.failed == {"cancelled": 1}
    assert stats.steps <= 3


def test_an_idle_service_sleeps_until_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[Any] = []
    plain = threading.Condition.wait
    others = set(threading.enumerate()) - {threading.current_thread()}

    def wait(self: threading.Condition, timeout: float | None = None) -> bool:
        if threading.current_thread() not in others:  # a progress bar's monitor, say, that an earlier test left behind
            waits.append(timeout)
        return plain(self, timeout)

    made = engine()
    monkeypatch.setattr(threading.Condition, "wait", wait)
    with Service(made) as service:
        list(service.submit(request("first", 12)))
        list(service.submit(request("second", 12)))
        service.drain()
    assert set(waits) == {None}
    assert service.stats().steps < 40
