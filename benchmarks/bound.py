"""What a step must at least do, counted from the config, and how soon the ceilings would have it done."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.ceilings import Ceilings
from mezzotint.model.config import LayerShape, ModelConfig

Part = Literal["projections", "attention", "experts", "element-wise", "vocabulary products", "vocabulary element-wise"]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Work of one part: FLOP of its products, bytes read at least once, and elements by function."""

    flop: int = 0
    bytes: int = 0
    elements: Mapping[str, int] = field(default_factory=dict)

    def bound_s(self, ceilings: Ceilings) -> float:
        """The longest of what products, memory and functions need by themselves, in seconds."""
        functions = sum(count / ceilings.elements_per_s[name] for name, count in self.elements.items())
        return max(self.flop / ceilings.flop_per_s, self.bytes / ceilings.bytes_per_s, functions)


Costs = dict[Part, Cost]


def denoise_cost(config: ModelConfig, context: int, itemsize: int) -> Costs:
    """A denoising step with self-conditioning behind `context` tokens, one row, weights of `itemsize` bytes.

    The vocabulary is multiplied twice, head and soft embedding, and its table read once: a chunk serves both.
    """
    scores, width = config.canvas_length * config.vocab_size, config.hidden_size
    functions = {"exp2": scores} | ({"sigmoid": scores} if config.softcap else {})
    return {
        **_layers_cost(config, config.canvas_length, context, itemsize, denoising=True),
        "vocabulary products": Cost(flop=4 * scores * width, bytes=config.vocab_size * width * itemsize),
        "vocabulary element-wise": Cost(elements=functions),
    }


def token_cost(config: ModelConfig, context: int, itemsize: int) -> Costs:
    """A greedy autoregressive step behind `context` tokens, one row, weights of `itemsize` bytes."""
    table = config.vocab_size * config.hidden_size
    return {
        **_layers_cost(config, 1, context, itemsize, denoising=False),
        "vocabulary products": Cost(flop=2 * table, bytes=table * itemsize),
        "vocabulary element-wise": Cost(elements={"sigmoid": config.vocab_size} if config.softcap else {}),
    }


def working_set_bytes(costs: Costs) -> int:
    """Bytes that all parts together read at least once."""
    return sum(cost.bytes for cost in costs.values())


def _layers_cost(config: ModelConfig, tokens: int, context: int, itemsize: int, *, denoising: bool) -> Costs:
    width, layers = config.hidden_size, len(config.layers)
    mlps = layers + 1 if denoising else layers  # self-conditioning has one more
    weights = sum(_attention_weights(config, layer) for layer in config.layers)
    weights += mlps * 3 * width * config.intermediate_size
    return {
        "projections": Cost(flop=2 * tokens * weights, bytes=weights * itemsize),
        "attention": _attention_cost(config, tokens, context, itemsize, denoising=denoising),
        "experts": _experts_cost(config, tokens, itemsize),
        "element-wise": Cost(elements={"gelu": mlps * tokens * config.intermediate_size}),
    }


def _attention_weights(config: ModelConfig, layer: LayerShape) -> int:
    heads = 2 * config.num_heads + layer.kv_heads * (1 if layer.shares_kv else 2)
    return heads * layer.head_dim * config.hidden_size


def _attention_cost(config: ModelConfig, tokens: int, context: int, itemsize: int, *, denoising: bool) -> Cost:
    flop = read = scores = 0
    near = config.sliding_window - 1  # context tokens that a sliding layer shows to a canvas, or to one token
    for layer in config.layers:
        keys = tokens + (min(context, near) if layer.kind == "sliding_attention" else context)
        scores += tokens * keys * config.num_heads
        flop += 4 * tokens * keys * config.num_heads * layer.head_dim
        read += 2 * keys * layer.kv_heads * layer.head_dim * itemsize
    return Cost(flop=flop, bytes=read, elements={"exp": scores})


def _experts_cost(config: ModelConfig, tokens: int, itemsize: int) -> Cost:
    layers, visits = len(config.layers), tokens * config.top_k_experts
    expert = 3 * config.hidden_size * config.moe_intermediate_size
    router = config.hidden_size * config.num_experts
    return Cost(
        flop=layers * 2 * (visits * expert + tokens * router),
        bytes=layers * (min(config.num_experts, visits) * expert + router) * itemsize,
        elements={"gelu": layers * visits * config.moe_intermediate_size},
    )
