"""The page of a run: whole, offline, the same numbers in tables and plots, whatever names are in it."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from html.parser import HTMLParser
from math import inf
from typing import Any

import pytest

from mezzotint.bench.arrival import Load
from mezzotint.bench.config import BenchConfig, restore
from mezzotint.bench.figures import MEANINGS
from mezzotint.bench.matrix import GROUPS
from mezzotint.bench.point import Done
from mezzotint.bench.record import Parts
from mezzotint.bench.report import render
from mezzotint.bench.results import compute, find_warnings
from mezzotint.bench.store import Place, Point, Run
from mezzotint.bench.summary import as_object, format_summary
from tests.bench.records import CANVAS, TOKEN, config, played, request

LOADS = tuple(Load(kind="closed", value=value) for value in (1, 2, 4))


def measured(arms: str = "fast slow", loads: Sequence[Load] = LOADS, **options: Any) -> tuple[BenchConfig, list[Point]]:
    """The first arm is a canvas twice as fast at one task at once, and half as fast at four; 0 of its tasks fail."""
    told = config(arms, loads=tuple(loads), tasks=8, rounds=2, **options)
    points = []
    for load in loads:
        for round in range(2):
            for at, arm in enumerate(told.arms):
                seconds = load.value / 2 if at == 0 else 1.0
                kind = CANVAS if at == 0 else TOKEN
                numbers = range(4 * round, 4 * round + 4)
                tasks = tuple(
                    played(
                        number,
                        request(seconds * (1 + number / 100), **kind, outcome="rejected" if at == 2 else "accepted"),
                    )
                    for number in numbers
                )
                points.append(Point(Place(arm.name, str(load), round), Done(tasks, 4.0)))
    return told, points


def run_of(told: BenchConfig, name: str = "crossover", what: str = "a workload") -> Run:
    facts = {
        "config": json.loads(json.dumps(asdict(told))),
        "workload": {"name": what, "note": "its note"},
        "environment": {"command": "mezzotint bench crossover", "machine": "a machine"},
    }
    return Run(id=1, name=name, verb="crossover", identity={}, told=facts)


class Page(HTMLParser):
    """Its text, its elements with attributes, and the JSON of its plots."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.plots: list[dict[str, Any]] = []
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside.append("plot" if ("type", "application/json") in attrs else tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        inside = self._inside[-1] if self._inside else ""
        if inside == "plot":
            self.plots.append(json.loads(data))
        elif inside not in ("script", "style"):
            self.text.append(data)


def test_a_configuration_comes_back_from_what_is_kept_of_it() -> None:
    told = config("a@3,retry=b:ar,plan=c b", loads=LOADS, goals={"tta": 2.0})
    assert restore(json.loads(json.dumps(asdict(told)))) == told


def test_the_page_holds_all_that_it_shows_and_tables_stand_without_script() -> None:
    html = render(run_of(measured()[0]), measured()[1])
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "img", "base", "object")
        assert "src" not in attributes
        assert "href" not in attributes
    assert "@import" not in html.split("</style>")[0]
    assert "url(" not in html.split("</style>")[0]
    assert html.count("plotly.js v") == 1
    assert "@media print" in html
    assert ("noscript", {}) in page.elements
    text = " ".join(page.text)
    for name in GROUPS:
        for figure in GROUPS[name]:
            if figure in ("tta_p50", "acceptance_rate", "tpf", "accepted_goodput", "loop_rate"):
                assert figure in text
                assert MEANINGS[figure][1] in text
    assert "n 8, canvas, budget 6" in text, "no latency without its step budget"
    assert "configuration" in text
    assert "n/a (canvas)" in text, "a time per token of the canvas is refused where the other arm has one"


def test_plots_show_the_numbers_of_the_tables() -> None:
    told, points = measured()
    page = Page(render(run_of(told), points))
    titles = [plot["layout"]["title"]["text"] for plot in page.plots]
    assert sum(title.startswith("Quality against time") for title in titles) == 3
    [ratios] = [plot for plot in page.plots if "median ratio" in plot["layout"]["title"]["text"]]
    assert ratios["data"][0]["x"] == [1, 2, 4]
    assert ratios["data"][0]["y"] == pytest.approx([0.5, 1.0, 2.0])
    text = " ".join(page.text)
    assert "1: 0.50 (0.50 to 0.50), 2: 1.00 (1.00 to 1.00), 4: 2.00 (2.00 to 2.00)" in text
    assert "2 (2 to 2)" in text
    [steps] = [plot for plot in page.plots if plot["layout"]["title"]["text"].startswith("Denoising steps")]
    assert steps["data"][0]["x"] == [4]


def test_a_fingerprint_is_compared_with_that_of_the_arms_first_load() -> None:
    told, points = measured()
    rows = compute(told, points).rows
    canvases = [row for row in rows if row.fingerprints]
    [name] = canvases[0].fingerprints
    assert [row.apart(name, rows) for row in canvases] == [None, 0, 0]


def test_a_reader_is_warned_of_what_makes_arms_unequal() -> None:
    told = config("a b", loads=LOADS[:1], tasks=1, rounds=1)

    def points(cached: int, dispatch: float) -> list[Point]:
        one = played(0, request(1.0, **TOKEN, cached_tokens=cached), parts=Parts(dispatch=dispatch, generation=1.0))
        other = played(0, request(1.0, **TOKEN))
        return [
            Point(Place("a", str(LOADS[0]), 0), Done((one,), 1.0)),
            Point(Place("b", str(LOADS[0]), 0), Done((other,), 1.0)),
        ]

    assert find_warnings(compute(told, points(0, 0.0))) == []
    assert find_warnings(compute(told, points(10, 0.0))) == [
        "1 at once: a prefix cache spared 0% to 50% of prompts, by the arm"
    ]
    [busy, uneven] = find_warnings(compute(told, points(0, 0.1)))
    assert busy == "a, 1 at once: parts do not add up (residual_share is 10.0%)"
    assert uneven == "a, 1 at once: the client was busy (dispatch_share is 10.0%)"
    text = " ".join(Page(render(run_of(told), points(10, 0.0))).text)
    assert "a prefix cache spared 0% to 50% of prompts" in text


def test_names_are_text_wherever_they_stand() -> None:
    bad = "</script><script>alert(1)</script>&\u2028"
    told, points = measured(f"{bad.replace(' ', '')} slow")
    html = render(run_of(told, name=bad, what=bad), points)
    assert "<script>alert" not in html
    page = Page(html)
    assert any(bad in text for text in page.text)
    assert any(trace["name"].startswith("</script>") for plot in page.plots for trace in plot["data"])
    assert sum(tag == "script" for tag, _ in page.elements) == 2 + len(page.plots)


def test_arms_that_others_beat_are_marked_with_the_one_that_does() -> None:
    told, points = measured("fast slow bad", LOADS[:1])
    results = compute(told, points)
    assert [(each.arm, each.by) for each in results.dominated] == [("slow", "fast"), ("bad", "fast")]
    assert re.search(
        r'<tr class="beaten"><th scope="row">slow</th>.*?<td>fast</td></tr>', render(run_of(told), points), re.S
    )


def test_what_is_not_finished_is_left_out_and_told() -> None:
    told, points = measured()
    results = compute(told, points[:-1])
    assert results.missing == 1
    assert len(results.rows) == 5
    text = " ".join(Page(render(run_of(told), points[:-1])).text)
    assert "1 parts were not measured yet" in text
    assert "Nothing is finished yet" in " ".join(Page(render(run_of(told), [])).text)
    assert "12 parts are to be measured" in format_summary(run_of(told), compute(told, []))


def test_comparisons_are_of_the_first_arm_with_each_other_one_by_both_measures() -> None:
    told, points = measured("fast slow bad")
    comparisons = compute(told, points).comparisons
    assert [(each.first, each.second, each.measure) for each in comparisons] == [
        ("fast", "slow", "median"),
        ("fast", "slow", "expected"),
        ("fast", "bad", "median"),
        ("fast", "bad", "expected"),
    ]
    assert comparisons[0].crossover.load == pytest.approx(2)
    assert comparisons[3].crossover.load == inf, "an arm that is never right is never faster"
    assert compute(*measured(loads=LOADS[:1])).comparisons == ()


def test_programs_read_the_same_and_no_number_is_infinite_there() -> None:
    told, points = measured("fast slow bad")
    results = compute(told, points)
    read = json.loads(json.dumps(as_object(run_of(told), results), allow_nan=False))
    assert len(read["rows"]) == 9
    assert read["rows"][0]["figures"]["e2e_p50"]["step_budget"] == "6"
    assert read["crossovers"][0]["load"] == pytest.approx(2)
    assert read["crossovers"][3]["load"] is None
    text = format_summary(run_of(told), results)
    assert "fast against slow, median ratio of time to accepted: 2 (2 to 2)" in text
    assert "slow at 1 at once is beaten by fast" in text
    assert "failed of" not in text
    row = replace(results.rows[0], errors={"http 500": 3, "timeout": 1})
    failed = format_summary(run_of(told), replace(results, rows=(row, *results.rows[1:])))
    assert "failed of fast at 1 at once: http 500 × 3, timeout × 1" in failed


def test_every_figure_of_the_matrix_has_a_meaning_and_each_meaning_a_place_in_it() -> None:
    placed = [name for names in GROUPS.values() for name in names]
    assert sorted(placed) == sorted(MEANINGS)
