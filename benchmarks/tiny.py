"""The smallest model that the soak serves, and a drafter for any model; weights are random, and nothing is measured."""

from dataclasses import replace

import torch

from benchmarks.subjects import large_config
from mezzotint.model.assistant import Assistant, AssistantNetwork
from mezzotint.model.assistant_config import AssistantConfig
from mezzotint.model.config import LayerKind, LayerShape
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.train.lab import initialise


def tiny_model() -> DiffusionGemma:
    """Random weights in float64, in which every answer is exactly its plain loop's."""
    shape = large_config()
    config = replace(
        shape,
        vocab_size=512,
        hidden_size=32,
        intermediate_size=32,
        layers=(shape.layers[0]._replace(head_dim=16), shape.layers[-1]._replace(head_dim=16)),
        sliding_window=24,
        num_experts=4,
        moe_intermediate_size=16,
        max_positions=256,
        canvas_length=16,
    )
    return initialise(DiffusionGemma(config), 0).double()


def random_drafter(target: DiffusionGemma) -> Assistant:
    """A drafter that guesses at random from what it reads, so that most of its guesses are taken back."""
    config = target.config
    last: dict[LayerKind, LayerShape] = {shape.kind: shape for shape in config.layers}
    network = AssistantNetwork(
        AssistantConfig(
            target_width=config.hidden_size,
            vocab_size=config.vocab_size,
            hidden_size=16,
            intermediate_size=16,
            num_heads=config.num_heads,
            layers=tuple(last.values()),
            sliding_window=config.sliding_window,
            rms_norm_eps=config.rms_norm_eps,
            max_positions=config.max_positions,
        )
    )
    generator = torch.Generator().manual_seed(0)
    for tensor in network.state_dict().values():
        tensor.copy_(torch.randn(tensor.shape, generator=generator))
    return Assistant(network.to(target.dtype), target)
