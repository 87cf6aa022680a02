"""What each operator of a forward reads, multiplies and launches, counted from the config; seconds are for roofline.

Kernels are counted by hand: one a product and one that quantises its input where weights are not bf16, and one for
each chain of element-wise work that a compiler would fuse.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

from mezzotint.bench.accelerators import Accelerator
from mezzotint.bench.footprint import (
    BF16,
    PRECISIONS,
    DrafterShape,
    Precision,
    attention_columns,
    expert_parameters,
    kv_bytes,
)
from mezzotint.bench.roofline import TILE, Work, filled
from mezzotint.model.config import LayerShape, ModelConfig

Operator = Literal["experts", "sampling", "attention", "mlp", "projections", "norm_route", "rest", "drafter"]

_EXPERT_KERNELS = 3  # sort by expert, gelu, weighted sum
_ATTENTION_KERNELS = 4  # norm and rotation, write keys and values, attend, merge
_SAMPLING_KERNELS = 4  # besides the head: softcap, normalise, draw, accept
_CONDITIONING_KERNELS = 4  # embed, norm, gelu, norm
_DRAFTER_KERNELS = 8  # a layer: four norms, rotation, attend, merge, gelu


class Forward(NamedTuple):
    """One forward over `rows` requests of `tokens` tokens each behind `context` tokens.

    sampled: positions of a row whose logits are read. denoises: bidirectional, with the next step's soft embedding.
    """

    rows: int
    tokens: int
    context: float
    sampled: int = 0
    denoises: bool = False


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What runs where. expert_pool: share of a layer's experts that the tokens of one request ever visit."""

    config: ModelConfig
    precision: Precision
    accelerator: Accelerator
    expert_pool: float = 1.0


def expected_experts(config: ModelConfig, rows: int, tokens: int, pool: float) -> float:
    """Experts of a layer that a batch reads: each request draws a pool of its own, its tokens choose within that.

    With the published 84 of 128 as a canvas's pool, 1 token reads 8, a canvas of 256 84, and 16 canvases all.
    """
    own = max(config.top_k_experts, pool * config.num_experts)
    read = own * (1 - (1 - config.top_k_experts / own) ** tokens)
    return config.num_experts * (1 - (1 - read / config.num_experts) ** rows)


def operators(setting: Setting, forward: Forward) -> Mapping[Operator, list[Work]]:
    """The work of one forward by operator. Source: the network's shapes, and contract 4 for what a step samples."""
    work: dict[Operator, list[Work]] = {
        "attention": _attention(setting, forward),
        "mlp": _mlp(setting, forward),
        "projections": _projections(setting, forward),
        "norm_route": [_norms(setting.config, forward)],
        "rest": _rest(setting, forward),
    }
    if setting.config.num_experts:
        work["experts"] = _experts(setting, forward)
    if forward.sampled:
        work["sampling"] = _sampling(setting, forward)
    return work


def draft(setting: Setting, drafter: DrafterShape, rows: int, context: float) -> list[Work]:
    """The work of one guess of a drafter for each of `rows` requests; it reads the model's keys and values."""
    device, D, F = setting.accelerator, drafter.hidden_size, drafter.intermediate_size
    shapes = [(2 * drafter.target_width, D), (D, drafter.target_width), (D, drafter.scored)]
    for layer in drafter.layers:
        queries = drafter.num_heads * layer.head_dim
        shapes += [(D, queries), (queries, D), (D, 2 * F), (F, D)]
    read = rows * kv_bytes(drafter.layers, drafter.sliding_window, context)
    return [
        *(_product(rows, inner, columns, PRECISIONS["bf16"], device) for inner, columns in shapes),
        Work(bytes=read, kernels=_DRAFTER_KERNELS * len(drafter.layers)),
    ]


def _product(rows: int, inner: int, columns: int, precision: Precision, device: Accelerator, *, times: int = 1) -> Work:
    launches = 1 if precision.arithmetic == "bf16" else 2
    return Work(
        bytes=times * inner * columns * precision.bytes,
        flop=times * 2.0 * rows * inner * columns,
        arithmetic=precision.arithmetic,
        filled=filled(rows, columns, device),
        kernels=times * launches,
    )


def _experts(setting: Setting, forward: Forward) -> list[Work]:
    config, precision, device = setting.config, setting.precision, setting.accelerator
    layers, visits = len(config.layers), forward.rows * forward.tokens * config.top_k_experts
    read = expected_experts(config, forward.rows, forward.tokens, setting.expert_pool)
    launches = 1 if precision.arithmetic == "bf16" else 2
    parts = []
    for share, columns in ((2 / 3, 2 * config.moe_intermediate_size), (1 / 3, config.hidden_size)):
        weights = share * expert_parameters(config)
        parts.append(
            Work(
                bytes=layers * read * weights * precision.bytes,
                flop=layers * 2.0 * visits * weights,
                arithmetic=precision.arithmetic,
                filled=filled(visits / read, columns, device, matrices=read),
                kernels=layers * launches,
            )
        )
    return [*parts, Work(kernels=layers * _EXPERT_KERNELS)]


def _mlp(setting: Setting, forward: Forward) -> list[Work]:
    config, device, layers = setting.config, setting.accelerator, len(setting.config.layers)
    rows, D, F = forward.rows * forward.tokens, config.hidden_size, config.intermediate_size
    return [
        _product(rows, D, 2 * F, setting.precision, device, times=layers),
        _product(rows, F, D, setting.precision, device, times=layers),
        Work(kernels=layers),
    ]


def _projections(setting: Setting, forward: Forward) -> list[Work]:
    config, device, rows = setting.config, setting.accelerator, forward.rows * forward.tokens
    work = []
    for layer, count in Counter(config.layers).items():
        columns, heads = attention_columns(config, layer), config.num_heads * layer.head_dim
        work.append(_product(rows, config.hidden_size, columns, setting.precision, device, times=count))
        work.append(_product(rows, heads, config.hidden_size, setting.precision, device, times=count))
    return work


def _attention(setting: Setting, forward: Forward) -> list[Work]:
    config = setting.config
    work = [Work(kernels=len(config.layers) * _ATTENTION_KERNELS)]
    for layer, count in Counter(config.layers).items():
        near = config.sliding_window if layer.kind == "sliding_attention" else forward.context
        own = forward.tokens if forward.denoises else (forward.tokens + 1) / 2  # of its own tokens, what a query sees
        keys = min(forward.context, near) + own
        work.append(
            Work(
                bytes=count * forward.rows * kv_bytes([layer], config.sliding_window, forward.context),
                flop=count * 4.0 * forward.rows * forward.tokens * keys * config.num_heads * layer.head_dim,
                filled=_filled_by_queries(setting, forward, layer),
                attends=True,
            )
        )
    return work


def _filled_by_queries(setting: Setting, forward: Forward, layer: LayerShape) -> float:
    """Heads that share keys share a tile; where one tile holds all of a request's queries, its keys are split."""
    device = setting.accelerator
    queries = forward.tokens * setting.config.num_heads // layer.kv_heads
    tiles = dealt = forward.rows * layer.kv_heads * ceil(queries / device.query_tile)
    if device.units is not None and queries > device.query_tile:
        dealt = ceil(tiles / device.units) * device.units
    return forward.rows * layer.kv_heads * queries / (dealt * device.query_tile)


def _sampling(setting: Setting, forward: Forward) -> list[Work]:
    config, device = setting.config, setting.accelerator
    read = forward.rows * forward.sampled
    table = config.vocab_size * config.hidden_size
    head = _product(read, config.hidden_size, config.vocab_size, PRECISIONS["bf16"], device)
    logits = Work(kernels=_SAMPLING_KERNELS, logit_bytes=4.0 * read * config.vocab_size)
    if not forward.denoises:
        return [head, logits]
    share = filled(read, min(TILE, config.hidden_size), device, splits=True)
    return [head, logits, Work(bytes=table * BF16, flop=2.0 * read * table, filled=share, kernels=1)]


def _norms(config: ModelConfig, forward: Forward) -> Work:
    """Norms around both halves of a layer, residual sums and the router.

    With experts an activation is read or written 17 times: after attention 3, before the MLP, the router and the
    experts 2 each, after the MLP and the experts 2 each, and 4 to add them up. Without, 3, 2 and 3.
    """
    passes, kernels = (17, 5) if config.num_experts else (8, 3)
    activation = forward.rows * forward.tokens * config.hidden_size * BF16
    router = config.hidden_size * config.num_experts * BF16
    return Work(bytes=len(config.layers) * (passes * activation + router), kernels=len(config.layers) * kernels)


def _rest(setting: Setting, forward: Forward) -> list[Work]:
    """The norm before attention; in a denoising step self-conditioning too, which stays bf16."""
    config, rows = setting.config, forward.rows * forward.tokens
    layers, D, F = len(config.layers), config.hidden_size, config.intermediate_size
    norms = Work(bytes=layers * 2 * rows * D * BF16, kernels=layers)
    if not forward.denoises:
        return [norms]
    up, down = ((D, 2 * F), (F, D))
    products = [_product(rows, *shape, PRECISIONS["bf16"], setting.accelerator) for shape in (up, down)]
    return [norms, *products, Work(kernels=_CONDITIONING_KERNELS)]
