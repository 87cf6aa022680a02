"""How an answer is settled under a grammar: in one go or token by token, and back again."""

from random import Random

import pytest

from mezzotint.decoding.guide import Guide
from mezzotint.decoding.params import SamplingParams
from tests.decoding.machine import Machine, drawn, spelling
from tests.decoding.network import END, limits

PROMPT = [3, 1, 4]


def begin(grammar: Machine, room: int) -> Guide:
    return Guide(PROMPT, SamplingParams(max_tokens=room), 1, limits(), grammar)


def propose(guide: Guide, grammar: Machine, written: list[int], rng: Random) -> list[int]:
    """A random valid run behind what was written, forced tokens and now and then an end in it."""
    place = grammar.copy()
    place.consume(written)
    run = list[int]()
    for _ in range(rng.randint(0, 6)):
        if not place.here or (place.is_accepting and rng.random() < 0.3):
            break
        run.append(rng.choice(sorted(place.here)))
        place.consume(run[-1:])
    if place.is_accepting and rng.random() < 0.3:
        run.append(END)
    return run[: guide.count_valid(run)]


def state(guide: Guide) -> tuple[object, ...]:
    """All that decides how an answer goes on, the known end among it."""
    place = guide._place
    assert isinstance(place, Machine)
    counted = (guide.overridden, guide.forced, guide.chosen, guide.room, guide.reason)
    return (*counted, guide._answer, guide._closure, guide.peek(99), place.path)


@pytest.mark.parametrize("room", [6, 12, 40])
def test_a_guide_that_took_tokens_back_is_one_that_never_had_them(room: int) -> None:
    went_back = 0
    for seed in range(60):
        rng, grammar = Random(seed), drawn(seed)
        shortest = grammar.closure(99)
        if shortest is None or len(shortest) >= room:
            continue
        guide, kept = begin(grammar, room), list[list[int]]()
        marks = [guide.mark()]
        written: list[int] = []
        for _ in range(8):
            due = guide.due(3)
            if guide.reason:
                break
            run = propose(guide, grammar, [*written, *due], rng)
            settled = guide.settle(run)
            if guide.reason:
                break
            written, marks = [*written, *due, *settled], [*marks, guide.mark()]
            kept.append(run)
            if rng.random() < 0.4:
                back = rng.randint(0, len(kept))
                guide.take_back(marks[back])
                del kept[back:], marks[back + 1 :]
                written, went_back = written[: marks[back].length], went_back + 1
        if guide.reason:
            continue
        fresh = begin(grammar, room)
        for run in kept:
            fresh.due(3)
            fresh.settle(run)
        assert state(guide) == state(fresh)
    assert went_back > 3


@pytest.mark.parametrize("room", [5, 9, 14, 40])
def test_a_run_settled_in_one_go_is_what_it_is_token_by_token_and_an_end_fits_behind_it(room: int) -> None:
    """Token by token the known end may be begun where the model's own way to another one would have fitted too."""
    runs = longer = 0
    for seed in range(60):
        rng, grammar = Random(seed), drawn(seed)
        quick, slow, written = begin(grammar, room), begin(grammar, room), list[int]()
        has_end = grammar.closure(room - 1) is not None
        for _ in range(8):
            due = quick.due()
            assert slow.due() == due
            written += due
            if quick.reason:
                break
            run = propose(quick, grammar, written, rng)
            settled, one_by_one = quick.settle(run), list[int]()
            for token in run:
                one_by_one += (one := slow.settle([token]))
                if slow.reason or one != [token]:
                    break
            assert settled[: len(one_by_one)] == one_by_one
            written, runs = [*written, *settled], runs + 1
            place = grammar.copy()
            place.consume([id for id in written if id != END])
            assert quick.reason or not has_end or place.closure(quick.room - 1) is not None
            if quick.reason or len(settled) > len(one_by_one):
                longer += len(settled) > len(one_by_one)
                break
            assert (quick.room, quick.reason, quick.forced) == (slow.room, slow.reason, slow.forced)
            assert quick.chosen == slow.chosen
    assert runs > 60
    assert longer <= 2


def test_an_answer_goes_where_a_long_way_begins_only_if_its_end_fits_the_room() -> None:
    """The run 1 2 leads into a word of 30 tokens; with room for 20 the short way out is taken."""
    grammar = spelling([1, 2, *[3] * 28], [1, 4])
    short, long = begin(grammar, 20), begin(grammar, 40)
    assert [*short.due(), *short.settle([2])] == [1, 4]
    assert [*long.due(), *long.settle([2])] == [1, 2]
