"""Published measurements of the 26B model that the plan is fitted on or held to; nothing of our own stands here.

Source: the technical report, arXiv 2608.00146, and vLLM's note, https://vllm.ai/blog/2026-06-10-diffusion-gemma.
Figures that the report only draws were read off, to about 5 %.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from mezzotint.bench.operators import Operator

CONTEXT, OUTPUT = 4096, 1024  # tokens of the report's measurements


class Both(NamedTuple):
    """A time of an autoregressive step and of a denoising step, in ms."""

    ar: float
    diffusion: float


# One request on an H100 in FP8: what each operator takes in a step. The only figures that constants are fitted on.
OPERATORS_MS: Mapping[Operator, Both] = MappingProxyType(
    {
        "experts": Both(1.08, 4.66),
        "sampling": Both(0.56, 3.06),
        "attention": Both(0.45, 1.84),
        "mlp": Both(0.74, 1.12),
        "projections": Both(0.61, 1.06),
        "norm_route": Both(0.46, 0.64),
    }
)
DEVICE_MS = Both(4.01, 12.63)  # the whole step on the device, the rest of it included
HOST_MS = 13.56 - 12.63  # what a denoising step takes from end to end more than on the device

# Output tokens/s of all requests together, by how many there are at once; H100, FP8, prefill left out.
DIFFUSION_TOKENS_PER_FORWARD = 16.0
DIFFUSION_TOTAL: Mapping[int, float] = MappingProxyType({1: 1300, 2: 1640, 4: 2110, 8: 2540, 16: 2910})
MTP_TOTAL: Mapping[int, float] = MappingProxyType({1: 315, 2: 515, 4: 890, 8: 1465, 16: 2155, 32: 2700, 64: 3510})
AR_TOTAL: Mapping[int, float] = MappingProxyType(
    {1: 210, 2: 380, 4: 650, 8: 1070, 16: 1680, 32: 2450, 64: 3550, 128: 4960}
)
DIFFUSION_OVER_MTP: Mapping[int, float] = MappingProxyType({1: 4.11, 2: 3.18, 4: 2.38, 8: 1.73, 16: 1.35, 32: 1.0})
CROSSOVER_WITH_MTP = 32

# vLLM, one request, FP8, by accelerator.
VLLM_AR: Mapping[str, float] = MappingProxyType({"h100": 197, "h200": 213})
VLLM_MTP: Mapping[str, float] = MappingProxyType({"h100": 389, "h200": 429})  # 4 drafts, each accepted with 0.8
# Read as each draft's chance once those before it are kept: 3.36 tokens a round. As the mean share of all drafts, which
# vLLM's option of this name also means, it would be 4.2 tokens, and the plan would be 35 and 43 % above these two rows.
VLLM_MTP_ACCEPTANCE = 0.8
VLLM_DIFFUSION: Mapping[str, float] = MappingProxyType({"h100": 1008, "h200": 1288})
VLLM_STEPS = 16
