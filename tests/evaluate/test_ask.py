"""Asking: every question once an epoch with a seed of its own, so many at once; errors, verdicts and signs."""

import asyncio
import gc
from typing import Any

import pytest

from mezzotint.evaluate.ask import Place, Record, ask_suite, draw_seed
from mezzotint.evaluate.question import Answerer, AnswerError, Suite
from mezzotint.text.detect import Finding
from tests.evaluate.asked import Scribe, question, suite


def ask(asked: Suite, answerer: Answerer, **options: Any) -> list[Record]:
    async def gather() -> list[Record]:
        how = {"epochs": 1, "seed": 0, "at_once": 1, **options}
        return [record async for record in ask_suite(asked, answerer, **how)]

    return asyncio.run(gather())


def test_every_question_is_asked_once_an_epoch_with_a_seed_of_its_own() -> None:
    scribe = Scribe(lambda id, seed: "yes")
    records = ask(suite("a", "b"), scribe, epochs=3, seed=7)
    assert [record.place for record in records] == [(id, epoch) for epoch in range(3) for id in "ab"]
    assert scribe.asked == [(record.id, record.seed) for record in records]
    assert len({record.seed for record in records}) == 6
    assert records[0].seed == draw_seed(7, "s", "a", 0) < 2**48
    assert [record.seed for record in ask(suite("a", "b"), scribe, epochs=3, seed=8)] != [r.seed for r in records]


def test_what_is_done_is_not_asked_again() -> None:
    scribe = Scribe(lambda id, seed: "yes")
    ask(suite("a", "b"), scribe, epochs=2, done=[Place("a", 0), Place("b", 1)])
    assert [id for id, _ in scribe.asked] == ["b", "a"]


@pytest.mark.parametrize("at_once", [1, 3])
def test_so_many_wait_for_an_answer_and_no_more(at_once: int) -> None:
    scribe = Scribe(lambda id, seed: "yes")
    assert len(ask(suite(*"abcdefg"), scribe, at_once=at_once)) == 7
    assert scribe.most_at_once == at_once


def test_a_record_holds_verdict_answer_signs_and_cost() -> None:
    [record] = ask(suite("a"), Scribe(lambda id, seed: "the the ("))
    assert (record.accepted, record.reason, record.error) == (None, "not yes", None)
    assert record.message == {"role": "assistant", "content": "the the ("}
    assert record.findings == (Finding("seam", 0, 7), Finding("bracket", 8, 9))
    assert record.cost is not None
    assert (record.cost.seconds, record.digest) == (0.25, question("a").digest)
    assert Record.from_json(record.as_json()) == record


def test_what_the_question_says_may_be_repeated_and_a_blank_may_hold_half_a_bracket() -> None:
    repeated = Suite(name="s", questions=(question("a", right="the the"),))
    assert ask(repeated, Scribe(lambda id, seed: "the the"))[0].findings == ()
    blank = Suite(name="s", questions=(question("a", messages=(), around=("f", ")")),))
    assert ask(blank, Scribe(lambda id, seed: "("))[0].findings == ()


def test_an_error_that_several_meet_at_once_is_raised_once_and_none_is_left_for_asyncio_to_print() -> None:
    def refuse(id: str, seed: int) -> str:
        raise ValueError(f"refused {id}")

    left: list[dict[str, Any]] = []

    async def collect() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, told: left.append(told))
        async for _ in ask_suite(suite("a", "b", "c"), Scribe(refuse), epochs=1, seed=0, at_once=3):
            raise AssertionError("nothing was answered")

    with pytest.raises(ValueError, match="refused"):
        asyncio.run(collect())
    gc.collect()
    assert left == []


def test_an_error_before_the_first_answer_ends_the_run_and_a_later_one_is_a_record() -> None:
    always = Scribe(lambda id, seed: AnswerError("away"))
    with pytest.raises(ValueError, match="question a got no answer: away"):
        ask(suite("a", "b"), always)
    assert len(always.asked) == 1
    second = Scribe(lambda id, seed: AnswerError("away") if id == "b" else "yes")
    records = ask(suite("a", "b", "c"), second)
    assert [(record.id, record.accepted, record.error) for record in records] == [
        ("a", True, None),
        ("b", None, "away"),
        ("c", True, None),
    ]
    again = ask(suite("a", "b"), second, done=[Place("a", 0)])
    assert [record.error for record in again] == ["away"]
