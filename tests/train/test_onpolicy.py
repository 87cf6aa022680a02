"""Visited states: those of the sampler as inference runs it, drawn from a canvas's life and no later."""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from torch import Generator, Tensor

from mezzotint.decoding.canvas import Pins, no_pins
from mezzotint.decoding.generate import Limits, settle_canvas
from mezzotint.decoding.sampler import SAMPLERS
from mezzotint.train import onpolicy
from mezzotint.train.context import Contexts, RecordedKV
from mezzotint.train.data import Batch
from mezzotint.train.onpolicy import States, Trace, roll_out, visit_states
from tests.train.tiny import END, VOCABULARY, WIDTH, Watched, cut, draw_samples, tiny_model

# Content with an argmax that stood still, so that canvases end at different steps and most before the budget.
SAMPLER = replace(SAMPLERS["report"], budget=9, confidence=100.0, entropy_bound=2.0)
SAMPLES = draw_samples((7, 4), (10, 4), (6, 4), (13, 4))
ROWS = len(SAMPLES)
LIMITS = Limits(vocab_size=VOCABULARY, canvas_length=WIDTH, max_positions=128, end_ids=(END,))


class Replayed(NamedTuple):
    """The numbers that a rollout drew for one of its canvases, as the randomness of that canvas alone."""

    drawn_ids: list[Tensor]
    drawn_uniforms: list[Tensor]

    def first_canvas(self) -> Tensor:
        return self.drawn_ids[0]

    def uniforms(self, step: int) -> Tensor:
        return self.drawn_uniforms[step]

    def noise(self, step: int) -> Tensor:
        return self.drawn_ids[step + 1]

    def routes(self, step: int) -> Tensor:
        raise AssertionError(f"no route is drawn by the report's sampler, not in step {step}")


def redraw(seed: int, row: int) -> Replayed:
    generator = Generator().manual_seed(seed)

    def ids() -> Tensor:
        return torch.randint(VOCABULARY, (ROWS, WIDTH), generator=generator)[row]

    def uniforms() -> Tensor:
        drawn = torch.rand(ROWS * WIDTH, generator=generator, dtype=torch.float64)
        return drawn.view(ROWS, WIDTH)[row]

    drawn_ids, drawn_uniforms = [ids()], []
    for _ in range(SAMPLER.budget):
        drawn_uniforms.append(uniforms())
        drawn_ids.append(ids())
    return Replayed(drawn_ids, drawn_uniforms)


@pytest.fixture(scope="module")
def model() -> Watched:
    found = tiny_model(3).requires_grad_(requires_grad=False)
    found.norm.weight.mul_(2)  # surer of itself than a random model, or no argmax would ever stand still
    return found


@pytest.fixture(scope="module")
def batch() -> Batch:
    return cut(SAMPLES, 0)


def encode(model: Watched, batch: Batch) -> Contexts:
    """As a training step does: the answers too, which the canvases must not see."""
    kv = RecordedKV()
    model.encode(batch.ids, kv)
    return Contexts(kv, batch.context)


def pins_of(batch: Batch) -> Pins:
    return Pins(batch.pinned, batch.block)


def trace_of(model: Watched, batch: Batch, seed: int = 0) -> Trace:
    generator = Generator().manual_seed(seed)
    return roll_out(model, encode(model, batch), SAMPLER, pins_of(batch), generator=generator)


def visited_by(model: Watched, batch: Batch, kept: int, seed: int = 0, budget: int = 9) -> States:
    sampler = replace(SAMPLER, budget=budget)
    generator = Generator().manual_seed(seed)
    return visit_states(model, encode(model, batch), sampler, pins_of(batch), kept=kept, generator=generator).states


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("row", range(ROWS))
@pytest.mark.parametrize("given", [[], [0, WIDTH - 1]], ids=["open", "pinned"])
def test_the_states_of_a_canvas_are_those_that_inference_meets(
    model: Watched, batch: Batch, row: int, seed: int, given: list[int]
) -> None:
    pinned = torch.zeros_like(batch.pinned)
    pinned[row, given] = True
    batch = batch._replace(pinned=pinned)
    pins = Pins(pinned[row], batch.block[row])
    trace, prompt = trace_of(model, batch, seed), SAMPLES[row].prompt
    kv = model.new_kv(1, len(prompt) + WIDTH)
    model.encode(torch.tensor([prompt]), kv)
    model.fed = []
    states = list(settle_canvas(model, kv, SAMPLER, redraw(seed, row), pins, LIMITS))
    life = int(trace.live[:, row].sum())
    assert trace.live[:, row].tolist() == [step < life for step in range(len(trace.live))]
    assert [state.done.item() for state in states] == [step + 1 == life for step in range(life)]
    assert len(model.fed) == life
    assert torch.equal(states[-1].output[0], trace.ended[row])
    for step, fed in enumerate(model.fed):
        assert torch.equal(fed.ids[0], trace.ids[step, row])
        soft = torch.zeros(1, WIDTH, 16, dtype=torch.float64) if fed.soft is None else fed.soft
        assert (soft[0] - trace.soft[step, row]).abs().max() < 1e-10
    for step, state in enumerate(states[:-1]):
        assert torch.equal(state.canvas[0], trace.ids[step + 1, row])


def test_these_canvases_end_at_different_steps_and_keep_some_of_what_they_hold(model: Watched, batch: Batch) -> None:
    lives = [int(life) for seed in range(3) for life in trace_of(model, batch, seed).live.sum(0)]
    assert len(set(lives)) > 2
    assert min(lives) < SAMPLER.budget
    trace = trace_of(model, batch)
    assert (trace.ids[1:] == trace.ids[:-1]).any()
    assert (trace.ids[1:] != trace.ids[:-1]).any()


def test_the_first_step_is_noise_with_a_soft_embedding_of_exactly_zero(model: Watched, batch: Batch) -> None:
    trace = trace_of(model, batch)
    assert not trace.soft[0].any()
    assert trace.soft[1].any(-1).all()
    noise = torch.randint(VOCABULARY, (ROWS, WIDTH), generator=Generator().manual_seed(0))
    assert torch.equal(trace.ids[0], noise)


@pytest.mark.parametrize("seed", range(6))
def test_only_live_states_of_the_canvas_itself_are_kept(model: Watched, batch: Batch, seed: int) -> None:
    trace, visited = trace_of(model, batch, seed), visited_by(model, batch, 3, seed)
    assert visited.ids.shape == (ROWS * 3, WIDTH)
    for index in range(ROWS * 3):
        row = index // 3
        same = (trace.soft[:, row] == visited.soft[index]).flatten(1).all(1)
        same &= (trace.ids[:, row] == visited.ids[index]).all(1)
        assert (same & trace.live[:, row]).any()


def made_up(lives: list[int], steps: int) -> Trace:
    """A trace whose ids tell the step."""
    ids = torch.arange(steps)[:, None, None].expand(steps, len(lives), WIDTH)
    soft = torch.zeros(steps, len(lives), WIDTH, 16)
    return Trace(ids, soft, torch.arange(steps)[:, None] < torch.tensor(lives), ids[0])


def kept_steps(model: Watched, kept: int, seed: int) -> list[list[int]]:
    """The steps that are kept of each canvas of a made-up trace."""
    nothing, generator = Contexts(RecordedKV(), torch.zeros(0)), Generator().manual_seed(seed)
    visited = visit_states(model, nothing, SAMPLER, no_pins(WIDTH), kept=kept, generator=generator)
    return visited.states.ids[:, 0].view(-1, kept).tolist()


def test_live_states_are_chosen_evenly_and_none_twice(model: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onpolicy, "roll_out", lambda *_, **__: made_up([5, 1, 2, 3], steps=5))
    chosen = [kept_steps(model, 2, seed) for seed in range(500)]
    counts = Counter(step for steps in chosen for step in steps[0])
    assert sorted(counts) == [0, 1, 2, 3, 4]
    assert all(160 < count < 240 for count in counts.values())
    assert all(first != second for steps in chosen for first, second in (steps[0], steps[2], steps[3]))
    assert {step for steps in chosen for step in steps[3]} == {0, 1, 2}


def test_a_canvas_with_too_few_live_states_is_filled_up_with_them(
    model: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onpolicy, "roll_out", lambda *_, **__: made_up([1, 2], steps=2))
    for seed in range(20):
        alone, pair = kept_steps(model, 3, seed)
        assert alone == [0, 0, 0]
        assert sorted(set(pair)) == [0, 1]


def test_a_rollout_keeps_no_graph(batch: Batch) -> None:
    learning = tiny_model(3)
    assert learning.embed_tokens.weight.requires_grad
    assert not trace_of(learning, batch).soft.requires_grad
