"""Slots that stay taken, a clock that stands still between turns, and the tokens of the plain loop."""

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.closed_loop import ClosedLoop, TurnClock
from mezzotint.engine.request import Outcome
from tests.engine.tiny import AR, DIFFUSION, alone, engine, request


class Machine:
    """Seconds that pass only when an engine steps: one a step, and a tenth for every request that runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.clock = TurnClock(lambda: self.now)
        self.engine = engine(clock=self.clock, memory_bytes=2**22)
        self.in_flight: list[int] = []
        step = self.engine.step

        def timed() -> list[Outcome]:
            self.in_flight.append(len(self.engine._rows))
            self.now += 1 + 0.1 * len(self.engine._rows)
            return step()

        monkeypatch.setattr(self.engine, "step", timed)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def asks(first: int, count: int) -> list[Any]:
    """Requests of both kinds, each of its own length."""
    kinds = [replace(AR, max_tokens=4), replace(DIFFUSION, max_tokens=9), replace(AR, max_tokens=12)]
    return [request(f"{first + place}", 5 + place % 7, kinds[place % 3]) for place in range(count)]


def loop(machine: Machine, slots: int, measured: int = 30) -> ClosedLoop:
    return ClosedLoop(
        machine.engine,
        machine.clock,
        slots,
        warm_up=asks(0, slots),
        measured=asks(100, measured),
        fillers=asks(1000, 2 * slots),
    )


def test_every_slot_stays_taken_until_the_last_measured_answer(machine: Machine) -> None:
    run = loop(machine, 4)
    run.run(30)
    assert set(machine.in_flight) == {4}
    assert len(run.served) == 30


def test_only_measured_requests_are_told_of_and_they_have_the_tokens_of_the_plain_loop(machine: Machine) -> None:
    run = loop(machine, 3, measured=9)
    run.run(9)
    assert sorted(run.served) == [str(number) for number in range(100, 109)]
    for asked in asks(100, 9):
        assert run.served[asked.id].tokens == alone(asked).tokens
        assert run.served[asked.id].receipt.output_tokens == len(run.served[asked.id].tokens)


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_slots_over_mean_latency_are_requests_a_second(machine: Machine, slots: int) -> None:
    run = loop(machine, slots)
    run.run(1)
    began, before = machine.clock(), machine.engine.stats().finished
    run.run(30)
    counted = (machine.engine.stats().finished - before) / (machine.clock() - began)
    by_latency = slots / (sum(answer.latency_s for answer in run.served.values()) / len(run.served))
    assert by_latency == pytest.approx(counted, rel=0.1)


def test_a_latency_is_that_of_the_whole_answer(machine: Machine) -> None:
    run = loop(machine, 1, measured=2)
    run.run(2)
    [first, second] = run.served.values()
    # Alone, an AR answer of n tokens takes n steps, and a diffusion answer one for its prompt besides its own.
    assert first.latency_s == pytest.approx(1.1 * len(first.tokens))
    steps = sum(second.receipt.denoise_steps) + second.receipt.encodes + 1
    assert second.latency_s == pytest.approx(1.1 * steps)


def test_the_clock_stands_still_between_turns(machine: Machine) -> None:
    whole, parted = loop(machine, 3, measured=12), loop(Machine(pytest.MonkeyPatch()), 3, measured=12)
    whole.run(12)
    other = parted._clock
    for answers in (3, 6, 9, 12):
        before = other()
        machine.now += 1000.0
        assert other() == before
        parted.run(answers)
    assert {id: answer.latency_s for id, answer in parted.served.items()} == pytest.approx(
        {id: answer.latency_s for id, answer in whole.served.items()}
    )


def test_a_clock_counts_its_turns_alone() -> None:
    now = [0.0]
    clock = TurnClock(lambda: now[0])
    with clock.running():
        now[0] += 2
        assert clock() == 2
    now[0] += 50
    with clock.running():
        now[0] += 3
    assert clock() == 5


def test_a_request_that_fails_ends_the_loop(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    run = loop(machine, 2)
    monkeypatch.setattr(machine.engine._batch._runner, "encode", lambda pieces: 1 / 0)
    with pytest.raises(RuntimeError, match="request '0' failed: ZeroDivisionError"):
        run.run(1)


def test_slots_that_begin_empty_are_refused(machine: Machine) -> None:
    with pytest.raises(ValueError, match="3 slots begin with 2 requests of warm-up; give one a slot at least"):
        ClosedLoop(machine.engine, machine.clock, 3, warm_up=asks(0, 2), measured=asks(9, 9), fillers=asks(50, 3))
