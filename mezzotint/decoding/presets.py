"""Named bundles of a decoder, a step budget and a gate: how long a request may take for a better answer."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mezzotint.decoding.params import SamplingParams

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "fast": MappingProxyType({"decoder": "diffusion", "sampler": "report", "steps": 4, "gate": "off"}),
        "balanced": MappingProxyType({"decoder": "diffusion", "sampler": "report", "steps": 16, "gate": "text"}),
        "best": MappingProxyType({"decoder": "diffusion", "sampler": "report", "steps": 32, "gate": "causal"}),
    }
)


def preset(name: str, **options: Any) -> SamplingParams:
    """The params of a preset, with what else a request asks.

    fast: few steps, and what they give leaves. balanced: more, and a block that alarms is mended, at last by `ar`.
    best: more again, weighed by the causal pass too, and mended at last by rounds of `verified`.
    Raises: ValueError for a name that is none, for an option that the preset decides otherwise, or as SamplingParams.
    """
    if name not in PRESETS:
        raise ValueError(f"preset is {name!r}; choose one of {', '.join(PRESETS)}")
    bundle = PRESETS[name]
    for option, decided in bundle.items():
        if options.get(option, decided) != decided:
            told = f"{option} is {options[option]!r}, but preset {name!r} decides it as {decided!r}"
            raise ValueError(f"{told}; leave out one of the two")
    return SamplingParams(**{**options, **bundle})
