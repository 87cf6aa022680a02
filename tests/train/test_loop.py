"""Runs of a tiny model: resumed to the bit, told as they went, and able to learn by heart."""

import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mezzotint.tasks import Example
from mezzotint.train import loop
from mezzotint.train.config import Plan, TrainConfig
from mezzotint.train.data import Sample
from mezzotint.train.loop import train
from mezzotint.train.loss import Canvases, Losses, corrupt, joint_loss
from mezzotint.train.state import TrainState
from tests.train.tiny import SHAPE, draw_samples, spell, tiny_model

CONFIG = TrainConfig(
    seed=1,
    steps=14,
    examples=2,
    widths=(4, 6),
    mixture={"parallel_rule": 0.5, "sequential_rule": 0.5},
    warmup=5,
    easy_until=0.3,
    on_policy=0.5,
    on_policy_from=0.0,
    on_policy_budgets=(2, 3),
    sharpen=0.1,
    log_every=1,
    checkpoint_s=0.0,  # after every step
)

Entry = dict[str, float]


def run(
    folder: Path,
    config: TrainConfig = CONFIG,
    *,
    report: Callable[[Entry], None] = lambda _: None,
    dtype: torch.dtype = torch.float32,
    until_s: float | None = None,
) -> TrainState:
    return train(tiny_model(dtype=dtype), config, spell, folder, report, until_s=until_s)


def without_times(entries: list[Entry]) -> list[Entry]:
    return [{key: value for key, value in entry.items() if key != "elapsed_s"} for entry in entries]


def curve(folder: Path) -> list[Entry]:
    return [json.loads(line) for line in (folder / "curve.jsonl").read_text().splitlines()]


def interrupt_at(step: int) -> Callable[[Entry], None]:
    """A report that breaks off while `step` is told, so that the state before it is the last one saved."""

    def report(entry: Entry) -> None:
        if entry["step"] == step:
            raise KeyboardInterrupt

    return report


# Batches come in pools of eight: a resume at 3 or 10 lies within one, at 8 on its edge.
@pytest.mark.parametrize(("step", "dtype"), [(3, torch.float32), (8, torch.float32), (10, torch.bfloat16)])
def test_an_interrupted_run_goes_on_as_the_straight_one_to_the_bit(
    tmp_path: Path, step: int, dtype: torch.dtype
) -> None:
    straight, entries, resumed = run(tmp_path / "straight", dtype=dtype), curve(tmp_path / "straight"), []
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", report=interrupt_at(step + 1), dtype=dtype)
    state = run(tmp_path / "broken", report=resumed.append, dtype=dtype)
    assert [entry["step"] for entry in resumed] == list(range(step + 1, 15))
    assert without_times(resumed) == without_times(entries)[step:]
    for name, weight in straight.model.state_dict().items():
        assert torch.equal(state.model.state_dict()[name], weight), name
    for name, average in straight.average.items():
        assert torch.equal(state.average[name], average), name
    assert state.causal_loss == straight.causal_loss != 1.0
    assert curve(tmp_path / "broken")[-len(resumed) :] == resumed


def test_the_run_above_meets_every_kind_of_step() -> None:
    plans = [CONFIG.plan(step, 1.0) for step in range(CONFIG.steps)]
    assert {plan.budget for plan in plans[10:]} == {None, 2, 3}
    assert {plan.easy for plan in plans} == {True, False}


def test_every_step_does_what_the_schedule_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    easy: list[bool] = []
    plans: list[Plan] = []
    noises: list[float] = []

    def watch_noise(*args: Any, **kwargs: Any) -> Canvases:
        found = corrupt(*args, **kwargs)
        easy.append(kwargs["easy"])
        noises.append(float(found.noise.sum()))
        return found

    def watch_loss(*args: Any) -> Losses:
        plans.append(args[4])
        return joint_loss(*args)

    monkeypatch.setattr(loop, "corrupt", watch_noise)
    monkeypatch.setattr(loop, "joint_loss", watch_loss)
    run(tmp_path / "one")
    run(tmp_path / "two", replace(CONFIG, seed=2, steps=1))
    assert len(set(noises)) == CONFIG.steps + 1
    del plans[-1], easy[-1]
    assert plans == [CONFIG.plan(step, 1.0) for step in range(CONFIG.steps)]
    assert easy == [plan.easy for plan in plans]


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    config = replace(CONFIG, steps=2)
    run(tmp_path / "one", config)
    run(tmp_path / "two", replace(config, seed=2))
    assert without_times(curve(tmp_path / "one")) != without_times(curve(tmp_path / "two"))


def test_a_curve_holds_the_means_of_its_steps(tmp_path: Path) -> None:
    run(tmp_path / "fine", replace(CONFIG, steps=11))
    told: list[Entry] = []
    run(tmp_path / "coarse", replace(CONFIG, steps=11, log_every=3), report=told.append)
    fine, coarse = curve(tmp_path / "fine"), curve(tmp_path / "coarse")
    assert coarse == told
    assert [(entry["step"], entry["examples"]) for entry in coarse] == [(3, 6), (6, 12), (9, 18)]
    for index, entry in enumerate(coarse):
        for key in ("causal", "denoise", "norm"):
            steps = [step[key] for step in fine[3 * index : 3 * index + 3]]
            assert entry[key] == pytest.approx(sum(steps) / 3, abs=1e-4)
            assert entry[key] > 0


def test_time_that_is_up_ends_a_run_with_its_state_saved(tmp_path: Path) -> None:
    state = run(tmp_path, replace(CONFIG, steps=10**6, log_every=10**6), until_s=0.2)
    assert 0 < state.step < 10**6
    assert torch.load(tmp_path / "state.pt")["step"] == state.step


def test_a_run_that_is_over_only_hands_out_its_state(tmp_path: Path) -> None:
    config = replace(CONFIG, steps=3)
    first, again = run(tmp_path, config), run(tmp_path, config)
    assert again.step == 3
    assert torch.equal(again.masters["norm.weight"], first.masters["norm.weight"])
    assert len(curve(tmp_path)) == 3


def test_the_state_is_saved_no_oftener_than_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    monkeypatch.setattr(TrainState, "save", lambda self, path: saved.append(self.step))
    run(tmp_path, replace(CONFIG, steps=4))
    run(tmp_path, replace(CONFIG, steps=4, checkpoint_s=3600.0))
    assert saved == [1, 2, 3, 4, 4, 4]


def test_a_step_that_blows_up_is_told_and_leaves_no_trace_in_the_run(tmp_path: Path) -> None:
    def scare(entry: Entry) -> None:
        broken.layers[0].mlp.up_proj.weight.data[0, 0] = torch.nan if entry["step"] == 1 else 0.1

    broken, config = tiny_model(dtype=torch.float32), replace(CONFIG, steps=2, on_policy=0.0, sharpen=0.0)
    state = train(broken, config, spell, tmp_path, scare)
    entries = curve(tmp_path)
    assert entries[0]["causal"] > 0
    assert entries[1]["causal"] != entries[1]["causal"]  # nan
    assert state.causal_loss == pytest.approx(0.98 + 0.02 * entries[0]["causal"], abs=1e-4)
    assert all(master.isfinite().all() for master in state.masters.values())


def test_a_few_examples_are_learnt_by_heart_by_both_halves(tmp_path: Path) -> None:
    samples = draw_samples((6, 6), (6, 6), (5, 5), (7, 6))

    def by_heart(example: Example) -> Sample:
        return samples[zlib.crc32(example.answer.encode()) % 4]

    config = TrainConfig(
        steps=150,
        examples=4,
        canvases=4,
        widths=(6,),
        mixture=CONFIG.mixture,
        warmup=10,
        peak_rate=2e-2,
        ema=0.9,
        prompt_weight=0.0,
        log_every=15,
    )
    small = replace(SHAPE, layers=SHAPE.layers[:2])
    train(tiny_model(dtype=torch.float32, shape=small), config, by_heart, tmp_path, lambda _: None)
    first, last = curve(tmp_path)[0], curve(tmp_path)[-1]
    assert min(first["causal"], first["denoise"]) > 1.0
    assert max(last["causal"], last["denoise"]) < 0.1
