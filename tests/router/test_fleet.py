"""Requests before servers that fail in every way: none is lost, none answered twice, and what is promised holds."""

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from mezzotint.router.ledger import Ledger
from mezzotint.server.errors import ApiError
from tests.router.replay import Replay, Script
from tests.router.stand_ins import HELLO, Canvas, Clock, Listed, Says, ask, fleet_of, remote

GOOD = "Hello world."


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what is to come soon."""
    while not holds():
        await asyncio.sleep(0.005)


def dead_port() -> int:
    with socket.socket() as wire:
        wire.bind(("127.0.0.1", 0))
        port: int = wire.getsockname()[1]
    return port


FAULTS = {
    "reset": (Script(fault="reset"), "error"),
    "cut": (Script(fault="cut"), "error"),
    "stall": (Script(fault="stall"), "timeout"),
    "no_json": (Script(fault="no_json"), "malformed"),
    "no_chunk": (Script(fault="no_chunk"), "malformed"),
    "html": (Script(fault="html"), "malformed"),
    "error": (Script(fault="error"), "error"),
    "slow": (Script(first_s=5.0), "timeout"),
    "empty": (Script(pieces=()), "empty"),
    "500": (Script(status=500), "error"),
    "429": (Script(status=429, headers={"retry-after": "1"}), "error"),
    "401": (Script(status=401), "error"),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_arm_that_fails_before_its_first_word_costs_the_client_nothing(fault: str, stream: bool) -> None:
    script, outcome = FAULTS[fault]

    async def go() -> None:
        async with Replay(script).running() as bad, Replay().running() as good:
            policy = Listed("bad", "good")
            arm = remote("bad", bad.url, **({"first_s": 0.3} if outcome == "timeout" else {}))
            async with fleet_of(policy, arm, remote("good", good.url)) as fleet:
                told = await ask(fleet, stream=stream)
                assert (told.text, told.error) == (GOOD, None)
                assert told.headers["x-mezzotint-arm"] == told.route["arm"] == "good"
                assert told.headers["x-mezzotint-attempts"] == "2"
                assert [each["outcome"] for each in told.route["tried"]] == [outcome, "unverified"]
                assert [attempt.outcome for attempt in policy.noted] == [outcome, "unverified"]
            assert (len(bad.asked), len(good.asked), good.answered) == (1, 1, 1)

    run(go())


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_without_a_word_leaves_as_it_is_where_no_other_arm_can_be_asked(stream: bool) -> None:
    async def go() -> None:
        async with Replay(Script(pieces=())).running() as silent, Replay(Script(pieces=())).running() as mute:
            policy = Listed("silent", "mute")
            async with fleet_of(policy, remote("silent", silent.url), remote("mute", mute.url)) as fleet:
                told = await ask(fleet, stream=stream)
                assert (told.text, told.error) == ("", None)
                assert told.route["arm"] == "mute"
                assert [attempt.outcome for attempt in policy.noted] == ["empty", "empty"]
                with pytest.raises(ApiError, match="mute answered with nothing"):
                    await ask(fleet, stream=stream, x_route={"accept": {"type": "exact", "value": "word"}})

    run(go())


def test_an_arm_that_is_not_there_costs_the_client_nothing() -> None:
    async def go() -> None:
        async with Replay().running() as good:
            gone = remote("gone", f"http://127.0.0.1:{dead_port()}")
            async with fleet_of(Listed("gone", "good"), gone, remote("good", good.url)) as fleet:
                told = await ask(fleet)
                assert told.text == GOOD
                assert told.route["tried"][0]["outcome"] == "error"
                assert told.route["tried"][0]["reason"].startswith("gone cannot be reached")

    run(go())


@pytest.mark.parametrize("fault", ["reset", "cut", "stall", "no_json", "error"])
def test_what_breaks_behind_the_first_word_is_told_in_the_stream_and_nobody_else_goes_on(fault: Any) -> None:
    async def go() -> None:
        async with Replay(Script(fault=fault, at=1)).running() as bad, Replay().running() as good:
            policy = Listed("bad", "good")
            arm = remote("bad", bad.url, **({"between_s": 0.3} if fault == "stall" else {}))
            async with fleet_of(policy, arm, remote("good", good.url)) as fleet:
                told = await ask(fleet)
                assert told.text == "Hello"
                assert told.error is not None
                assert told.error.status in (502, 504)
                assert good.asked == []
                assert len(policy.noted) == 1
                whole = await ask(fleet, stream=False)
                assert whole.text == GOOD, "what nobody has seen can still be answered by another arm"

    run(go())


def test_a_stream_that_is_never_closed_behind_its_end_loses_nothing() -> None:
    async def go() -> None:
        async with Replay(Script(fault="no_done")).running() as odd:
            arm = remote("odd", odd.url, between_s=0.3)
            async with fleet_of(Listed("odd"), arm) as fleet:
                assert (await ask(fleet)).text == GOOD

    run(go())


def test_a_rejected_answer_falls_back_before_the_first_byte_and_each_attempt_is_paid_for() -> None:
    async def go() -> None:
        async with Replay(Script(pieces=("no",))).running() as cheap, Replay(Script(pieces=("yes",))).running() as dear:
            policy = Listed("cheap", "dear")
            arms = (
                remote("cheap", cheap.url, input_price=1.0, output_price=2.0),
                remote("dear", dear.url, input_price=100.0, output_price=200.0),
            )
            async with fleet_of(policy, *arms) as fleet:
                told = await ask(fleet, x_route={"accept": {"type": "regex", "value": "yes"}})
                assert told.text == "yes"
                assert [each["outcome"] for each in told.route["tried"]] == ["rejected", "accepted"]
                assert told.route["cost_usd"] == pytest.approx((8 + 4 * 2 + 800 + 800) / 1e6)
                assert policy.noted[1].after == "cheap"
                parts = told.route["parts_ms"]
                assert sum(parts.values()) == pytest.approx(told.route["time_to_accepted_ms"], abs=0.01)
                assert 0 <= parts["other"] <= 0.01 * told.route["time_to_accepted_ms"] + 1

    run(go())


def test_answers_that_nobody_accepts_are_refused_and_answers_that_cannot_be_judged_too() -> None:
    async def go() -> None:
        async with Replay(Script(pieces=("no",))).running() as one, Replay(Script(pieces=("nay",))).running() as two:
            policy = Listed("one", "two")
            async with fleet_of(policy, remote("one", one.url), remote("two", two.url)) as fleet:
                with pytest.raises(ApiError) as refused:
                    await ask(fleet, x_route={"accept": {"type": "regex", "value": "yes"}})
                assert (refused.value.status, refused.value.code) == (422, "not_accepted")
                assert "two" in refused.value.message
                with pytest.raises(ApiError) as unsure:
                    await ask(fleet, x_route={"accept": {"type": "judge", "value": None}})
                assert (unsure.value.status, unsure.value.code) == (503, "not_verified")
                assert [attempt.outcome for attempt in policy.noted] == ["rejected", "rejected", "unverified"]

    run(go())


def test_one_deadline_holds_for_all_attempts_together() -> None:
    async def go() -> None:
        slow = Script(first_s=9.0)
        async with Replay(Script(pieces=("no",))).running() as one, Replay(slow).running() as two:
            arms = (
                remote("one", one.url),
                remote("two", two.url),
            )
            async with fleet_of(Listed("one", "two"), *arms) as fleet:
                started = time.monotonic()
                route = {"deadline_ms": 400, "accept": {"type": "regex", "value": "yes"}}
                with pytest.raises(ApiError) as late:
                    await ask(fleet, x_route=route)
                assert 0.39 < time.monotonic() - started < 4
                assert (late.value.status, late.value.code) == (504, "deadline")
                await until(lambda: two.left == 1)

    run(go())


def test_the_budget_holds_whatever_an_arm_says_it_costs() -> None:
    async def go() -> None:
        text = tuple("word " * 20 for _ in range(20))
        liar = Script(pieces=text, usage={"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
        async with Replay(liar).running() as bad, Replay().running() as good:
            policy = Listed("bad", "good")
            arms = remote("bad", bad.url, output_price=1e6), remote("good", good.url, output_price=1e6)
            async with fleet_of(policy, *arms) as fleet:
                told = await ask(fleet, x_route={"max_cost_usd": 80.0})
                assert told.error is not None
                assert told.error.code == "over_budget"
                assert 80.0 < policy.noted[0].cost_usd < 80.0 + 25 + 1
                with pytest.raises(ApiError) as refused:
                    await ask(fleet, stream=False, x_route={"max_cost_usd": 80.0})
                assert refused.value.status == 422
                assert good.asked == []

    run(go())


def test_an_attempt_that_may_cost_more_than_is_left_is_not_made() -> None:
    async def go() -> None:
        no = Script(pieces=("no",))
        async with Replay(no).running() as one, Replay(Script(pieces=("yes",))).running() as two:
            policy = Listed("one", "two", cost_usd=3.0)
            arms = remote("one", one.url, output_price=1e6), remote("two", two.url, output_price=1e6)
            async with fleet_of(policy, *arms) as fleet:
                accept = {"type": "regex", "value": "yes"}
                with pytest.raises(ApiError, match=r"may cost more than is left of \$6"):
                    await ask(fleet, x_route={"max_cost_usd": 6.0, "accept": accept})
                assert two.asked == []
                told = await ask(fleet, x_route={"max_cost_usd": 8.0, "accept": accept})
                assert told.text == "yes"

    run(go())


def test_what_an_arm_says_that_it_wrote_is_held_against_what_came() -> None:
    async def go() -> None:
        liar = Script(usage={"prompt_tokens": 8, "completion_tokens": 9000, "total_tokens": 9008})
        async with Replay(liar, Script(usage=None)).running() as bad:
            arms = (remote("bad", bad.url, output_price=1e6),)
            async with fleet_of(Listed("bad"), *arms) as fleet:
                told = await ask(fleet)
                assert told.last["metrics"]["usage_mismatch"] == {"completion_tokens": {"told": 9000, "counted": 3}}
                assert told.last["usage"]["completion_tokens"] == 3
                assert told.route["cost_usd"] == pytest.approx(3.0)
                silent = await ask(fleet)
                assert silent.last["usage"]["completion_tokens"] == 3
                assert "usage_mismatch" not in silent.last["metrics"]

    run(go())


def test_no_more_attempts_are_made_than_were_asked_for() -> None:
    async def go() -> None:
        async with Replay(Script(status=500)).running() as bad, Replay().running() as good:
            arms = [remote(name, bad.url) for name in ("a", "b", "c")]
            async with fleet_of(Listed("a", "b", "c", "good"), *arms, remote("good", good.url)) as fleet:
                with pytest.raises(ApiError, match="of 2 attempts none is left") as failed:
                    await ask(fleet)
                assert failed.value.status == 502
                assert len(bad.asked) == 2
                assert (await ask(fleet, x_route={"max_attempts": 4})).text == GOOD

    run(go())


def test_an_arm_beyond_the_plan_answers_where_the_plan_is_at_its_end() -> None:
    async def go() -> None:
        async with Replay(Script(status=500)).running() as bad, Replay().running() as good:
            arms = (
                remote("bad", bad.url),
                remote("good", good.url),
            )
            async with fleet_of(Listed("bad"), *arms) as fleet:
                assert (await ask(fleet)).route["arm"] == "good"

    run(go())


def test_a_name_of_an_arm_pins_it_and_nobody_takes_its_place() -> None:
    async def go() -> None:
        async with Replay(Script(), Script(status=500)).running() as pinned, Replay().running() as other:
            arms = remote("pinned", pinned.url), remote("other", other.url)
            async with fleet_of(Listed("other", "pinned"), *arms) as fleet:
                told = await ask(fleet, model="pinned")
                assert (told.route["arm"], told.route["reason"], told.text) == ("pinned", "pinned", GOOD)
                with pytest.raises(ApiError):
                    await ask(fleet, model="pinned")
                assert other.asked == []

    run(go())


def test_an_arm_that_recovers_is_noticed_by_one_request_that_tries_it() -> None:
    async def go() -> None:
        async with (
            Replay(Script(status=500), Script(status=500), Script()).running() as ill,
            Replay().running() as up,
        ):
            clock = Clock()
            arm = remote("ill", ill.url, clock)
            async with fleet_of(Listed("ill", "well"), arm, remote("well", up.url)) as fleet:
                for _ in range(4):
                    assert (await ask(fleet)).text == GOOD
                assert len(ill.asked) == 2, "behind two failures it is left alone"
                assert not arm.is_up
                clock.now += 1.0
                assert arm.is_up
                answers = await asyncio.gather(*(ask(fleet) for _ in range(5)))
                assert sorted(told.route["arm"] for told in answers) == ["ill", *["well"] * 4]
                assert (await ask(fleet)).route["arm"] == "ill"

    run(go())


def test_an_arm_that_says_when_to_come_again_is_left_alone_until_then() -> None:
    async def go() -> None:
        busy = Script(status=429, headers={"retry-after": "5"})
        async with Replay(busy, Script()).running() as limited, Replay().running() as other:
            clock = Clock()
            arms = remote("limited", limited.url, clock), remote("other", other.url)
            async with fleet_of(Listed("limited", "other"), *arms) as fleet:
                assert [(await ask(fleet)).route["arm"] for _ in range(3)] == ["other"] * 3
                assert len(limited.asked) == 1
                clock.now += 4.9
                assert (await ask(fleet)).route["arm"] == "other"
                clock.now += 0.1
                assert (await ask(fleet)).route["arm"] == "limited"

    run(go())


def test_where_every_arm_is_busy_the_client_is_told_when_to_come_again() -> None:
    async def go() -> None:
        async with Replay(Script(status=429, headers={"retry-after": "7"})).running() as limited:
            arms = (remote("limited", limited.url),)
            async with fleet_of(Listed("limited"), *arms) as fleet:
                with pytest.raises(ApiError) as busy:
                    await ask(fleet)
                assert (busy.value.status, busy.value.retry_after_s) == (429, 7)
                with pytest.raises(ApiError) as gone:
                    await ask(fleet)
                assert (gone.value.status, gone.value.code) == (503, "unavailable")

    run(go())


def test_a_server_gets_no_more_requests_at_once_than_it_may_have() -> None:
    async def go() -> None:
        async with Replay(Script(first_s=0.05)).running() as narrow, Replay().running() as wide:
            arms = remote("narrow", narrow.url, most_in_flight=2), remote("wide", wide.url)
            async with fleet_of(Listed("narrow", "wide"), *arms) as fleet:
                answers = await asyncio.gather(*(ask(fleet) for _ in range(6)))
                assert [told.text for told in answers] == [GOOD] * 6
                assert narrow.most_open == 2
                assert sorted(told.route["arm"] for told in answers) == ["narrow"] * 2 + ["wide"] * 4

    run(go())


def test_a_health_probe_takes_an_arm_out_and_brings_it_back() -> None:
    async def go() -> None:
        async with Replay().running() as server:
            arm = remote("watched", server.url, health=f"{server.url}/health", probe_s=0.02)
            async with fleet_of(Listed("watched"), arm):
                for is_healthy in (False, True):
                    server.is_healthy = is_healthy
                    await until(lambda: arm.is_up == server.is_healthy)

    run(go())


@pytest.mark.parametrize("is_held", [True, False])
def test_a_client_that_leaves_cancels_what_the_arm_was_asked(is_held: bool) -> None:
    async def go() -> None:
        script = Script(first_s=5.0) if is_held else Script(between_s=5.0)
        async with Replay(script).running() as slow:
            policy, arm = Listed("slow"), remote("slow", slow.url)
            async with fleet_of(policy, arm) as fleet:
                asked = asyncio.create_task(ask(fleet))
                await until(lambda: slow.waits == 1)
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
                await until(lambda: slow.left == 1)
                assert arm.in_flight == 0
                assert [attempt.outcome for attempt in policy.noted] == ["cancelled"]
                assert arm.is_up

    run(go())


def test_requests_under_faults_are_each_answered_once_or_told_why_not() -> None:
    async def go() -> None:
        kinds = [Script(first_s=0.01), Script(fault="reset"), Script(fault="cut", at=1), Script(status=500)]
        async with Replay(*kinds * 10).running() as shaky, Replay(Script(first_s=0.01)).running() as steady:
            policy = Listed("shaky", "steady")
            arms = remote("shaky", shaky.url, failures=100), remote("steady", steady.url)
            async with fleet_of(policy, *arms) as fleet:
                answers = await asyncio.gather(*(ask(fleet, stream=bool(at % 2)) for at in range(40)))
                whole = [told for told in answers if told.error is None]
                assert all(told.text == GOOD for told in whole)
                assert all(told.text == "Hello" for told in answers if told.error is not None)
                assert len(whole) >= 30
                assert len({told.headers["x-mezzotint-decision-id"] for told in answers}) == 40
                assert shaky.answered + steady.answered == len(whole)
                assert len(policy.noted) == len(shaky.asked) + len(steady.asked)

    run(go())


def test_an_unsure_first_canvas_goes_to_the_next_arm_and_a_sure_one_does_not() -> None:
    async def go() -> None:
        unsure, sure = Canvas("unsure", 2.0, ["a", "b"]), Canvas("sure", 0.1, ["c"], busy_price=0.5)
        policy = Listed("unsure", "sure")
        policy.most_nats = 1.0
        async with fleet_of(policy, unsure, sure) as fleet:
            told = await ask(fleet)
            assert (told.text, told.route["arm"]) == ("c", "sure")
            assert [attempt.outcome for attempt in policy.noted] == ["cancelled", "unverified"]
            assert policy.noted[0].first_entropy == 2.0
            assert policy.doubts == [2.0], "the last arm that may be tried is not doubted"
            assert unsure.closed == 1
            assert told.route["cost_usd"] == pytest.approx(1.0)
            policy.plan = ("sure", "unsure")
            assert (await ask(fleet)).route["arm"] == "sure"

    run(go())


def test_a_repeated_attempt_has_a_seed_of_its_own() -> None:
    async def go() -> None:
        async with Replay(Script(pieces=("no",)), Script(pieces=("yes",))).running() as server:
            arms = (remote("arm", server.url),)
            async with fleet_of(Listed("arm", "arm"), *arms) as fleet:
                accept = {"type": "regex", "value": "yes"}
                assert (await ask(fleet, seed=7, x_route={"accept": accept})).text == "yes"
                assert [asked["seed"] for asked in server.asked] == [7, 8]
                assert not {"x_route", "x_diffusion"} & server.asked[0].keys()

    run(go())


def test_late_verdicts_count_once_for_each_key_and_the_ledger_outlives_the_fleet(tmp_path: Path) -> None:
    async def go() -> None:
        path = tmp_path / "ledger.sqlite"
        async with Replay().running() as server:
            async with fleet_of(Listed("arm"), remote("arm", server.url), path=path) as fleet:
                told = await ask(fleet)
                outcome = {"score": None, "reason": "wrong", "verify_ms": 5.0}
                outcome |= {"decision_id": told.route["decision_id"], "verdict": "rejected"}
                assert [await fleet.note_outcome(outcome, "k") for _ in range(2)] == [True, False]
                with pytest.raises(ApiError) as reused:
                    await fleet.note_outcome({**outcome, "verdict": "accepted"}, "k")
                assert reused.value.status == 409
                with pytest.raises(ApiError) as unknown:
                    await fleet.note_outcome({**outcome, "decision_id": "none"}, None)
                assert unknown.value.status == 404
                assert (await fleet.table())[0]["arm"] == "arm"
            policy = Listed("arm")
            async with fleet_of(policy, remote("arm", server.url), path=path):
                assert [attempt.outcome for attempt in policy.noted] == ["rejected"]
        assert len(Ledger(path, "other").attempts(9, is_same=False)) == 1

    run(go())


def test_calls_of_another_server_are_told_whole() -> None:
    async def go() -> None:
        pieces = ('{"ci', 'ty": "Bern"}')
        first = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": pieces[0]}}
        deltas = ({"tool_calls": [first]}, {"tool_calls": [{"index": 0, "function": {"arguments": pieces[1]}}]})
        half = Script(pieces=(), deltas=deltas[:1])
        async with Replay(half, Script(pieces=(), deltas=deltas)).running() as server:
            arms = (remote("arm", server.url),)
            async with fleet_of(Listed("arm", "arm"), *arms) as fleet:
                opened = await fleet.open(HELLO, stream=True, usage=False)
                chunks = [chunk async for chunk in opened.chunks]
                assert opened.headers["x-mezzotint-attempts"] == "2", "half a call is none"
                said = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
                [calls] = [delta["tool_calls"] for delta in said if "tool_calls" in delta]
                assert calls[0]["function"] == {"name": "weather", "arguments": '{"city": "Bern"}'}
                assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
                assert "usage" not in chunks[-1]

    run(go())


def test_an_arm_can_be_measured_and_what_came_of_it_is_kept_like_any_attempt() -> None:
    async def go() -> None:
        bad = Script(status=400)
        async with Replay(Script(), Script(pieces=("no",)), bad, Script(status=500)).running() as server:
            policy = Listed("other", "arm")
            arms = remote("arm", server.url, failures=1), remote("other", server.url)
            async with fleet_of(policy, *arms) as fleet:
                outcomes = [await fleet.measure("arm", HELLO, Says("Hello")) for _ in range(4)]
                told = [attempt and (attempt.arm, attempt.outcome) for attempt in outcomes]
                assert told == [("arm", "accepted"), ("arm", "rejected"), None, ("arm", "error")]
                assert len(policy.noted) == 3
                assert len(await fleet.table()) == 1
                with pytest.raises(ApiError, match="takes requests now"):
                    await fleet.measure("arm", HELLO, None)

    run(go())


def test_a_verdict_stands_though_the_client_leaves_before_it_has_read_the_answer() -> None:
    async def go() -> None:
        async with Replay().running() as server:
            policy = Listed("arm")
            async with fleet_of(policy, remote("arm", server.url)) as fleet:
                accept = {"type": "regex", "value": "Hello"}
                opened = await fleet.open({**HELLO, "x_route": {"accept": accept}}, stream=True, usage=True)
                await anext(opened.chunks)
                await opened.chunks.aclose()
                assert [attempt.outcome for attempt in policy.noted] == ["accepted"]

    run(go())


def test_a_verifier_that_fails_says_nothing_and_one_that_takes_too_long_meets_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        async def verify(self, messages: Any, answer: Any) -> Any:
            raise TimeoutError("of its own")

    class Slow:
        async def verify(self, messages: Any, answer: Any) -> Any:
            await asyncio.sleep(60)

    async def go() -> None:
        async with Replay().running() as server:
            policy = Listed("arm", "arm")
            async with fleet_of(policy, remote("arm", server.url)) as fleet:
                for verifier, route, code in (
                    (Broken(), {}, "not_verified"),
                    (Slow(), {"deadline_ms": 300}, "deadline"),
                ):
                    monkeypatch.setattr(fleet, "_make_verifier", lambda accept, made=verifier: made)
                    with pytest.raises(ApiError) as error:
                        await ask(fleet, x_route={"accept": {"type": "exact"}, **route})
                    assert error.value.code == code
                assert [attempt.outcome for attempt in policy.noted] == ["unverified", "timeout"]
                assert policy.noted[1].verify_s > 0.1

    run(go())


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ({"queue_time_ms": 5, "prefill_time_ms": 10.0, "generation_time_ms": 30.0}, (0.005, 0.01, 0.02)),
        (
            {"queue_time_ms": "5", "prefill_time_ms": -1, "generation_time_ms": True, "diffusion": [1]},
            (0.0, 0.0, 0.001),
        ),
        ({"diffusion": {"blocks": "x", "denoise_steps": 3, "forwards": None}}, None),
        ("none", None),
    ],
)
def test_what_an_arm_tells_of_its_work_is_taken_as_far_as_it_makes_sense(metrics: Any, told: Any) -> None:
    async def go() -> None:
        async with Replay(Script(metrics=metrics, first_s=0.02)).running() as server:
            policy = Listed("arm")
            async with fleet_of(policy, remote("arm", server.url)) as fleet:
                assert (await ask(fleet)).text == GOOD
                [noted] = policy.noted
                found = noted.queue_s, noted.prefill_s, noted.generation_s
                assert found == pytest.approx(told or (0.0, 0.0, noted.seconds))
                assert (noted.blocks, noted.forwards) == (0, 0)

    run(go())
