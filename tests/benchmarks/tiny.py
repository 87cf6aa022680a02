"""The smallest model that the benchmarks can measure; no test lives here."""

from dataclasses import replace

from benchmarks.subjects import large_config

_LARGE = large_config()
CONFIG = replace(
    _LARGE,
    vocab_size=128,
    hidden_size=32,
    intermediate_size=48,
    layers=(_LARGE.layers[0]._replace(head_dim=16), _LARGE.layers[-1]._replace(head_dim=16)),
    sliding_window=16,
    num_experts=4,
    moe_intermediate_size=24,
    max_positions=512,
    canvas_length=8,
)
