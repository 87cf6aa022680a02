"""The ledger: what is written is read back, verdicts count once and the latest stands, and its figures are right."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mezzotint.router.ledger import Ledger
from mezzotint.router.ledger_table import Told, tabulate, wilson
from mezzotint.router.record import Ask, Attempt, Candidate, Decision, Outcome

ATTEMPT = Attempt(
    decision="d1",
    index=0,
    arm="canvas",
    kind="schema-short",
    outcome="unverified",
    seconds=0.5,
    prompt_tokens=10,
    output_tokens=20,
    in_flight=3,
    first_entropy=0.25,
)
DECISION = Decision(
    id="d1",
    ask=Ask(kind="schema-short", prompt_tokens=10, most_tokens=64, needs=frozenset({"seed"}), deadline_s=9.0),
    plan=("canvas", "plain"),
    reason="expected_time",
    candidates=(Candidate("canvas", 0.5, 0.0, 0.9, 3), Candidate("plain", 0.7, 0.0, 0.8, 3, "it is down")),
    propensity=0.98,
    seconds=0.6,
    cost_usd=0.0,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def opened(path: Path, fingerprint: str = "f1") -> Ledger:
    return Ledger(path, fingerprint, clock=lambda: 1000.0)


def filled(path: Path) -> Ledger:
    ledger = opened(path)
    ledger.write_decision(DECISION)
    ledger.write_attempt(ATTEMPT)
    return ledger


def test_attempts_are_read_back_as_they_were_in_order_and_by_another_process_too(path: Path) -> None:
    ledger = opened(path)
    attempts = [replace(ATTEMPT, decision=f"d{n}", after="plain" if n % 2 else None) for n in range(5)]
    for attempt in attempts:
        ledger.write_attempt(attempt)
    assert ledger.attempts(3) == attempts[2:]
    ledger.close()
    again = opened(path)
    assert again.attempts(99) == attempts
    again.close()


def test_a_decision_is_read_back_with_all_that_came_of_it(path: Path) -> None:
    ledger = filled(path)
    ledger.write_outcome("d1", "rejected", reason="wrong name", score=0.1)
    told = ledger.decision("d1")
    assert told["plan"] == ["canvas", "plain"]
    assert told["ask"]["needs"] == ["seed"]
    assert told["candidates"][1]["excluded"] == "it is down"
    assert told["attempts"] == [{"arm": "canvas", "outcome": "unverified", "seconds": 0.5}]
    assert told["outcomes"] == [{"verdict": "rejected", "score": 0.1, "reason": "wrong name"}]
    with pytest.raises(LookupError, match="'d9' is not in this ledger"):
        ledger.decision("d9")
    ledger.close()


def test_the_same_attempt_twice_counts_once(path: Path) -> None:
    ledger = filled(path)
    ledger.write_attempt(replace(ATTEMPT, seconds=9.0))
    assert ledger.attempts(9) == [ATTEMPT]
    ledger.close()


def test_a_key_counts_once_and_without_one_a_verdict_that_changes_nothing_does_not(path: Path) -> None:
    ledger = filled(path)
    assert ledger.write_outcome("d1", "accepted", "k1")
    assert not ledger.write_outcome("d1", "accepted", "k1")
    assert ledger.write_outcome("d1", "rejected", "k2")
    assert not ledger.write_outcome("d1", "rejected")
    assert ledger.write_outcome("d1", "accepted")
    assert len(ledger.decision("d1")["outcomes"]) == 3
    ledger.close()


def test_a_key_with_another_verdict_or_an_unknown_decision_is_refused(path: Path) -> None:
    ledger = filled(path)
    ledger.write_outcome("d1", "accepted", "k1")
    with pytest.raises(ValueError, match="'k1' came with another verdict"):
        ledger.write_outcome("d1", "rejected", "k1")
    with pytest.raises(LookupError, match="'d2' is not in this ledger"):
        ledger.write_outcome("d2", "accepted", "k2")
    assert ledger.attempts(9)[0].outcome == "accepted"
    ledger.close()


@pytest.mark.parametrize(
    ("outcome", "late", "read"),
    [
        ("unverified", ["accepted"], "accepted"),
        ("accepted", ["rejected"], "rejected"),
        ("accepted", ["rejected", "accepted"], "accepted"),
        ("timeout", ["accepted"], "timeout"),
    ],
)
def test_the_latest_verdict_stands_for_an_answer_that_left(
    path: Path, outcome: Any, late: list[Any], read: str
) -> None:
    ledger = opened(path)
    ledger.write_decision(DECISION)
    ledger.write_attempt(replace(ATTEMPT, outcome="rejected"))
    ledger.write_attempt(replace(ATTEMPT, index=1, arm="plain", after="canvas", outcome=outcome))
    for verdict in late:
        ledger.write_outcome("d1", verdict)
    assert [attempt.outcome for attempt in ledger.attempts(9)] == ["rejected", read]
    ledger.close()


def test_another_configuration_has_attempts_of_its_own(path: Path) -> None:
    first, second = opened(path, "f1"), opened(path, "f2")
    first.write_attempt(ATTEMPT)
    assert second.attempts(9) == []
    assert second.attempts(9, is_same=False) == [ATTEMPT]
    assert second.table() == []
    first.close()
    second.close()


def test_a_file_that_is_no_ledger_or_of_another_version_is_refused(path: Path) -> None:
    path.write_text("this is a text, and long enough to be none of SQLite's files")
    with pytest.raises(ValueError, match=r"ledger\.sqlite is no ledger"):
        opened(path)
    path.unlink()
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA user_version = 7")
    file.close()
    with pytest.raises(ValueError, match="of version 7, this is 1"):
        opened(path)


def test_the_table_tells_acceptance_time_and_cost_of_what_an_arm_was_first_at(path: Path) -> None:
    ledger = opened(path)
    for number in range(4):
        ledger.write_decision(replace(DECISION, id=f"d{number}"))
    tries: list[tuple[str, int, Outcome, float]] = [
        ("d0", 0, "accepted", 1.0),
        ("d1", 0, "rejected", 2.0),
        ("d1", 1, "accepted", 3.0),
        ("d2", 0, "rejected", 1.0),
    ]
    for decision, index, outcome, seconds in tries:
        arm = "plain" if index else "canvas"
        ledger.write_attempt(
            replace(
                ATTEMPT,
                decision=decision,
                index=index,
                arm=arm,
                outcome=outcome,
                seconds=seconds,
                cost_usd=0.01 * seconds,
            )
        )
    ledger.write_attempt(replace(ATTEMPT, decision="d3", outcome="cancelled"))
    [row] = ledger.table()
    assert (row.arm, row.kind, row.load, row.requests, row.verdicts, row.rescued) == (
        "canvas",
        "schema-short",
        3,
        3,
        3,
        1,
    )
    assert (row.acceptance, row.acceptance_low, row.acceptance_high) == (1 / 3, *wilson(1, 3))
    assert (row.accepted_p50_s, row.accepted_p95_s) == (5.0, 9.0)  # 1 s, 2 + 3 s, and a deadline of 9 s
    assert row.cost_per_accepted_usd == pytest.approx(0.07 / 2)
    ledger.close()


def test_answers_that_nobody_judged_are_counted_but_tell_no_acceptance() -> None:
    [row] = tabulate([Told("d1", 0, "canvas", "text-any", "unverified", 0.5, 0.0, 1, None)])
    assert (row.requests, row.verdicts, row.acceptance, row.accepted_p50_s, row.seconds) == (1, 0, None, None, 0.5)


def test_the_interval_is_wilsons() -> None:
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 5)[0] == 0.0
    assert wilson(5, 5)[1] == 1.0
