"""Decisions one by one: who is out and why, pins, the rule while nothing is measured, what is explored, and words."""

from dataclasses import replace
from typing import Any

import pytest

from mezzotint.router.policy import Policy
from mezzotint.router.policy_file import PolicyConfig
from mezzotint.router.record import Decision, Outcome
from tests.router.world import ASK, World, canvas, hosted, make_world, plain

QUIET = replace(ASK, explore=False)


def taught(*, count: int = 150, **config: Any) -> tuple[World, Policy]:
    """A canvas, ar and a hosted arm, after some requests at one and eight at a time."""
    world = make_world(canvas(), plain(), hosted())
    policy = world.policy(**config)
    for load in (8, 1):
        world.load = load
        for name in world.laws:
            for number in range(count // 6):
                outcome: Outcome = "rejected" if number % 10 == 9 else "accepted"
                policy.note(world.attempt(f"taught {load} {name} {number}", 0, name, ASK, outcome=outcome))
    return world, policy


def decide(world: World, policy: Policy, **changes: Any) -> Decision:
    return policy.decide(replace(QUIET, **changes), dict.fromkeys(world.laws, world.load - 1))


def why_out(decision: Decision) -> dict[str, str]:
    return {seen.arm: seen.excluded for seen in decision.candidates if seen.excluded}


def test_the_canvas_is_taken_alone_and_ar_among_many() -> None:
    world, policy = taught()
    assert decide(world, policy).plan[0] == "canvas"
    world.load = 8
    decision = decide(world, policy)
    assert decision.plan[0] == "plain"
    assert {seen.in_flight for seen in decision.candidates if seen.arm != "hosted"} == {8}


def test_an_arm_that_is_down_is_out_and_said_to_be() -> None:
    _, policy = taught()
    decision = policy.decide(QUIET, {"plain": 0, "hosted": 0})
    assert "canvas" not in decision.plan
    assert why_out(decision) == {"canvas": "it is down"}


@pytest.mark.parametrize(
    ("needs", "left", "told"),
    [
        ({"arm:plain"}, {"plain"}, "the request names plain"),
        ({"decoder:diffusion"}, {"canvas"}, "the request asks for diffusion"),
        ({"logprobs", "tools"}, set(), "it has no logprobs, no tools"),
    ],
)
def test_what_a_request_needs_leaves_out_who_has_it_not(needs: set[str], left: set[str], told: str) -> None:
    world, policy = taught()
    decision = decide(world, policy, needs=frozenset(needs))
    assert set(decision.plan) == left
    assert set(why_out(decision)) == set(world.laws) - left
    assert told in why_out(decision).values()
    assert decision.reason == ("only_one" if left else "none")


def test_a_request_that_does_not_fit_a_context_goes_where_it_does() -> None:
    world, policy = taught()
    decision = decide(world, policy, prompt_tokens=5000)
    assert set(decision.plan) == {"hosted"}
    assert why_out(decision)["plain"] == "its context holds 4096 tokens, the request 5000 + 256"


def test_money_is_a_ceiling() -> None:
    world, policy = taught()
    decision = decide(world, policy, max_cost_usd=1e-7)
    assert why_out(decision)["hosted"].startswith("it would cost $0.000")
    assert "hosted" not in decision.plan


def test_an_arm_that_would_be_late_is_out_unless_all_would_be() -> None:
    world, policy = taught()
    decision = decide(world, policy, deadline_s=0.3)
    assert list(why_out(decision)) == ["hosted"]
    assert "miss the deadline of 0.3 s" in why_out(decision)["hosted"]
    hopeless = decide(world, policy, deadline_s=0.001)
    assert set(why_out(hopeless)) == set(world.laws)
    assert len(hopeless.plan) == 1  # better late than not at all


def test_more_risk_lets_more_arms_in() -> None:
    world, policy = taught(count=300)
    seconds = {seen.arm: seen.seconds for seen in decide(world, policy).candidates}
    tight = {"deadline_s": seconds["hosted"] * 1.02}
    assert "hosted" in why_out(decide(world, policy, risk=0.01, **tight))
    assert "hosted" not in why_out(decide(world, policy, risk=0.5, **tight))


def test_a_forbidden_arm_is_never_taken() -> None:
    world, policy = taught(forbidden=("canvas",))
    decision = decide(world, policy)
    assert why_out(decision) == {"canvas": "the policy forbids it"}


@pytest.mark.parametrize("pins", [{"schema-*": "hosted"}, {"auto": "hosted"}])
def test_a_pin_decides_who_is_first_while_that_arm_can_be_had(pins: dict[str, str]) -> None:
    world, policy = taught(pins=pins)
    assert (decide(world, policy).plan[0], decide(world, policy).reason) == ("hosted", "pinned")
    assert decide(world, policy, kind="code-long", goal="fast").plan[0] == "canvas"
    assert policy.decide(QUIET, {"canvas": 0, "plain": 0}).plan[0] == "canvas"


def test_goals_weigh_time_and_money() -> None:
    quick = hosted("quick", prefill_s=0.0, forward_s=lambda b: 0.0005)
    world = make_world(plain(), quick)
    policy = world.policy()
    for name in world.laws:
        for number in range(40):
            policy.note(world.attempt(f"{name} {number}", 0, name, ASK))
    assert decide(world, policy, goal="fast").plan[0] == "quick"
    assert decide(world, policy, goal="cheap").plan[0] == "plain"


@pytest.mark.parametrize(
    ("load", "most", "first"), [(1, 256, "canvas"), (4, 256, "plain"), (1, 16, "plain"), (3, 40, "canvas")]
)
def test_while_nothing_is_measured_load_and_length_decide_by_a_stated_rule(load: int, most: int, first: str) -> None:
    world = make_world(hosted(), plain(), canvas())
    world.load = load
    decision = decide(world, world.policy(crossover=4), most_tokens=most)
    assert (decision.plan[0], decision.reason) == (first, "rule")


def test_while_some_arms_are_not_measured_the_best_of_the_others_answers() -> None:
    world = make_world(canvas(), plain(), hosted())
    policy = world.policy()
    for number in range(30):
        policy.note(world.attempt(str(number), 0, "plain", ASK))
    decision = decide(world, policy)
    assert (decision.plan[0], decision.reason) == ("plain", "cold")


def test_arms_that_are_not_measured_soon_are() -> None:
    world = make_world(canvas(), plain(), hosted())
    policy = world.policy()
    world.run(policy, 80)
    assert "cold" not in {decision.reason for decision in world.run(policy, 50)}


def test_a_talk_stays_where_its_beginning_is_held() -> None:
    slow = {"prefill_s": 1.0}
    world = make_world(canvas("left", **slow), replace(plain("right", **slow)))
    traits = {name: replace(law.traits, engine=name) for name, law in world.laws.items()}
    world.laws = {name: replace(law, traits=traits[name]) for name, law in world.laws.items()}
    policy = world.policy()
    for name in world.laws:
        for number in range(60):
            attempt = world.attempt(f"{name} {number}", 0, name, ASK)
            prompt = 50 + 10 * (number % 20)
            took = 0.002 * prompt
            policy.note(
                replace(
                    attempt,
                    outcome="accepted",
                    prompt_tokens=prompt,
                    prefill_s=took,
                    seconds=attempt.seconds - 1.0 + took,
                )
            )
    talk = replace(QUIET, session="s", prompt_tokens=200)
    assert decide(world, policy, session="s", prompt_tokens=200).plan[0] == "left"
    first = policy.decide(replace(talk, needs=frozenset({"arm:right"})), {"left": 0, "right": 0})
    policy.note(replace(world.attempt(first.id, 0, "right", ASK), prompt_tokens=200))
    second = policy.decide(replace(talk, prompt_tokens=260), {"left": 0, "right": 0})
    assert (second.plan[0], second.reason) == ("right", "sticky")
    assert decide(world, policy, session="another", prompt_tokens=260).plan[0] == "left"


def test_a_share_is_explored_with_its_probability_told() -> None:
    _, policy = taught(exploration=0.1)
    decisions = [policy.decide(replace(ASK, verifies=True), {"canvas": 0, "plain": 0}) for _ in range(1000)]
    explored = [decision for decision in decisions if decision.reason == "explore"]
    assert 70 < len(explored) < 130
    assert {decision.plan[0] for decision in explored} == {"plain"}
    assert {decision.propensity for decision in explored} == {0.1}
    assert {d.propensity for d in decisions if d.reason != "explore"} == {0.9}


@pytest.mark.parametrize("changes", [{"explore": False}, {"deadline_s": 0.25}])
def test_nothing_is_explored_where_the_request_forbids_it_or_has_no_time(changes: dict[str, Any]) -> None:
    _, policy = taught(exploration=0.5)
    up = {"canvas": 0, "plain": 0}
    decisions = [policy.decide(replace(ASK, **changes), up) for _ in range(200)]
    assert {(decision.plan[0], decision.propensity) for decision in decisions} == {("canvas", 1.0)}


def test_an_arm_known_to_be_twice_as_dear_is_not_explored() -> None:
    world, policy = taught(count=300, exploration=0.5)
    decisions = [policy.decide(ASK, dict.fromkeys(world.laws, 0)) for _ in range(200)]
    assert {decision.plan[0] for decision in decisions} == {"canvas", "plain"}


def test_a_late_verdict_overrules_what_was_believed() -> None:
    world, policy = taught()
    unverified = replace(ASK, verifies=False, needs=frozenset({"arm:canvas"}))
    for _ in range(60):
        decision = world.step(policy, unverified)
        for _ in range(5):  # the same verdict again is no further one
            assert policy.note_outcome(decision.id, accepted=True)
        assert policy.note_outcome(decision.id, accepted=False)
    seen = {candidate.arm: candidate.acceptance for candidate in decide(world, policy).candidates}
    assert seen["canvas"] < 0.6 < seen["plain"]
    assert not policy.note_outcome("unknown", accepted=True)


def test_a_policy_restored_from_attempts_decides_as_the_one_that_saw_them() -> None:
    world = make_world(canvas(), plain(), hosted())
    attempts = [world.attempt(f"{n} {i}", 0, n, ASK) for i in range(50) for n in world.laws]
    seen, restored = world.policy(), world.policy()
    for attempt in attempts:
        seen.note(attempt)
    restored.restore(attempts)
    assert replace(decide(world, seen), id="") == replace(decide(world, restored), id="")


def test_what_another_configuration_did_counts_a_tenth() -> None:
    world = make_world(canvas(), plain())
    attempts = [world.attempt(f"{n} {i}", 0, n, ASK) for i in range(50) for n in world.laws]
    restored = world.policy()
    restored.restore(attempts, is_same=False)
    before = {seen.arm: seen.seconds for seen in decide(world, restored).candidates}
    slower = make_world(canvas(forward_s=lambda b: 0.016), plain())
    for number in range(15):
        restored.note(slower.attempt(f"new {number}", 0, "canvas", ASK))
    after = {seen.arm: seen.seconds for seen in decide(world, restored).candidates}
    assert after["canvas"] == pytest.approx(before["canvas"] + 10 * 0.008, rel=0.15)


def test_what_changed_is_measured_anew_at_every_load_until_it_is_known() -> None:
    world = make_world(canvas(), plain())
    attempts = [world.attempt(f"{n} {i}", 0, n, ASK) for i in range(50) for n in world.laws]
    restored = world.policy()
    restored.restore(attempts, is_same=False)
    assert {restored.decide(ASK, dict.fromkeys(world.laws, 0)).propensity for _ in range(50)} == {0.25, 0.75}
    world.run(restored, 60)
    assert {decision.propensity for decision in world.run(restored, 50)} <= {0.02, 0.98}


def test_an_unsure_first_canvas_is_left_once_it_is_known_to_fail() -> None:
    world, policy = taught()
    decide(world, policy)
    assert policy.may_go_on(QUIET, "canvas", 2.0)
    for number in range(60):
        for nats in (2.0, 0.02):
            outcome: Outcome = "rejected" if nats > 1.0 else "accepted"
            attempt = world.attempt(f"{nats} {number}", 0, "canvas", ASK, outcome=outcome)
            policy.note(replace(attempt, first_entropy=nats))
    assert not policy.may_go_on(QUIET, "canvas", 2.0)
    assert policy.may_go_on(QUIET, "canvas", 0.02)
    assert policy.may_go_on(QUIET, "canvas", 0.3)  # of which nothing is known


def test_a_decision_is_explained_in_words() -> None:
    world, policy = taught(forbidden=("hosted",))
    told = policy.explain(decide(world, policy))
    assert "class schema-medium, 100 tokens in, at most 256 out, goal balanced" in told
    assert "plan canvas → plain: expected_time" in told
    assert "out: the policy forbids it" in told
    assert "no arm can take the request" in policy.explain(decide(world, policy, prompt_tokens=10**6))


@pytest.mark.parametrize("names", [(), ("a", "a")])
def test_arms_have_names_of_their_own(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="each its own name"):
        Policy(PolicyConfig(), [plain(name).traits for name in names], seed=0, clock=lambda: 0.0)


def test_a_policy_that_names_an_arm_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="'gone'"):
        make_world(plain()).policy(forbidden=("gone",))


def test_ids_of_decisions_differ_even_at_one_moment() -> None:
    world, policy = taught()
    assert len({decide(world, policy).id for _ in range(500)}) == 500


def test_an_attempt_of_an_arm_that_is_gone_is_let_pass() -> None:
    world, policy = taught()
    policy.note(replace(world.attempt("x", 0, "plain", ASK), arm="gone"))
    assert isinstance(decide(world, policy), Decision)
