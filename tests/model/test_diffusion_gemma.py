"""What the network makes of its arguments; what it computes is held to the reference in tests/contract."""

import torch
from torch import Tensor

from mezzotint.model.attention import ContextMixer
from mezzotint.model.config import parse_config
from mezzotint.model.layers import Angles
from mezzotint.model.memory import outline
from tests.model.checkpoints import RAW


@torch.inference_mode()
def test_lengths_named_on_the_host_follow_the_model_to_its_device() -> None:
    model = outline(parse_config(RAW))
    devices: set[str] = set()

    def run(x: Tensor, angles: Angles, mix: ContextMixer, *, denoising: bool) -> Tensor:
        assert mix.view.mask is not None
        devices.update(tensor.device.type for tensor in (mix.view.mask, *angles))
        return x

    model.runners = [run] * len(model.layers)
    model.denoise(torch.zeros(2, 4, dtype=torch.int64), model.new_kv(2, 12), lengths=torch.tensor([3, 5]))
    assert devices == {"meta"}
