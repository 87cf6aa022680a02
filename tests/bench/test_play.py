"""One task against a server with known delays: what is asked, in which order, and where its time went."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mezzotint.bench.arm import read_arm
from mezzotint.bench.play import Lane, PlayConfig, play
from mezzotint.bench.record import Played
from mezzotint.bench.task import Task
from mezzotint.bench.wire import connect
from tests.bench.scripted import Reply, Script, Scripted, event, hop, say, serving, task

BUSY_S = 0.015  # that a busy machine may take away between two readings of the clock
CANVAS = {"semantics": "canvas", "canvas": 8, "denoise_steps": [3, 5], "step_budget": 6, "forwards": 9}
COSTS = {"queue_time_ms": 5.0, "generation_time_ms": 10.0, "diffusion": CANVAS}


def run(
    script: Script, one: Task, *, arm: str = "model", late_s: float = 0.0, **config: Any
) -> tuple[Played, Scripted]:
    """Play a task that was due late_s ago."""

    async def playing() -> tuple[Played, Scripted]:
        async with serving(script) as (server, url), connect(url) as http:
            lane = Lane(http, read_arm(arm), PlayConfig(**config), time.perf_counter)
            return await play(lane, 0, one, time.perf_counter() - late_s), server

    return asyncio.run(playing())


def in_turn(*replies: Reply) -> Script:
    """One reply a request."""
    left: Iterator[Reply] = iter(replies)
    return lambda body: next(left)


def test_the_parts_of_a_tasks_time_add_up_to_the_whole_and_each_is_what_was_waited() -> None:
    one = task(0, hop(), hop(wait_s=0.03), retrieval_s=0.02)
    script = in_turn(say(["no"], gap_s=0.02, metrics=COSTS), *[say(["yes"], gap_s=0.02, metrics=COSTS)] * 2)
    played, _ = run(script, one, late_s=0.05)
    parts = played.parts
    assert played.outcome == "accepted"
    assert [(request.hop, request.attempt, request.outcome) for request in played.requests] == [
        (0, 0, "rejected"),
        (0, 1, "accepted"),
        (1, 0, "accepted"),
    ]
    assert 0.05 <= parts.dispatch < 1
    assert 0.02 <= parts.retrieval < 1
    assert 0.03 <= parts.tool_wait < 1
    assert parts.queue == pytest.approx(0.015)
    assert parts.generation == pytest.approx(0.03)
    assert parts.transport >= 0.06 - 0.045
    assert played.seconds == pytest.approx(parts.total, rel=0.01, abs=BUSY_S)
    assert len(played.accepted_hops) == 2
    assert played.accepted_hops[1] >= 0.05


def test_without_a_servers_own_times_generation_is_the_whole_request() -> None:
    played, _ = run(lambda body: say(["yes"], gap_s=0.02), task())
    [request] = played.requests
    assert played.parts.generation == pytest.approx(request.seconds)
    assert (played.parts.queue, played.parts.transport) == (0, 0)
    assert played.seconds == pytest.approx(played.parts.total, rel=0.01, abs=BUSY_S)


def test_a_server_that_tells_more_time_than_passed_leaves_a_residual() -> None:
    played, _ = run(lambda body: say(["yes"], gap_s=0.01, metrics=COSTS | {"generation_time_ms": 500.0}), task())
    assert played.residual_s < -0.3


def test_costs_are_read_from_usage_and_metrics() -> None:
    played, _ = run(lambda body: say(["y", "es"], gap_s=0.005, metrics=COSTS, tokens=13), task())
    [request] = played.requests
    assert (request.prompt_tokens, request.output_tokens) == (10, 13)
    assert (request.semantics, request.steps, request.step_budget, request.forwards) == ("canvas", (3, 5), 6, 9)
    assert len(request.arrivals) == 2
    assert request.sent_s < request.arrivals[0] < request.arrivals[1] <= request.ended_s <= request.judged_s
    assert request.lengths == (1, 3)


@pytest.mark.parametrize(("tokens", "semantics"), [(3, "token"), (4, "token"), (9, "chunk")])
def test_a_server_that_does_not_say_how_it_writes_is_judged_by_its_chunks(tokens: int, semantics: str) -> None:
    played, _ = run(lambda body: say(["y", "e", "s"], tokens=tokens), task())
    assert played.requests[0].semantics == semantics


def test_the_clock_is_read_when_bytes_come_and_not_when_they_are_understood() -> None:
    whole = event(choices=[{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}])
    script = in_turn(Reply([(0.0, whole[:30]), (0.03, whole[30:]), (0.04, b"data: [DONE]\n\n")]))
    played, _ = run(script, task())
    [request] = played.requests
    assert request.outcome == "accepted"
    assert request.arrivals[0] - request.sent_s >= 0.03
    assert request.ended_s - request.arrivals[0] >= 0.04


def test_an_arm_chooses_a_model_by_kind_of_hop_and_by_attempt() -> None:
    answers = in_turn(say(["no"]), say(["yes"]), say(["yes"]), say(["yes"]))
    one = task(0, hop(kind="plan"), hop(kind="tool"), hop())
    played, server = run(answers, one, arm="a,plan=b:ar,tool=c@4,retry=d")
    assert played.is_accepted
    assert [body["model"] for body in server.asked] == ["b:ar", "d", "c", "a"]
    assert [body.get("x_diffusion") for body in server.asked] == [None, None, {"steps": 4}, None]
    assert [body.get("temperature") for body in server.asked] == [0.0, None, None, None]


def test_every_request_of_a_task_has_a_seed_of_its_own_and_the_same_one_the_next_time() -> None:
    def seeds(number: int) -> list[int]:
        played, server = run(lambda body: say(["no"]), task(number, hop(), hop()), max_attempts=3)
        assert played.outcome == "rejected"
        return [body["seed"] for body in server.asked]

    assert len(set(seeds(3))) == 3
    assert seeds(3) == seeds(3)
    assert not set(seeds(3)) & set(seeds(4))


@pytest.mark.parametrize(
    ("reply", "category"),
    [
        (Reply([(0.0, b'{"error": "busy"}')], status=503), "http 503"),
        (Reply([(0.0, b"event: error\n" + event(message="it broke"))]), "stream error"),
        (Reply([(0.0, event(error={"message": "it broke"}))]), "stream error"),
        (Reply([(0.0, b"data: {nonsense\n\n")]), "garbage"),
        (Reply([(0.0, event(choices=[{"index": 0, "delta": {"content": "yes"}}]))]), "broken stream"),
        (Reply([(0.0, event(choices=[{"index": 0, "delta": {"content": "yes"}}]))], cut=True), "broken stream"),
    ],
)
def test_what_goes_wrong_is_an_error_by_its_category_and_is_tried_again(reply: Reply, category: str) -> None:
    played, _ = run(in_turn(reply, say(["yes"])), task(), backoff_s=0.02)
    assert played.is_accepted
    assert [request.category for request in played.requests] == [category, ""]
    assert played.requests[0].outcome == "error"
    assert played.parts.backoff >= 0.02


def test_a_server_that_says_when_to_come_back_is_believed() -> None:
    busy = Reply([(0.0, b"{}")], status=429, headers={"retry-after": "0.03"})
    played, _ = run(in_turn(busy, say(["yes"])), task(), backoff_s=50.0)
    assert played.is_accepted
    assert 0.03 <= played.parts.backoff < 10


def test_no_server_is_an_error_of_connection() -> None:
    async def playing() -> Played:
        async with connect("http://127.0.0.1:1") as http:
            lane = Lane(http, read_arm("m"), PlayConfig(max_attempts=1), time.perf_counter)
            return await play(lane, 0, task(), time.perf_counter())

    [request] = asyncio.run(playing()).requests
    assert (request.outcome, request.category) == ("error", "connection")


def test_a_key_is_shown_and_a_url_may_name_its_v1_or_not() -> None:
    there = connect("http://host/v1", "secret")
    assert there.headers["authorization"] == "Bearer secret"
    assert there.base_url == connect("http://host/").base_url == "http://host/v1/"
    assert "authorization" not in connect("http://host").headers


def test_a_deadline_counts_from_the_scheduled_arrival_and_ends_a_task_wherever_it_is() -> None:
    in_answer, server = run(lambda body: say(["yes"], gap_s=5.0), task(), deadline_s=0.06, late_s=0.03)
    assert (in_answer.outcome, len(server.asked)) == ("timeout", 1)
    assert 0.06 <= in_answer.seconds < 4
    in_wait, server = run(lambda body: say(["yes"]), task(retrieval_s=5.0), deadline_s=0.03)
    assert (in_wait.outcome, server.asked) == ("timeout", [])


@pytest.mark.parametrize(
    ("texts", "metrics", "outcome"),
    [([""], None, "empty"), (["no"], None, "rejected"), (["no"], {"faults": ["A call has no end."]}, "malformed")],
)
def test_an_answer_that_is_not_right_is_told_apart_by_how(
    texts: list[str], metrics: dict[str, Any] | None, outcome: str
) -> None:
    played, _ = run(lambda body: say(texts, metrics=metrics), task(), max_attempts=1)
    assert played.outcome == outcome


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("deadline_s", 0.0, "deadline is 0 s"),
        ("max_attempts", 0, "max_attempts is 0; give 1 to"),
        ("backoff_s", -1.0, "backoff is -1 s"),
        ("max_tokens", 0, "max_tokens is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(field: str, value: float, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        PlayConfig(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["yes", "no"])
def test_a_router_is_told_what_became_of_its_answer_and_no_task_waits_for_that(text: str) -> None:
    route = {"route": {"arm": "ar", "decision_id": "d-1"}}

    def script(body: dict[str, Any]) -> Reply:
        slow = Reply([(0.2, b"{}")], headers={"content-type": "application/json"})
        return slow if "decision_id" in body else say([text], metrics={**COSTS, **route})

    async def playing() -> tuple[Played, Scripted]:
        async with serving(script) as (server, url), connect(url) as http:
            config = PlayConfig(max_attempts=1, tells_verdicts=True)
            lane = Lane(http, read_arm("m"), config, time.perf_counter)
            played = await play(lane, 0, task(), time.perf_counter())
            await lane.settle()
            return played, server

    played, server = asyncio.run(playing())
    assert played.seconds < 0.2
    _, told = server.asked
    assert told["decision_id"] == "d-1"
    assert told["verdict"] == {"yes": "accepted", "no": "rejected"}[text]


def test_a_router_that_would_not_hear_of_an_outcome_is_named() -> None:
    def script(body: dict[str, Any]) -> Reply:
        return Reply([(0.0, b"no such decision")], status=404)

    async def telling() -> None:
        async with serving(script) as (_, url), connect(url) as http:
            lane = Lane(http, read_arm("m"), PlayConfig(tells_verdicts=True), time.perf_counter)
            lane.tell("d-1", is_accepted=True, reason="")
            await lane.settle()

    with pytest.raises(ValueError, match="said 404: no such decision"):
        asyncio.run(telling())
