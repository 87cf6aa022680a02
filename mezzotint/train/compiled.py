"""Fused element-wise passes for training, where they pay; inference uses none, for they round differently."""

import torch

from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.layers import MLP, RMSNorm


def compile_parts(model: DiffusionGemma) -> None:
    """Compile norms and gated MLPs in place: a quarter of a step saved, for half a minute at the start.

    Whole layers are left alone: their sort by expert breaks the graph, and compiling them takes many minutes.
    """
    torch._dynamo.config.cache_size_limit = max(64, torch._dynamo.config.cache_size_limit)
    for module in model.modules():
        if isinstance(module, RMSNorm | MLP):
            module.compile(dynamic=True)
