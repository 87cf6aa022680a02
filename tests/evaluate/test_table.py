"""What people read: columns that align, figures that say their unit, a legend for each head."""

from mezzotint.evaluate.interval import Interval
from mezzotint.evaluate.score import Row
from mezzotint.evaluate.table import LEGEND, format_table

DIFFUSION = Row(
    task="extract",
    decoder="diffusion",
    sampler="report",
    temperature=1.0,
    form="free",
    step_budget=48,
    n=200,
    pass_rate=0.925,
    interval=Interval(0.8801, 0.9539),
    tokens_per_forward=6.125,
    tokens_per_forward_interval=Interval(5.9, 6.3456),
    steps=7.94,
    seconds=0.1284,
    prefill_s=0.02,
    generation_s=0.1084,
    output_tokens=41.26,
    overridden=0.0,
    forced=0.0,
    budget_hits=0.015,
    stutters=0.02,
    seams=0.0,
    loops=0.115,
    empty=0.0,
    truncated=0.005,
    preset="best",
    mended=0.15,
)
AR = Row(
    task="sequential_rule",
    decoder="ar",
    sampler=None,
    temperature=0.0,
    form="free",
    step_budget=0,
    n=5,
    pass_rate=1.0,
    interval=Interval(0.5655, 1.0),
    tokens_per_forward=1.0,
    tokens_per_forward_interval=Interval(1.0, 1.0),
    steps=0.0,
    seconds=12.5,
    prefill_s=0.5,
    generation_s=12.0,
    output_tokens=25.0,
    overridden=0.0,
    forced=0.0,
    budget_hits=0.0,
    stutters=0.0,
    seams=0.0,
    loops=0.0,
    empty=0.0,
    truncated=1.0,
)


def test_a_line_holds_every_figure_of_its_row() -> None:
    _, diffusion, ar, *_ = format_table([DIFFUSION, AR]).splitlines()
    told = "extract diffusion report best free 1 48 200 92.5% 88.0-95.4 6.12 5.90-6.35 7.9 0.128 41.3 0.00/0.0"
    assert diffusion.split() == [*told.split(), *"2% 2%/0%/12% 0% 0% 15%".split()]
    told = "sequential_rule ar - - free 0 0 5 100.0% 56.5-100.0 1.00 1.00-1.00 0.0 12.500 25.0 0.00/0.0"
    assert ar.split() == [*told.split(), *"0% 0%/0%/0% 0% 100% 0%".split()]


def test_columns_align_whatever_stands_in_them() -> None:
    heads, *lines = format_table([DIFFUSION, AR]).splitlines()[:3]
    assert {len(line) for line in lines} == {len(heads)}
    assert [line.index("diffusion" if "diffusion" in line else "ar ") for line in lines] == [heads.index("decoder")] * 2


def test_the_table_ends_with_what_its_heads_mean() -> None:
    table = format_table([DIFFUSION])
    assert table.endswith(LEGEND)
    for head in (
        "budget",
        "steps",
        "hits",
        "pass",
        "tok/forward",
        "seconds",
        "tokens",
        "stutter/seam/loop",
        "empty",
        "cut",
        "mended",
    ):
        assert head in table.splitlines()[0]
        assert head in LEGEND
