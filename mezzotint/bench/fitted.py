"""The fitted efficiencies: how much of a device's stated figures is reached; a test holds each to what its fit gives.

`python -m benchmarks.roofline` prints both fits, and what they predict of measurements that no fit has seen.
"""

from collections.abc import Mapping
from types import MappingProxyType

from mezzotint.bench.roofline import Efficiency

EFFICIENCIES: Mapping[str, Efficiency] = MappingProxyType(
    {
        # On published.OPERATORS_MS and HOST_MS: vLLM's operators on one H100 in FP8, batch 1.
        "h100": Efficiency(
            bandwidth=0.974, products=0.644, attention=0.479, kernel_us=3.06, logit_passes=22.5, host_ms=0.93
        ),
        # On every second point of benchmarks/roofline_lab.json: lab on one core, as machine code.
        "cpu": Efficiency(
            bandwidth=1.45, products=0.814, attention=0.607, kernel_us=0.674, logit_passes=106.0, host_ms=0.0001
        ),
    }
)
