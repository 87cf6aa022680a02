"""Who sits where: a better arm takes a seat after five clear decisions or once it is surely better, not before."""

from mezzotint.router.incumbents import Incumbents
from mezzotint.router.policy_file import PolicyConfig

PLACE = ("text-any", "balanced", 0)


def unsure(new: str, old: str) -> float:
    return 0.6


def choose(incumbents: Incumbents, a: float, b: float, sure: float = 0.6) -> str:
    return incumbents.choose(PLACE, {"a": a, "b": b}, lambda new, old: sure)


def seated() -> Incumbents:
    incumbents = Incumbents(PolicyConfig())
    assert choose(incumbents, 1.0, 2.0) == "a"
    return incumbents


def test_an_arm_that_is_clearly_better_five_times_running_takes_the_seat() -> None:
    incumbents = seated()
    assert [choose(incumbents, 1.0, 0.9) for _ in range(6)] == ["a"] * 4 + ["b"] * 2


def test_one_decision_to_the_contrary_starts_the_count_anew() -> None:
    incumbents = seated()
    told = [choose(incumbents, 1.0, b) for b in (0.9, 0.9, 0.9, 0.9, 0.99, 0.9, 0.9, 0.9, 0.9)]
    assert told == ["a"] * 9


def test_an_arm_that_is_surely_better_takes_the_seat_at_once() -> None:
    assert choose(seated(), 1.0, 0.99, sure=0.9) == "b"


def test_a_little_better_for_ever_and_not_sure_is_not_enough() -> None:
    incumbents = seated()
    assert {choose(incumbents, 1.0, 0.97) for _ in range(50)} == {"a"}


def test_an_incumbent_that_cannot_be_had_keeps_its_seat() -> None:
    incumbents = seated()
    assert incumbents.choose(PLACE, {"b": 5.0}, unsure) == "b"
    assert choose(incumbents, 1.0, 0.97) == "a"


def test_classes_goals_and_loads_have_seats_of_their_own() -> None:
    incumbents = seated()
    for place in (("code-long", "balanced", 0), ("text-any", "fast", 0), ("text-any", "balanced", 1)):
        assert incumbents.choose(place, {"a": 1.0, "b": 0.99}, unsure) == "b"


def test_an_arm_that_changed_loses_its_seats() -> None:
    incumbents = seated()
    incumbents.unseat("a")
    assert choose(incumbents, 1.0, 0.99) == "b"
