"""One update against optimisers written out beside it, and a state's way through a file."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Generator, Tensor

from mezzotint.train.config import TrainConfig
from mezzotint.train.state import TrainState
from tests.train.tiny import SHAPE, Watched, tiny_model

CONFIG = TrainConfig(warmup=0, final_share=1.0, peak_rate=1e-2, matrix_rate=3.0, weight_decay=0.1, clip=0.5)
EXPERTS = "layers.1.experts.down_proj"
TABLE = "embed_tokens.weight"


def begin(dtype: torch.dtype = torch.float32, config: TrainConfig = CONFIG) -> TrainState:
    return TrainState(tiny_model(dtype=dtype), config)


def give_gradients(state: TrainState, seed: int, size: float = 1.0) -> dict[str, Tensor]:
    """Put random gradients into the model; returns what clipping leaves of them, in float32."""
    generator = Generator().manual_seed(seed)
    for parameter in state.model.parameters():
        parameter.grad = size * torch.randn(parameter.shape, generator=generator).to(parameter.dtype)
    given = {
        name: parameter.grad.float().clone()
        for name, parameter in state.model.named_parameters()
        if parameter.grad is not None
    }
    norm = torch.cat([gradient.flatten() for gradient in given.values()]).norm()
    return {name: gradient * min(1.0, CONFIG.clip / float(norm)) for name, gradient in given.items()}


def muon(matrix: Tensor) -> torch.optim.Optimizer:
    rate = CONFIG.peak_rate * CONFIG.matrix_rate
    return torch.optim.Muon([matrix], lr=rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")


def adamw(tensor: Tensor) -> torch.optim.Optimizer:
    return torch.optim.AdamW([tensor], lr=CONFIG.peak_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)


@pytest.mark.parametrize(
    ("name", "expert", "optimiser"),
    [
        (EXPERTS, 0, muon),
        (EXPERTS, 2, muon),
        ("layers.0.experts.gate_up_proj", 1, muon),
        ("layers.0.self_attn.q_proj.weight", None, muon),
        ("self_conditioning.down_proj.weight", None, muon),
        (TABLE, None, adamw),
        ("layers.2.router.proj.weight", None, adamw),
        ("layers.2.router.per_expert_scale", None, adamw),
        ("norm.weight", None, adamw),
    ],
)
def test_each_weight_moves_as_its_own_optimiser_alone_would_move_it(
    name: str, expert: int | None, optimiser: Callable[[Tensor], torch.optim.Optimizer]
) -> None:
    state = begin()

    def own(weights: dict[str, Tensor]) -> Tensor:
        return weights[name].clone() if expert is None else weights[name][expert].clone()

    alone = own(state.masters)
    before, by_itself = alone.clone(), optimiser(alone)
    for seed in range(3):
        gradients = give_gradients(state, seed)
        state.update()
        alone.grad = own(gradients)
        by_itself.step()
    assert (own(state.masters) - alone).abs().max() < 1e-6
    assert (alone - before).abs().max() > 1e-2
    assert torch.equal(state.model.state_dict()[name], state.masters[name])


def test_each_step_has_the_rate_of_its_number() -> None:
    config = replace(CONFIG, warmup=4, peak_rate=1e-2)
    state, moved = begin(config=config), []
    for _ in range(3):
        before = state.masters[TABLE].clone()
        for parameter in state.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        state.update()
        moved.append(float((state.masters[TABLE] - before).abs().mean()))
    # Under a constant gradient AdamW moves every weight by exactly the rate.
    assert moved == pytest.approx([2.5e-3, 5e-3, 7.5e-3], rel=1e-3)


def test_the_norm_that_is_told_is_the_one_before_clipping() -> None:
    state = begin()
    give_gradients(state, 0, size=2.0)
    squares = [float(p.grad.square().sum()) for p in state.model.parameters() if p.grad is not None]
    assert state.update() == pytest.approx(sum(squares) ** 0.5, rel=1e-5)


def test_gradients_are_used_once() -> None:
    state = begin()
    give_gradients(state, 0)
    state.update()
    assert all(parameter.grad is None for parameter in state.model.parameters())
    assert state.update() == 0.0


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_gradient_that_is_not_finite_moves_neither_weights_nor_momenta(value: float) -> None:
    straight, disturbed = begin(), begin()
    for state in (straight, disturbed):
        give_gradients(state, 0)
        state.update()
    before = {name: weight.clone() for name, weight in disturbed.masters.items()}
    give_gradients(disturbed, 1)
    parameter = disturbed.model.embed_tokens.weight
    assert parameter.grad is not None
    parameter.grad[3, 4] = value
    assert disturbed.update() == pytest.approx(value, nan_ok=True)
    assert disturbed.step == 2
    assert all(torch.equal(disturbed.masters[name], weight) for name, weight in before.items())
    for state in (straight, disturbed):
        give_gradients(state, 2)
        state.update()
    assert all(torch.equal(disturbed.masters[name], straight.masters[name]) for name in before)


def test_masters_add_up_steps_that_are_lost_on_bfloat16() -> None:
    state = begin(torch.bfloat16, replace(CONFIG, peak_rate=1e-5))
    before = state.model.embed_tokens.weight.detach().clone()
    master = state.masters[TABLE].clone()
    for _ in range(3):
        for parameter in state.model.parameters():
            parameter.grad = torch.ones_like(parameter)
        state.update()
    assert (state.masters[TABLE] - master).abs().mean() == pytest.approx(3e-5, rel=1e-2)
    unmoved = state.model.embed_tokens.weight == before
    assert unmoved.double().mean() > 0.9
    assert torch.equal(state.model.embed_tokens.weight, state.masters[TABLE].bfloat16())


@pytest.mark.parametrize("ema", [0.0, 0.3, 0.999])
def test_the_average_forgets_its_start_at_first_and_later_as_asked(ema: float) -> None:
    state = begin(config=replace(CONFIG, ema=ema))
    expected = state.masters[TABLE].clone()
    for step in range(1, 9):
        give_gradients(state, step)
        state.update()
        decay = min(ema, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * state.masters[TABLE]
    assert (state.average[TABLE] - expected).abs().max() < 1e-6
    assert torch.equal(state.average[TABLE], state.masters[TABLE]) == (ema == 0)


def test_the_averaged_model_has_the_averages_and_the_buffers() -> None:
    state = begin()
    state.model.layers[1].encoder_layer_scalar.fill_(0.75)
    give_gradients(state, 0)
    state.update()
    filled = state.averaged(tiny_model(seed=9, dtype=torch.float32))
    weights = filled.state_dict()
    assert all(torch.equal(weights[name], average) for name, average in state.average.items())
    assert float(weights["layers.1.encoder_layer_scalar"]) == 0.75
    assert not torch.equal(weights[TABLE], state.model.state_dict()[TABLE])


def test_a_state_goes_on_from_its_file_as_it_would_have_without(tmp_path: Path) -> None:
    straight = begin(torch.bfloat16)
    for seed in range(3):
        give_gradients(straight, seed)
        straight.update()
    straight.causal_loss = 0.04
    straight.save(tmp_path / "state.pt")
    resumed = TrainState(tiny_model(seed=5, dtype=torch.bfloat16), CONFIG)
    resumed.load(tmp_path / "state.pt")
    assert (resumed.step, resumed.causal_loss) == (3, 0.04)
    for state in (straight, resumed):
        for seed in (3, 4):
            give_gradients(state, seed)
            state.update()
    for name, weight in straight.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], weight), name
    for name, master in straight.masters.items():
        assert torch.equal(resumed.masters[name], master), name
        assert torch.equal(resumed.average[name], straight.average[name]), name


def test_an_interrupted_write_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, file = begin(), tmp_path / "state.pt"
    state.save(file)
    old = file.read_bytes()

    def break_off(_: Any, path: Path) -> None:
        path.write_bytes(old[:100])
        raise OSError("no space left on device")

    give_gradients(state, 0)
    state.update()
    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", break_off)
        with pytest.raises(OSError, match="no space"):
            state.save(file)
    assert file.read_bytes() == old
    state.save(file)
    assert [path.name for path in tmp_path.iterdir()] == ["state.pt"]
    resumed = begin()
    resumed.load(file)
    assert resumed.step == 1


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (
            replace(SHAPE, hidden_size=24),
            r"embed_tokens\.weight has shape \(24, 16\) in the file and \(24, 24\)",
        ),
        (replace(SHAPE, layers=SHAPE.layers[:2]), r"layers\.2\..* in the file and None in the model; start afresh"),
    ],
    ids=["wider", "fewer layers"],
)
def test_the_state_of_another_shape_is_refused(tmp_path: Path, other: Any, told: str) -> None:
    begin().save(tmp_path / "state.pt")
    with pytest.raises(ValueError, match=told):
        TrainState(Watched(other), CONFIG).load(tmp_path / "state.pt")


@pytest.mark.parametrize("kept", [0, 100, -1000])
def test_a_file_that_was_cut_short_is_named_with_its_remedy(tmp_path: Path, kept: int) -> None:
    file = tmp_path / "state.pt"
    begin().save(file)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"state\.pt is damaged and cannot be read; start afresh with --fresh"):
        begin().load(file)


@pytest.mark.parametrize("content", [[1], {"step": 3}])
def test_a_file_of_something_else_is_named_too(tmp_path: Path, content: Any) -> None:
    torch.save(content, tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"state\.pt is no state of a training run; start afresh with --fresh"):
        begin().load(tmp_path / "state.pt")
