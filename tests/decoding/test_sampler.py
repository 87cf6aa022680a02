"""One step's update of a canvas under each named sampler."""

from collections.abc import Iterable
from dataclasses import replace
from math import ceil
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mezzotint.decoding.canvas import Pins, no_pins, pin_positions
from mezzotint.decoding.sampler import SAMPLERS, CanvasState, Draws, Sampler, start_canvas, update_canvas
from mezzotint.types import Reading

V, C = 12, 6
ENTROPY_BOUND = ["report", "hf", "jax"]
CANVAS = torch.arange(C)[None]


def reading(
    argmax: Tensor | list[int],
    *,
    entropy: float | list[float] = 0.0,
    proposal: list[int] | None = None,
    p: Any = 0.5,
) -> Reading:
    """A row's reading from what a test cares about; the proposal is the argmax unless it says otherwise."""
    best = torch.as_tensor(argmax)
    return Reading(
        argmax=best[None],
        proposal=best[None] if proposal is None else torch.tensor([proposal]),
        entropy=torch.as_tensor(entropy).expand(best.shape)[None].clone(),
        log_prob=torch.as_tensor(p).expand(best.shape)[None].log(),
        soft=None,
    )


def draws(noise: int | Tensor = V - 1, route: float = 0.5) -> Draws:
    routes = torch.full((1, C), route, dtype=torch.float64)
    return Draws(torch.as_tensor(noise).expand(1, C).clone(), routes)


def run(sampler: Sampler, *readings: Reading, pins: Pins | None = None) -> list[CanvasState]:
    """The states after each reading, with noise V − 1 everywhere."""
    pins = pins or no_pins(C)
    states = [start_canvas(CANVAS, pins)]
    for each in readings:
        states.append(update_canvas(sampler, states[-1], each, draws(), pins, V))
    return states[1:]


def same(one: Iterable[Any], other: Iterable[Any]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(a.equal(b) if isinstance(a, Tensor) else a == b for a, b in pairs)


class Step(NamedTuple):
    """What a step is given, [B, C] each: a reading without soft embedding, and what was drawn."""

    argmax: Tensor
    proposal: Tensor
    entropy: Tensor
    log_prob: Tensor
    noise: Tensor
    routes: Tensor

    def rows(self, rows: slice) -> "Step":
        return Step(*(part[rows] for part in self))

    def columns(self, kept: Tensor) -> "Step":
        return Step(*(part[:, kept] for part in self))

    def applied(self, sampler: Sampler, state: CanvasState, pins: Pins) -> CanvasState:
        read = Reading(self.argmax, self.proposal, self.entropy, self.log_prob, None)
        return update_canvas(sampler, state, read, Draws(self.noise, self.routes), pins, V)


def drawn_step(generator: torch.Generator, rows: int = 1) -> Step:
    """A random step; of few tokens and low entropies, so that some rows settle."""
    ids = torch.randint(2, (3, rows, C), generator=generator)
    entropy = 0.02 * torch.rand(rows, C, generator=generator)
    log_prob = torch.rand(rows, C, generator=generator).log()
    routes = torch.rand(rows, C, generator=generator, dtype=torch.float64)
    return Step(ids[0], ids[1], entropy, log_prob, ids[2], routes)


@pytest.mark.parametrize("name", SAMPLERS)
@given(pinned=st.lists(st.booleans(), min_size=C, max_size=C), seed=st.integers(0, 2**30))
def test_a_canvas_with_pins_behaves_like_a_canvas_of_its_open_positions(
    name: Any, pinned: list[bool], seed: int
) -> None:
    sampler = replace(SAMPLERS[name], budget=5, confidence=0.012)
    open_ = ~torch.tensor(pinned)
    generator = torch.Generator().manual_seed(seed)
    pins = pin_positions({offset: 9 for offset in range(C) if pinned[offset]}, C)
    bare = no_pins(int(open_.sum()))
    start = torch.randint(2, (1, C), generator=generator)
    wide, narrow = start_canvas(start, pins), start_canvas(start[:, open_], bare)
    for _ in range(5):
        step = drawn_step(generator)
        wide = step.applied(sampler, wide, pins)
        narrow = step.columns(open_).applied(sampler, narrow, bare)
        for name_of in ("canvas", "accepted", "committed", "output"):
            assert getattr(wide, name_of)[:, open_].equal(getattr(narrow, name_of)), name_of
        assert wide.stable_for.equal(narrow.stable_for)
        assert wide.done.equal(narrow.done)


@pytest.mark.parametrize("name", SAMPLERS)
@given(pinned=st.lists(st.booleans(), min_size=C, max_size=C), seed=st.integers(0, 2**30))
def test_a_pin_never_changes_and_is_never_accepted(name: Any, pinned: list[bool], seed: int) -> None:
    sampler = replace(SAMPLERS[name], budget=4)
    generator = torch.Generator().manual_seed(seed)
    pins = pin_positions({offset: 9 for offset in range(C) if pinned[offset]}, C)
    state = start_canvas(torch.randint(2, (1, C), generator=generator), pins)
    for _ in range(4):
        state = drawn_step(generator).applied(sampler, state, pins)
        assert state.canvas.eq(9).equal(pins.mask[None])
        assert state.output.eq(9).equal(pins.mask[None])
        assert not (state.accepted & pins.mask).any()
        assert not (state.committed & pins.mask).any()


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_row_of_a_batch_is_updated_as_it_would_be_alone(name: Any) -> None:
    sampler = replace(SAMPLERS[name], budget=6, confidence=0.012)
    generator, pins = torch.Generator().manual_seed(2), pin_positions({4: 9}, C)
    starts = torch.randint(2, (3, C), generator=generator)
    batch = start_canvas(starts, pins)
    alone = [start_canvas(starts[row : row + 1], pins) for row in range(3)]
    for _ in range(6):
        step = drawn_step(generator, 3)
        batch = step.applied(sampler, batch, pins)
        for row in range(3):
            own = slice(row, row + 1)
            alone[row] = step.rows(own).applied(sampler, alone[row], pins)
            fields: tuple[Any, ...] = batch[1:]
            assert same([part[own] for part in fields], alone[row][1:])


@pytest.mark.parametrize("name", SAMPLERS)
def test_an_update_changes_no_argument(name: Any) -> None:
    generator, pins = torch.Generator().manual_seed(3), pin_positions({2: 9}, C)
    state, step = start_canvas(CANVAS, pins), drawn_step(generator)
    before = [part.clone() for part in (state.canvas, *step, *pins)]
    first = step.applied(SAMPLERS[name], state, pins)
    assert same(before, (state.canvas, *step, *pins))
    assert same(step.applied(SAMPLERS[name], state, pins), first)


@pytest.mark.parametrize("name", ENTROPY_BOUND)
def test_what_is_not_accepted_becomes_noise_and_nothing_is_frozen(name: Any) -> None:
    first, second = run(
        SAMPLERS[name],
        reading([1] * C, entropy=[0.0, 0.06, 0.06, 9.0, 9.0, 9.0], proposal=[2] * C),
        reading([1] * C, entropy=[9.0, 9.0, 9.0, 9.0, 9.0, 0.2], proposal=[3] * C),
    )
    noise = V - 1
    assert first.canvas.tolist() == [[2, 2, 2, noise, noise, noise]]  # the three hold 0.12 nats
    assert second.canvas.tolist() == [[noise, noise, noise, noise, noise, 3]]
    assert second.accepted.tolist() == [[False] * 5 + [True]]
    assert not second.committed.any()


@pytest.mark.parametrize("name", ["report", "hf"])
def test_the_argmax_of_the_last_step_is_what_comes_out(name: Any) -> None:
    (state,) = run(SAMPLERS[name], reading([1] * C, entropy=9.0, proposal=[2] * C))
    assert state.output.tolist() == [[1] * C]


def test_jax_lets_out_the_canvas_itself_with_its_noise() -> None:
    (state,) = run(SAMPLERS["jax"], reading([1] * C, entropy=9.0, proposal=[2] * C))
    assert state.output.tolist() == [[2] + [V - 1] * 5]


@pytest.mark.parametrize("name", ["report", "hf"])
def test_a_sure_canvas_takes_two_steps(name: Any) -> None:
    states = run(SAMPLERS[name], reading([1] * C), reading([1] * C))
    assert [state.done.tolist() for state in states] == [[False], [True]]


@pytest.mark.parametrize("stability", [0, 1, 2, 3])
def test_stability_counts_steps_that_equal_the_one_before(stability: int) -> None:
    sampler = replace(SAMPLERS["report"], stability=stability)
    states = run(sampler, *[reading([1] * C)] * 5)
    assert [bool(state.done) for state in states].index(True) == stability


def test_a_change_of_one_token_starts_the_count_over() -> None:
    sampler = replace(SAMPLERS["report"], stability=2)
    still, moved = reading([1] * C), reading([1] * 5 + [2])
    assert [int(state.stable_for) for state in run(sampler, still, still, moved, moved, moved)] == [
        0,
        1,
        0,
        1,
        2,
    ]


def test_jax_asks_whether_the_argmax_is_the_canvas_that_was_fed_in() -> None:
    renoised = reading([1] * C, entropy=[0.0, 0.2, 0.0, 0.0, 0.0, 0.2])
    states = run(SAMPLERS["jax"], renoised, reading([1] * C), reading([1] * C))
    assert [int(state.stable_for) for state in states] == [
        0,
        0,
        1,
    ]  # the first canvas is noise, the second part noise
    assert [int(state.stable_for) for state in run(SAMPLERS["report"], renoised, reading([1] * C))] == [0, 1]


@pytest.mark.parametrize(("name", "settles"), [("report", True), ("jax", True), ("hf", False)])
def test_report_and_jax_stop_at_the_threshold_and_hf_below_it(name: Any, settles: bool) -> None:
    sampler = replace(SAMPLERS[name], confidence=0.25)
    at_it, below = reading([1] * C, entropy=0.25), reading([1] * C, entropy=0.24)
    fed_back = replace(sampler, entropy_bound=9.0)  # all accepted, so that jax sees its argmax come back
    assert bool(run(fed_back, at_it, at_it)[-1].done) == settles
    assert run(fed_back, below, below)[-1].done


def test_a_stable_canvas_that_is_unsure_goes_on() -> None:
    states = run(SAMPLERS["report"], *[reading([1] * C, entropy=0.006)] * 3)
    assert not any(state.done for state in states)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("budget", [1, 3])
def test_a_canvas_is_done_when_its_budget_is_spent_and_no_earlier(name: Any, budget: int) -> None:
    sampler = replace(SAMPLERS[name], budget=budget, entropy_bound=0.0)
    unsure = [reading([step] * C, entropy=5.0, p=0.1) for step in range(budget)]
    states = run(sampler, *unsure)
    assert [bool(state.done) for state in states] == [False] * (budget - 1) + [True]
    assert [state.step for state in states] == list(range(1, budget + 1))


@given(
    budget=st.integers(1, 9),
    width_pinned=st.integers(0, C - 1),
    seed=st.integers(0, 2**30),
)
def test_refinement_holds_its_share_after_every_step_and_freezes_it(budget: int, width_pinned: int, seed: int) -> None:
    sampler = replace(SAMPLERS["refine"], budget=budget)
    pins = pin_positions(dict.fromkeys(range(width_pinned), 9), C)
    generator = torch.Generator().manual_seed(seed)
    state = start_canvas(torch.randint(2, (1, C), generator=generator), pins)
    for step in range(budget):
        before = state
        state = drawn_step(generator).applied(sampler, before, pins)
        assert int(state.committed.sum()) >= ceil((step + 1) * (C - width_pinned) / budget)
        assert not (before.committed & ~state.committed).any()
        assert state.canvas[before.committed].equal(before.canvas[before.committed])
    assert state.done
    assert state.committed.equal(~pins.mask[None])


def test_refinement_commits_every_sure_proposal_at_once() -> None:
    sampler = replace(SAMPLERS["refine"], budget=6)
    first, second = run(
        sampler,
        reading([1] * C, p=[0.96, 0.97, 0.2, 0.1, 0.3, 0.95]),
        reading([2] * C, p=[0.99, 0.99, 0.2, 0.4, 0.3, 0.1]),
    )
    noise = V - 1
    assert first.canvas.tolist() == [[1, 1, noise, noise, noise, noise]]
    assert second.canvas.tolist() == [[1, 1, noise, noise, noise, noise]]  # two of six already stand
    assert not second.done


def test_refinement_is_done_as_soon_as_all_is_committed() -> None:
    (state,) = run(replace(SAMPLERS["refine"], budget=6), reading([1] * C, p=0.99))
    assert state.done
    assert state.output.tolist() == [[1] * C]


def test_editing_revises_what_is_committed_where_the_new_proposal_is_sure() -> None:
    sampler = replace(SAMPLERS["refine"], budget=3, editing_threshold=0.9)
    first, second = run(
        sampler,
        reading([1] * C, p=[0.96, 0.97, 0.2, 0.1, 0.1, 0.1]),
        reading([2] * C, p=[0.91, 0.90, 0.8, 0.7, 0.1, 0.1]),
    )
    assert first.canvas[0, :2].tolist() == [1, 1]
    assert second.canvas[0, :4].tolist() == [2, 1, 2, 2]


def test_ddim_routes_by_its_uniforms_and_its_last_step_takes_the_clean_tokens() -> None:
    sampler, pins = replace(SAMPLERS["ddim"], budget=2), no_pins(C)
    start = start_canvas(CANVAS, pins)
    clean = reading([8] * C)
    assert update_canvas(sampler, start, clean, draws(route=0.49), pins, V).canvas.tolist() == [[8] * C]
    noisy = update_canvas(sampler, start, clean, draws(route=0.51), pins, V)
    assert noisy.canvas.tolist() == [[V - 1] * C]
    assert not noisy.accepted.any()
    last = update_canvas(sampler, noisy, clean, draws(route=0.999), pins, V)
    assert last.output.tolist() == [[8] * C]
    assert last.accepted.all()
    assert last.done


def test_the_samplers_differ_only_where_their_sources_do() -> None:
    report = SAMPLERS["report"]
    assert SAMPLERS["hf"] == replace(report, name="hf", inclusive=False)
    assert SAMPLERS["jax"] == replace(report, name="jax", stable_against="canvas", emits="canvas")
    assert (report.budget, report.t_min, report.t_max, report.entropy_bound) == (48, 0.4, 0.8, 0.1)
    assert (report.stability, report.confidence) == (1, 0.005)
    assert SAMPLERS["refine"].threshold == 0.95
    assert all(name == sampler.name for name, sampler in SAMPLERS.items())


def test_a_requests_temperature_scales_the_proposals_alone() -> None:
    report = SAMPLERS["report"]
    assert report.temperature(0) == 0.8
    assert [report.proposal_temperature(0, factor) for factor in (0.0, 0.5, 1.0)] == [0.0, 0.4, 0.8]
    assert SAMPLERS["ddim"].proposal_temperature(5, 0.5) == 0.5
    assert SAMPLERS["refine"].proposal_temperature(5, 1.0) == 0.0


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"budget": 0}, "budget is 0; a canvas needs at least 1"),
        ({"t_min": 0.0}, "t_min 0.0 and t_max 0.8"),
        ({"t_min": 0.9}, "t_min 0.9 and t_max 0.8"),
        ({"entropy_bound": -1.0}, "entropy_bound is -1.0"),
        ({"entropy_bound": float("nan")}, "entropy_bound is nan"),
        ({"stability": -1}, "stability is -1; it must be at least 0"),
        ({"confidence": -0.1}, "confidence is -0.1"),
    ],
    ids=str,
)
def test_numbers_that_make_no_sampler_are_refused(numbers: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SAMPLERS["report"], **numbers)
