"""Acceptance: shrinkage, forgetting, dependence of attempts, and verdicts that are taken back."""

from random import Random

import pytest

from mezzotint.router.acceptance import Acceptance, Answering


def teach(acceptance: Acceptance, kind: str, arm: str, good: int, bad: int, after: str | None = None) -> None:
    verdicts = [True] * good + [False] * bad
    Random(0).shuffle(verdicts)
    for accepted in verdicts:
        acceptance.note(kind, arm, after, float(accepted), float(not accepted))


def test_a_class_that_was_never_seen_has_the_arms_rate_but_little_certainty() -> None:
    acceptance = Acceptance()
    teach(acceptance, "text-any", "arm", 90, 10)
    known, new = acceptance.first("text-any", "arm"), acceptance.first("code-long", "arm")
    assert new.mean == pytest.approx(known.mean, abs=0.05)
    assert new.variance > 5 * known.variance


def test_a_frame_that_was_never_seen_has_the_rate_of_its_class() -> None:
    acceptance = Acceptance()
    teach(acceptance, "text-any#a", "arm", 2, 60)
    teach(acceptance, "schema-short#b", "arm", 60, 2)
    assert acceptance.first("text-any#new", "arm").mean < 0.2
    assert acceptance.first("schema-short#new", "arm").mean > 0.8


def test_old_verdicts_count_half_after_two_hundred() -> None:
    acceptance = Acceptance()
    teach(acceptance, "text-any", "arm", 1000, 0)
    teach(acceptance, "text-any", "arm", 0, 200)
    assert acceptance.first("text-any", "arm").mean == pytest.approx(0.5, abs=0.03)


def test_a_class_that_an_arm_has_not_met_is_as_hard_as_others_found_it_and_as_easy_as_the_arm_is_better() -> None:
    acceptance = Acceptance()
    for kind, rate in (("text-any#easy", 95), ("text-any#hard", 40), ("text-any#new", 40)):
        teach(acceptance, kind, "common", rate, 100 - rate)
        if kind != "text-any#new":
            teach(acceptance, kind, "better", rate + (100 - rate) // 2, (100 - rate + 1) // 2)
    common, better = (acceptance.first("text-any#new", arm).mean for arm in ("common", "better"))
    assert common == pytest.approx(0.4, abs=0.1)
    assert common + 0.08 < better < 0.75


def test_an_arm_that_fails_at_one_class_only_is_found_out_within_thirty_verdicts() -> None:
    acceptance = Acceptance()
    for arm in ("a", "b"):
        teach(acceptance, "text-any#1", arm, 90, 10)
    teach(acceptance, "text-any#2", "a", 27, 3)
    teach(acceptance, "text-any#2", "b", 3, 27)
    assert acceptance.first("text-any#2", "a").mean > 0.7
    assert acceptance.first("text-any#2", "b").mean < 0.4
    assert acceptance.first("text-any#1", "b").mean > 0.75


def test_behind_a_rejection_an_arm_is_expected_to_do_worse_and_the_same_arm_worst() -> None:
    acceptance = Acceptance()
    alone = acceptance.first("text-any", "b").mean
    assert acceptance.second("text-any", "a", "b", alone).mean == pytest.approx(0.6 * alone)
    assert acceptance.second("text-any", "b", "b", alone).mean == pytest.approx(0.2 * alone)


def test_what_is_rescued_in_a_class_tells_of_pairs_that_were_never_tried() -> None:
    acceptance = Acceptance()
    for arm in "abc":
        teach(acceptance, "text-any", arm, 80, 20)
    teach(acceptance, "text-any", "b", 80, 20, after="a")
    alone = acceptance.first("text-any", "c").mean
    assert acceptance.second("text-any", "a", "c", alone).mean > 0.9 * alone
    assert acceptance.second("code-long", "a", "c", alone).mean == pytest.approx(0.6 * alone)


def test_two_arms_miss_a_request_as_often_in_one_order_as_in_the_other() -> None:
    acceptance = Acceptance()
    teach(acceptance, "text-any", "b", 9, 11, after="a")
    teach(acceptance, "text-any", "a", 2, 3, after="b")
    alone = [0.8, 0.6]
    told = acceptance.behind("text-any", ["a", "b"], alone)
    one, other = ((1.0 - alone[i]) * (1.0 - told[i][1 - i]) for i in (0, 1))
    assert one == pytest.approx(other)
    raw = [0.2 * (1.0 - acceptance.second("text-any", "a", "b", 0.6).mean)]
    raw.append(0.4 * (1.0 - acceptance.second("text-any", "b", "a", 0.8).mean))
    assert min(raw) < one < max(raw)
    assert one - raw[0] < raw[1] - one  # more was seen of a before b
    assert told[0][0] == acceptance.second("text-any", "a", "a", 0.8).mean


def test_a_verdict_that_is_taken_back_leaves_what_the_right_one_would_have() -> None:
    right, corrected = Acceptance(), Acceptance()
    teach(right, "text-any", "arm", 0, 1)
    teach(corrected, "text-any", "arm", 1, 0)
    corrected.note("text-any", "arm", None, -1.0, 1.0)
    assert corrected.first("text-any", "arm") == right.first("text-any", "arm")


def test_counts_never_fall_below_nothing() -> None:
    acceptance = Acceptance()
    for _ in range(5):
        acceptance.note("text-any", "arm", None, -1.0, 1.0)
    assert 0.0 < acceptance.first("text-any", "arm").mean < 0.3


def test_an_arm_that_failed_is_doubted_for_minutes_only() -> None:
    now = [0.0]
    answering = Answering(lambda: now[0])
    for _ in range(50):
        answering.note("arm", answered=True)
    assert answering.rate("arm") > 0.995
    for _ in range(5):
        answering.note("arm", answered=False)
    assert answering.rate("arm") < 0.8
    now[0] += 600.0
    assert answering.rate("arm") > 0.99
