"""Compiled parts change the rounding of a step and nothing else."""

from pathlib import Path
from shutil import which

import pytest
import torch

from mezzotint.train.compiled import compile_parts
from mezzotint.train.config import TrainConfig
from tests.train.tiny import cut, draw_samples, noisy, run, tiny_model


def test_without_a_compiler_the_way_without_one_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = tiny_model()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"the C\+\+ compiler .*, which is not installed; .* add --eager"):
        compile_parts(model)
    assert not [module for module in model.modules() if module._compiled_call_impl is not None]


@pytest.mark.slow
@pytest.mark.skipif(not (which("c++") or which("g++")), reason="torch compiles with a C++ compiler, and there is none")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # torch looks by itself
def test_losses_and_gradients_are_those_of_the_plain_model() -> None:
    config = TrainConfig(canvases=2, conditioned=1.0)
    plain, compiled = (tiny_model(dtype=torch.float32) for _ in range(2))
    compile_parts(compiled)
    assert compiled.state_dict().keys() == plain.state_dict().keys()
    for block in (0, 1):  # other shapes the second time
        batch = cut(draw_samples((7, 8), (9, 8 + block)), block)
        canvases = noisy(batch, config)
        ours, theirs = run(compiled, batch, canvases, config), run(plain, batch, canvases, config)
        assert (ours.canvases - theirs.canvases).abs().max() < 1e-4
        assert float(ours.losses.causal) == pytest.approx(float(theirs.losses.causal), abs=1e-5)
        assert float(ours.losses.denoise) == pytest.approx(float(theirs.losses.denoise), abs=1e-5)
        for model, found in ((compiled, ours), (plain, theirs)):
            model.zero_grad()
            found.losses.total.backward()
        for (name, mine), its in zip(compiled.named_parameters(), plain.parameters(), strict=True):
            assert mine.grad is not None, name
            assert its.grad is not None, name
            assert (mine.grad - its.grad).abs().max() < 1e-4 * (1 + its.grad.abs().max()), name
