"""The judge: what it is shown, what of its verdicts counts, and what they say of it and of answers."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import cycle
from typing import Any, TypeVar

import pytest
import stamina

from mezzotint.evaluate.assess import Assessment, Comparison, Standard, assess, cohen_kappa, compare_answers
from mezzotint.evaluate.interval import clustered_interval
from mezzotint.evaluate.judge import EndpointJudge, Preference, is_same_model
from mezzotint.evaluate.verify import Rating
from tests.evaluate.asked import record, suite
from tests.evaluate.scripted import Reply, chat, scripted

T = TypeVar("T")
ASKED = ({"role": "user", "content": "What is 2 + 3?"},)


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=2, cap=True):
        yield


def with_judge(reply: Reply, work: Callable[[EndpointJudge], Awaitable[T]]) -> tuple[T, list[dict[str, Any]]]:
    async def run(url: str) -> T:
        async with EndpointJudge(url, "wise", "none") as judge:
            return await work(judge)

    with scripted(reply) as server:
        return asyncio.run(run(server.url)), [body for _, body in server.asked]


def says(*texts: str, **options: Any) -> Reply:
    turn = cycle(texts)
    return lambda path, body: chat(next(turn), **options)


def rate(reply: Reply, answer: Mapping[str, Any] | None = None) -> tuple[Rating, list[dict[str, Any]]]:
    said = answer or {"content": "It is 5."}
    return with_judge(reply, lambda judge: judge.rate(ASKED, said, rubric="be right", grades=5))


def test_a_judge_is_shown_rubric_conversation_and_answer_as_material() -> None:
    thoughtful = {"content": "It is 5.", "reasoning_content": "hm", "tool_calls": [{"id": "1", "function": {"n": 1}}]}
    rating, [body] = rate(says('{"reason": "right", "grade": 4}'), thoughtful)
    assert rating == (4, "right")
    system, user = body["messages"]
    assert "from 1 (worst) to 5" in system["content"]
    assert "Rubric: be right" in system["content"]
    assert "all of it is material" in system["content"].lower()
    shown = {"conversation": list(ASKED), "answer": {"content": "It is 5.", "calls": [{"n": 1}]}}
    assert json.loads(user["content"]) == shown
    assert (body["model"], body["temperature"]) == ("wise", 0)


@pytest.mark.parametrize(
    ("said", "grade"),
    [
        ('{"grade": 5}', 5),
        (' ```json\n{"grade": 1, "reason": "x"}\n``` ', 1),
        ('{"grade": 6}', None),
        ('{"grade": 0}', None),
        ('{"grade": "5"}', None),
        ('{"grade": true}', None),
        ('{"grade": 4.5}', None),
        ('{"reason": "fine"}', None),
        ("[5]", None),
        ("I give it a 5.", None),
        ("", None),
    ],
)
def test_a_verdict_that_is_not_as_asked_for_is_none(said: str, grade: int | None) -> None:
    rating, _ = rate(says(said))
    assert rating.grade == grade
    assert rating.reason or grade


def test_a_verdict_cut_short_and_a_judge_that_is_away_are_none_with_a_reason() -> None:
    assert rate(says('{"grade": 5}', reason="length"))[0] == (None, "the judge's verdict was cut at 1024 tokens")
    away, asked = rate(lambda path, body: (503, {"error": {"message": "full"}}))
    assert away.grade is None
    assert "full" in away.reason
    assert len(asked) == 2
    with pytest.raises(ValueError, match="correct the URL, the model's name or the key"):
        rate(lambda path, body: (401, {"error": {"message": "who?"}}))


def prefer(reply: Reply) -> Preference:
    def compare(judge: EndpointJudge) -> Awaitable[Preference]:
        return judge.compare(ASKED, {"content": "first"}, {"content": "second"}, rubric="be right")

    preference, asked = with_judge(reply, compare)
    shown = [json.loads(body["messages"][1]["content"]) for body in asked]
    assert [(each["A"], each["B"]) for each in shown] == [("first", "second"), ("second", "first")]
    return preference


def who_is(text: str) -> Reply:
    """A judge that prefers a text wherever it stands."""

    def choose(path: str, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        shown = json.loads(body["messages"][1]["content"])
        better = "A" if shown["A"] == text else "B" if shown["B"] == text else "tie"
        return chat(json.dumps({"reason": "so", "better": better}))

    return choose


def test_a_verdict_counts_only_if_it_outlives_the_change_of_places() -> None:
    assert prefer(who_is("first")) == ("first", False, "so")
    assert prefer(who_is("second")) == ("second", False, "so")
    assert prefer(who_is("neither")) == ("tie", False, "so")
    assert prefer(says('{"better": "A"}'))[:2] == ("tie", True)
    assert prefer(says('{"better": "A"}', '{"better": "tie"}'))[:2] == ("tie", True)
    assert prefer(says('{"better": "A"}', "B, I think"))[:2] == (None, False)
    assert prefer(says('{"better": "first"}'))[:2] == (None, False)


@pytest.mark.parametrize(
    ("url", "model", "is_same"),
    [
        ("http://127.0.0.1:8000/v1", "lab", True),
        ("http://localhost:8000/v1/", "lab", True),
        ("http://127.0.0.1:8000/v1", "lab:ar", True),
        ("http://127.0.0.1:8000/v1", "other", False),
        ("http://127.0.0.1:8001/v1", "lab", False),
    ],
)
def test_the_model_under_test_is_known_by_url_and_name(url: str, model: str, is_same: bool) -> None:
    assert is_same_model((url, model), ("http://127.0.0.1:8000/v1", "lab")) is is_same


def graded(reply: Reply, retests: int = 0, **accepted: bool | None) -> Assessment:
    records = [record(id, accepted=verdict) for id, verdict in accepted.items()]
    asked = suite(*accepted)

    def work(judge: EndpointJudge) -> Awaitable[Assessment]:
        return assess(judge, asked, records, Standard("be right"), retests=retests, at_once=1)

    return with_judge(reply, work)[0]


def test_agreement_with_verifiers_is_over_what_both_have_judged() -> None:
    grades = (f'{{"grade": {grade}}}' for grade in (5, 2, 4, 1, 5))
    told = graded(says(*grades), a=True, b=True, c=False, d=False, e=None)
    assert (told.answers, told.compared, told.unscored) == (5, 4, 0)
    assert (told.mean_grade, told.accepted) == (3.4, 0.6)
    assert told.agreement == 0.5
    assert told.agreement_interval == clustered_interval([1, 0, 0, 1])
    assert told.kappa == 0.0
    assert (told.flips, told.spread) == (None, None)


def test_noise_is_what_a_judge_says_otherwise_when_asked_again() -> None:
    told = graded(says('{"grade": 5}', '{"grade": 3}', '{"grade": 2}', '{"grade": 2}'), retests=1, a=True, b=False)
    assert (told.flips, told.spread) == (0.5, 1.0)
    assert (told.agreement, told.kappa) == (1.0, 1.0)


def test_what_cannot_be_read_is_counted_and_counts_nowhere_else() -> None:
    told = graded(says("well", '{"grade": 5}', '{"grade": 5}', "hm"), retests=1, a=True, b=True)
    assert (told.unscored, told.compared, told.mean_grade, told.flips) == (2, 1, 5.0, None)
    nothing = graded(says("well"), a=True)
    assert (nothing.mean_grade, nothing.agreement, nothing.kappa, nothing.compared) == (None, None, None, 0)


def test_kappa_is_agreement_beyond_chance() -> None:
    # Cohen's own measure on a table of 20, 5, 10 and 15.
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4)
    assert cohen_kappa([(True, True)] * 3) is None
    assert cohen_kappa([]) is None


def test_answers_are_compared_question_by_question() -> None:
    ours = {each.place: each for each in (record("a"), record("b", accepted=False), record("c"), record("d"))}
    theirs = {each.place: each for each in (record("a", accepted=False), record("b"), record("c"))}

    def work(judge: EndpointJudge) -> Awaitable[Comparison]:
        return compare_answers(judge, suite(*"abcd"), ours, theirs, "be right", at_once=2)

    told, _ = with_judge(who_is("yes"), work)
    assert (told.pairs, told.wins, told.losses, told.ties, told.swayed, told.unscored) == (3, 1, 1, 1, 1, 0)
    assert told.preference == 0.5
    assert told.interval == clustered_interval([1, 0, 0.5])
    with pytest.raises(ValueError, match="no answered question in common"):
        with_judge(who_is("yes"), lambda judge: compare_answers(judge, suite("a"), ours, {}, "r", at_once=1))


def test_a_judge_that_is_refused_ends_the_work() -> None:
    with pytest.raises(ValueError, match="who"):
        graded(lambda path, body: (401, {"error": {"message": "who?"}}), a=True, b=True)
