"""A variant is trained as `mezzotint train` does it, for as long as it is told, and scored on what it never saw."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from benchmarks import learning
from benchmarks.held_out import NOISE, corrupt_to, held_out_losses
from benchmarks.learning import AdamWState, Learned, learn, make_deaf, take_step
from benchmarks.variants import SHAPES, VARIANTS, Variant
from mezzotint.tasks import FAMILIES
from mezzotint.train.config import TrainConfig
from mezzotint.train.context import RecordedKV
from mezzotint.train.data import collate, training_batches
from mezzotint.train.loop import train
from mezzotint.train.state import TrainState
from tests.train.tiny import END, OPEN, PAD, VOCABULARY, WIDTH, spell, tiny_model

CHANGES: dict[str, Any] = {
    "steps": 100,
    "examples": 2,
    "widths": (4, 6),
    "mixture": {"parallel_rule": 0.5, "sequential_rule": 0.5},
    "on_policy": 0.5,
    "on_policy_budgets": (2, 3),
    "warmup": 3,
}
VARIANT = Variant(name="tiny", says="", start="nothing", seconds=5.0, changes=CHANGES)


def ticks() -> Callable[[], float]:
    """A clock that is a second later each time it is asked."""
    seconds = count()
    return lambda: float(next(seconds))


def run(variant: Variant = VARIANT, seconds: float = 5.0) -> Learned:
    return learn(tiny_model(dtype=torch.float32), variant, spell, seconds, clock=ticks())


def weights(state: TrainState[Any]) -> torch.Tensor:
    return torch.cat([value.flatten() for value in state.masters.values()])


def test_a_step_is_that_of_the_training_loop_to_the_bit(tmp_path: Path) -> None:
    config = replace(VARIANT.config, steps=6)
    straight = train(tiny_model(dtype=torch.float32), config, spell, tmp_path, lambda entry: None)
    state = TrainState(tiny_model(dtype=torch.float32), config)
    for batch in islice(training_batches(config, spell, 0, pad_id=PAD, fill_id=END), config.steps):
        take_step(state, batch)
    assert torch.equal(weights(state), weights(straight))
    assert state.causal_loss == straight.causal_loss


def test_a_run_ends_with_its_time_and_what_was_compiled_before_left_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = run()
    assert learned.state.step == 4  # a look at the clock before each, and one at the start
    assert learned.seconds == 5
    monkeypatch.setattr(learning, "_compile", lambda *given: None)
    assert torch.equal(weights(run().state), weights(learned.state))


def test_a_run_ends_once_it_has_learnt() -> None:
    learned = run(replace(VARIANT, until_loss=0.99), seconds=50.0)
    assert learned.state.causal_loss >= 0.99
    assert run(replace(VARIANT, until_loss=1.01), seconds=50.0).state.step == 0


def test_a_run_of_no_time_is_its_start() -> None:
    learned = run(seconds=0.0)
    assert (learned.state.step, learned.seconds, learned.curve) == (0, 0.0, [])
    assert torch.equal(weights(learned.state), weights(TrainState(tiny_model(dtype=torch.float32), VARIANT.config)))


def test_the_curve_has_the_means_since_the_last_point(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[learning.Point] = []
    monkeypatch.setattr(learning, "_EVERY", 2)
    learned = learn(tiny_model(dtype=torch.float32), VARIANT, spell, 8.0, report=seen.append, clock=ticks())
    monkeypatch.setattr(learning, "_EVERY", 1)
    single = learn(tiny_model(dtype=torch.float32), VARIANT, spell, 8.0, clock=ticks())
    assert seen == learned.curve
    assert [point.step for point in learned.curve] == [2, 4]
    first = [sum(point[index] for point in single.curve[:2]) / 2 for index in (2, 3)]
    assert learned.curve[0][2:] == pytest.approx(first, abs=1e-4)


def test_a_deaf_denoiser_never_learns_to_listen() -> None:
    with pytest.raises(ValueError, match="tiny is deaf; set conditioned and on_policy to 0"):
        replace(VARIANT, deaf=True)
    learned = run(replace(VARIANT, deaf=True, changes=CHANGES | {"conditioned": 0.0, "on_policy": 0.0}))
    model = learned.state.averaged(tiny_model(dtype=torch.float32))
    assert not model.self_conditioning.down_proj.weight.any()
    assert run().state.masters["self_conditioning.down_proj.weight"].any()
    losses = held_out_losses(model, "parallel_rule", spell, 6, width=WIDTH)
    assert losses.heard == pytest.approx(sum(losses.denoise.values()) / len(NOISE), rel=1e-5)
    hearing = held_out_losses(run().state.model, "parallel_rule", spell, 6, width=WIDTH)
    assert hearing.heard != pytest.approx(sum(hearing.denoise.values()) / len(NOISE), rel=1e-5)


def test_adamw_moves_matrices_by_its_own_rule_and_vectors_as_before() -> None:
    """The first step of AdamW is the rate in the gradient's direction, whatever its length."""
    config = TrainConfig(**CHANGES | {"warmup": 0, "matrix_rate": 2.0, "weight_decay": 0.0, "on_policy": 0.0})
    [batch] = islice(training_batches(config, spell, 0, pad_id=PAD, fill_id=END), 1)
    moved = {}
    for kind in (AdamWState, TrainState):
        state = kind(tiny_model(dtype=torch.float32), config)
        before = {name: value.clone() for name, value in state.masters.items()}
        take_step(state, batch)
        moved[kind] = {name: (value - before[name]).abs() for name, value in state.masters.items()}
    matrix, vector = "layers.0.mlp.down_proj.weight", "norm.weight"
    assert moved[AdamWState][matrix].median() == pytest.approx(2e-3, rel=1e-3)
    assert moved[TrainState][matrix].median() != pytest.approx(2e-3, rel=1e-1)
    assert torch.equal(moved[AdamWState][vector], moved[TrainState][vector])


def test_the_causal_loss_is_that_of_held_out_answers_alone() -> None:
    model, n = tiny_model(), 5
    samples = sorted((spell(FAMILIES["parallel_rule"].generate(seed, "test")) for seed in range(n)),
                     key=lambda sample: len(sample.prompt) + len(sample.answer))  # fmt: skip
    errors = []
    with torch.no_grad():
        for sample in samples:
            ids = torch.tensor([sample.prompt + sample.answer])
            logits = model.logits(model.encode(ids[:, :-1], RecordedKV()))[0, len(sample.prompt) - 1 :]
            errors.append(F.cross_entropy(logits, torch.tensor(sample.answer), reduction="none"))
    found = held_out_losses(model, "parallel_rule", spell, n, width=WIDTH)
    assert found.causal == pytest.approx(float(torch.cat(errors).mean()), rel=1e-6)
    assert found == held_out_losses(model, "parallel_rule", spell, n, width=WIDTH)


def test_a_canvas_is_replaced_by_its_share_and_every_share_has_its_loss() -> None:
    samples = [spell(FAMILIES["parallel_rule"].generate(seed, "test")) for seed in range(40)]
    batch = collate(samples, OPEN, 50, 0, pad_id=PAD, fill_id=END)
    for share in (0.0, *NOISE):
        canvases = corrupt_to(batch, share, VOCABULARY, 0)
        kept = float((canvases.ids == batch.block).double().mean())
        assert kept == pytest.approx(1 - share + share / VOCABULARY, abs=0.03)
        assert canvases.noise.tolist() == [pytest.approx(share)] * 40
    assert list(held_out_losses(tiny_model(), "parallel_rule", spell, 3, width=WIDTH).denoise) == [
        str(t) for t in NOISE
    ]


def test_runs_of_one_start_differ_in_what_they_say_and_nothing_else() -> None:
    names = [variant.name for variant in VARIANTS]
    assert len(set(names)) == len(names)
    usual = {variant.start: variant.config for variant in VARIANTS if not variant.changes}
    assert set(usual) == {"nothing", "copying", "lab", *SHAPES}
    for variant in VARIANTS:
        assert replace(usual[variant.start], **variant.changes) == variant.config
    deaf = [variant for variant in VARIANTS if variant.deaf]
    assert [variant.config.conditioned for variant in deaf] == [0.0]


def test_steps_of_more_canvases_have_as_many_tokens() -> None:
    by_canvases = {
        v.config.canvases: v.config for v in VARIANTS if v.name in ("as it is", "one canvas", "four canvases")
    }
    tokens = {k: config.examples * (140 + 48 * k) for k, config in by_canvases.items()}
    assert set(tokens) == {1, 2, 4}
    assert max(tokens.values()) <= 1.01 * min(tokens.values())


def test_the_deaf_are_told_by_one_matrix() -> None:
    model = tiny_model()
    make_deaf(model)
    canvas, soft = torch.randn(1, WIDTH, 16).double(), torch.randn(1, WIDTH, 16).double()
    assert torch.equal(model.condition(canvas, soft), model.condition(canvas, None))
