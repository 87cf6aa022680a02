"""The arithmetic of a suite's row, and how it is shown."""

from typing import Any

import pytest

from mezzotint.evaluate.assess import Assessment, Comparison
from mezzotint.evaluate.interval import Interval, clustered_interval
from mezzotint.evaluate.question import Cost
from mezzotint.evaluate.suite_table import LEGEND, format_assessment, format_comparison, format_notes, format_rows
from mezzotint.evaluate.total import SuiteRow, add_up
from mezzotint.text.detect import Finding
from tests.evaluate.asked import TRAITS, record, suite

LOOP = Finding("loop", 0, 9)


def canvas(tokens: int, steps: tuple[int, ...]) -> Cost:
    return Cost(
        seconds=1.0,
        output_tokens=tokens,
        forwards=sum(steps) + 1,
        steps=steps,
        sampler="report",
        step_budget=16,
        budget_hits=0,
    )


def row(**options: Any) -> SuiteRow:
    records = [
        record("a", 0, accepted=True, cost=canvas(10, (4,))),
        record(
            "a", 1, accepted=False, cost=canvas(20, (6, 8)), finish_reason="length", findings=(Finding("loop", 0, 9),)
        ),
        record("b", 0, accepted=True, cost=canvas(30, (2,))),
        record("b", 1, accepted=None, cost=canvas(40, (2,))),
    ]
    return add_up("s", TRAITS, records, **{"epochs": 2, "k": 2, "errors": 1, **options})


def test_rates_are_means_over_tasks_and_what_has_no_verdict_is_in_none() -> None:
    told = row()
    assert (told.tasks, told.answers, told.unscored, told.errors) == (2, 4, 1, 1)
    assert told.pass_rate == pytest.approx((0.5 + 1.0) / 2)
    assert told.interval == clustered_interval([0.5, 1.0])
    assert (told.pass_at_k, told.pass_all_k, told.complete) == (1.0, 0.0, 1)  # b has one verdict alone
    single = row(k=1)
    assert (single.pass_at_k, single.pass_all_k, single.complete) == (0.75, 0.75, 2)


def test_costs_are_added_and_signs_are_shares() -> None:
    told = row()
    assert told.tokens_per_forward == pytest.approx(100 / (5 + 15 + 3 + 3))
    assert told.steps == pytest.approx((4 + 6 + 8 + 2 + 2) / 5)
    assert (told.seconds, told.output_tokens, told.sampler, told.step_budget) == (1.0, 25.0, "report", 16)
    assert told.signs["loop"] == 0.25
    assert sum(told.signs.values()) == 0.25
    assert told.truncated == 0.25


def test_what_was_not_told_is_not_made_up() -> None:
    told = add_up("s", TRAITS, [record("a", cost=Cost(seconds=2.0))], epochs=1, k=1, errors=0)
    assert (told.tokens_per_forward, told.steps, told.output_tokens, told.step_budget) == (None, None, None, None)
    empty = add_up("s", TRAITS, [], epochs=1, k=1, errors=3)
    assert (empty.pass_rate, empty.interval, empty.seconds, empty.errors) == (None, None, None, 3)


def test_a_line_holds_every_figure_of_its_row_and_the_legend_each_head() -> None:
    heads, line, *_ = format_rows([row()]).splitlines()
    expected = "s m diffusion report - free 1 16 2 2 75.0% 50.0-100.0 2 100.0% 0.0% 3.85 4.4 1.000 25.0"
    assert line.split() == [*expected.split(), "0%/25%/0%/0%/0%/0%/0%", "25%", "1", "1"]
    assert len(heads) == len(line)
    for head in ("budget", "pass@1", "pass@k", "pass^k", "tok/forward", "signs", "cut", "unscored", "errors"):
        assert head in heads
        assert head in LEGEND


def test_what_is_left_out_is_told_with_its_reason() -> None:
    told = format_notes(suite("a", skipped={"7": "broken", "8": "broken"}, note="old"))
    assert told == "s: left out 7, 8: broken\ns: old"
    assert format_notes(suite("a")) == ""


def test_a_judge_is_told_with_its_faults() -> None:
    told = format_assessment(
        Assessment(
            answers=10,
            retests=1,
            unscored=2,
            mean_grade=3.5,
            accepted=0.5,
            compared=8,
            agreement=0.75,
            agreement_interval=Interval(0.5, 0.9),
            kappa=0.25,
            flips=0.125,
            spread=0.5,
        )
    )
    for part in (
        "grade 3.50",
        "2 gradings could not be read",
        "75.0% of 8",
        "50.0-90.0",
        "kappa 0.25",
        "12.5%",
        "0.50",
    ):
        assert part in told
    compared = Comparison(
        pairs=6, wins=2, ties=2, losses=1, swayed=1, unscored=1, preference=0.6, interval=Interval(0.2, 0.9)
    )
    for part in ("2 better", "2 alike (1 of them", "1 worse", "1 verdicts could not be read", "60.0%", "20.0-90.0"):
        assert part in format_comparison(compared)
