"""When an arm is left alone, and when it is tried again."""

from mezzotint.router.breaker import Breaker
from tests.router.stand_ins import Clock


def test_it_opens_behind_failures_in_a_row_and_lets_one_request_try_after_a_pause() -> None:
    clock = Clock()
    breaker = Breaker(2, 10.0, clock)
    breaker.fail()
    breaker.succeed()
    breaker.fail()
    assert breaker.is_passable, "the failures were not in a row"
    breaker.fail()
    assert not breaker.is_passable
    clock.now += 9.9
    assert not breaker.is_passable
    clock.now += 0.1
    assert breaker.is_passable
    breaker.enter()
    assert not breaker.is_passable, "one request tries, others wait for what becomes of it"


def test_a_try_that_fails_begins_another_pause_and_one_that_is_answered_ends_it() -> None:
    clock = Clock()
    breaker = Breaker(1, 10.0, clock)
    breaker.fail()
    clock.now += 10
    breaker.enter()
    breaker.fail()
    assert not breaker.is_passable
    clock.now += 10
    breaker.enter()
    breaker.leave()
    assert breaker.is_passable, "whoever tried left without an answer, so another may"
    breaker.enter()
    breaker.succeed()
    breaker.enter()
    assert breaker.is_passable
