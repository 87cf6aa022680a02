"""Figures of constructed records, whose values are known."""

from typing import Any

import pytest

from mezzotint.bench.arrival import Load
from mezzotint.bench.config import Prices
from mezzotint.bench.figures import Figure, check_goals, time_per_token
from mezzotint.bench.play import PlayConfig
from mezzotint.bench.point import Done
from mezzotint.bench.record import Parts, Played
from mezzotint.bench.tally import Group, count_errors, count_outcomes, mean_parts, tally
from tests.bench.records import CANVAS, TOKEN, config, group, played, request


def figures(*tasks: Played, load: float = 1, **options: Any) -> dict[str, Figure]:
    return tally(group(*tasks, load=load), config(**options))


def test_rates_count_tasks_attempts_and_rescues() -> None:
    no = request(1, outcome="rejected")
    tasks = [
        played(0, request(1)),
        played(1, no, request(2, attempt=1)),
        played(2, no, request(2, attempt=1, outcome="rejected")),
        played(3, request(1)),
    ]
    told = figures(*tasks)
    assert told["acceptance_rate"].value == 0.75
    assert told["first_try_rate"].value == 0.5
    assert told["rescue_rate"].value == 0.25
    assert told["attempts_per_accepted"].value == 6 / 3
    assert told["retry_rate"].value == 2 / 6
    interval = told["acceptance_rate"].interval
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.3006, 0.9544), abs=1e-4)  # Wilson's, 3 of 4


def test_a_bad_arm_cannot_look_fast() -> None:
    quick_failures = [played(at, request(0.1, outcome="rejected")) for at in range(9)]
    told = figures(played(9, request(2.0)), *quick_failures, play=PlayConfig(deadline_s=30))
    assert told["tta_p50"].value == 2.0
    assert told["tta_p50"].n == 1
    assert told["tta_censored_p50"].value == 30.0
    assert told["expected_tta"].value == pytest.approx(2.0 + 9 * 0.1)


def test_a_percentile_of_few_is_marked_and_one_of_many_is_not() -> None:
    assert figures(*(played(at, request()) for at in range(199)))["tta_p95"].note == "n small"
    assert figures(*(played(at, request()) for at in range(200)))["tta_p95"].note == ""


def test_times_count_from_the_scheduled_arrival_of_the_first_request_and_the_sending_of_others() -> None:
    late = Parts(dispatch=0.5, generation=2.0)
    first = request(2, sent_s=1.0, arrivals=(1.25, 2.0), outcome="rejected")
    told = figures(played(0, first, request(5, sent_s=4.0, attempt=1, arrivals=(4.5,)), parts=late))
    assert told["e2e_p50"].value == pytest.approx((1.5 + 1.0) / 2)
    assert told["ttfc_p50"].value == pytest.approx((0.75 + 0.5) / 2)
    assert told["icl_p50"].value == 0.75


def test_tokens_one_by_one_have_a_time_each_and_canvases_do_not() -> None:
    arrivals = (1.0, 1.5, 2.0, 2.5)
    slow = request(2.5, arrivals=arrivals, output_tokens=4, **TOKEN)
    told = figures(played(0, slow))
    assert told["tpot_p50"].value == pytest.approx(0.5)
    assert told["ntpot_p50"].value == pytest.approx(2.5 / 4)
    assert told["e2e_rate_p50"].value == pytest.approx(4 / 2.5)
    of_canvas = request(2.5, arrivals=arrivals, **CANVAS)
    assert "tpot_p50" not in figures(played(0, of_canvas))
    assert figures(played(0, of_canvas))["icl_p50"].value == 0.5
    for semantics, how in (("canvas", "a block at a time"), ("chunk", "in chunks of who knows how many tokens")):
        asked = [request(**{**CANVAS, "semantics": semantics})]
        with pytest.raises(
            ValueError, match=f"tpot is asked of answers that come {how} .*take ttfc, icl, e2e or ntpot"
        ):
            time_per_token(asked)
        with pytest.raises(ValueError, match="itl is asked of answers"):
            check_goals({"itl": 0.1}, asked)
    check_goals({"itl": 0.1}, [slow])
    check_goals({"e2e": 0.1}, [of_canvas])


def test_no_latency_stands_without_its_step_budget() -> None:
    told = figures(played(0, request(**CANVAS)), played(1, request(**{**CANVAS, "step_budget": 9})))
    assert told["e2e_p50"].step_budget == "6,9"
    assert figures(played(0, request(**TOKEN)))["e2e_p50"].step_budget == "-"
    with pytest.raises(ValueError, match=r"canvases whose step budget is not known.* metrics.diffusion.step_budget"):
        figures(played(0, request(**{**CANVAS, "step_budget": None})))


def test_canvases_are_counted_by_blocks_steps_and_hits() -> None:
    two = request(3, **{**CANVAS, "steps": (6, 3)}, budget_hits=1, output_tokens=12, forwards=10, generation_s=1.8)
    one = request(1, **{**CANVAS, "steps": (3,)}, output_tokens=6, forwards=3, generation_s=0.6)
    told = figures(played(0, two), played(1, one))
    assert told["blocks"].value == 1.5
    assert told["tpf"].value == 18 / 13
    assert told["canvas_utilisation"].value == 18 / 24
    assert told["steps_p50"].value == 3
    assert told["budget_hit_rate"].value == pytest.approx(1 / 3)
    assert told["early_halt_rate"].value == pytest.approx(2 / 3)
    assert told["block_latency"].value == pytest.approx(0.8)


def test_goodput_of_a_closed_loop_is_slots_by_mean_time_and_of_a_schedule_by_its_window() -> None:
    tasks = [played(at, request(2.0)) for at in range(3)] + [played(3, request(4.0, outcome="rejected"))]
    told = figures(*tasks, load=5)
    assert told["task_rate"].value == pytest.approx(5 / 2.5)
    assert told["accepted_goodput"].value == pytest.approx(5 / 2.5 * 0.75)
    rate = Group("a", Load(kind="poisson", value=1), (Done(tuple(tasks), 8.0),))
    assert tally(rate, config())["accepted_goodput"].value == pytest.approx(3 / 8)


def test_only_tasks_that_keep_to_every_goal_are_good() -> None:
    tasks = [played(0, request(1.0)), played(1, request(3.0)), played(2, request(1.0, arrivals=(0.9,)), seconds=4.0)]
    assert figures(*tasks, goals={"e2e": 2.0})["accepted_goodput"].value == pytest.approx(2 / 8)
    assert figures(*tasks, goals={"tta": 2.0})["accepted_goodput"].value == pytest.approx(1 / 8)
    assert figures(*tasks, goals={"ttfc": 0.95})["accepted_goodput"].value == pytest.approx(1 / 8)


def test_cost_counts_failed_attempts_and_a_servers_own_seconds_where_it_tells_them() -> None:
    failed = request(1, outcome="rejected", generation_s=0.5, prompt_tokens=1000, output_tokens=100)
    right = request(3, attempt=1, sent_s=1.0, prompt_tokens=1000, output_tokens=100)
    prices = Prices(input=2.0, output=10.0, busy=0.01)
    told = figures(played(0, failed, right), played(1, failed), prices=prices)
    tokens = 3 * (1000 * 2.0 + 100 * 10.0) / 1e6
    assert told["cost_per_accepted"].value == pytest.approx(tokens + (0.5 + 2.0 + 0.5) * 0.01)


def test_errors_and_drops_are_counted_by_category_beside_every_figure() -> None:
    bad = request(1, outcome="error", category="http 500")
    dropped = played(2, request(), outcome="cancelled")
    dropped = Played(**{**dropped.__dict__, "requests": (), "accepted_hops": ()})
    tasks = group(played(0, bad, bad), played(1, request()), dropped)
    assert count_errors(tasks) == {"http 500": 2, "dropped": 1}
    assert count_outcomes(tasks) == {"error": 1, "accepted": 1, "cancelled": 1}
    told = tally(tasks, config())
    assert told["e2e_p50"].n == 1, "a request that failed has no latency"
    assert told["error_rate"].value == pytest.approx(2 / 3)
    assert told["drop_rate"].value == pytest.approx(1 / 3)


def test_parts_are_told_with_what_none_of_them_claims() -> None:
    one = played(0, request(2.0), parts=Parts(queue=0.5, generation=1.0))
    parts = mean_parts(group(one))
    assert (parts["queue"], parts["generation"], parts["residual"]) == (0.5, 1.0, 0.5)
    told = figures(one)
    assert told["residual_share"].value == 0.25
    assert told["residual_share"].note == "parts do not add up"
    assert figures(played(0, request(2.0), parts=Parts(generation=1.99)))["residual_share"].note == ""


def test_a_busy_client_is_told() -> None:
    assert figures(played(0, request(1), parts=Parts(dispatch=0.03)))["dispatch_share"].note == "the client was busy"
    assert figures(played(0, request(1), parts=Parts(dispatch=0.01)))["dispatch_share"].note == ""


def test_hops_have_figures_of_their_own_by_kind() -> None:
    requests = [
        request(1, hop=0, kind="plan"),
        request(2, hop=1, kind="tool", sent_s=1.0),
        request(4, hop=2, kind="tool"),
    ]
    told = figures(played(0, *requests, hops=3, accepted_hops=(1.0, 1.5, 2.5)))
    assert (told["plan_tta_p50"].value, told["tool_tta_p50"].value, told["hop_tta_p50"].value) == (1.0, 2.0, 1.5)
    assert "hop_tta_p50" not in figures(played(0, request()))


def test_signs_of_bad_writing_are_rates_of_answers() -> None:
    loop = request(1, findings=("loop", "stutter"), finish_reason="length")
    told = figures(played(0, loop), played(1, request()))
    names = ("loop_rate", "stutter_rate", "truncation_rate", "control_leak_rate", "malformed_rate")
    assert [told[name].value for name in names] == [0.5, 0.5, 0.5, 0, 0]
