"""What a model takes up in memory: weights by precision, keys and values, a canvas's state; nothing is timed here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from mezzotint.bench.accelerators import Accelerator, Arithmetic
from mezzotint.model.config import LayerShape, ModelConfig, VisionConfig

BF16 = 2  # bytes
USABLE = 0.9  # of a device's memory; the rest is left to activations and the runtime, as vLLM does by default
_CANVAS_INTEGERS = 3 * 8  # bytes a position: the canvas, its argmax and that of the step before


class Precision(NamedTuple):
    """How the layers' matrices are stored and multiplied. bytes: a weight, its share of the scales included."""

    name: str
    bytes: float
    arithmetic: Arithmetic


PRECISIONS: Mapping[str, Precision] = MappingProxyType(
    {
        "bf16": Precision("bf16", BF16, "bf16"),
        "fp8": Precision("fp8", 1, "fp8"),
        "int8": Precision("int8", 1, "int8"),
        "nvfp4": Precision("nvfp4", 0.5 + 1 / 16, "nvfp4"),  # a byte of scale for 16 weights
        "int4": Precision("int4", 0.5 + 2 / 128, "bf16"),  # two for 128, and multiplied in bf16
    }
)


def find_precision(name: str) -> Precision:
    """The precision of that name. Raises: ValueError naming what there is."""
    if name not in PRECISIONS:
        raise ValueError(f"--dtype is {name!r}, which is not known; choose among: {', '.join(PRECISIONS)}")
    return PRECISIONS[name]


class Parameters(NamedTuple):
    """Numbers of weights by part. Source: the shapes of the released checkpoint."""

    experts: int
    attention: int
    mlp: int
    embedding: int
    self_conditioning: int
    router: int
    norms: int
    vision: int

    @property
    def quantised(self) -> int:
        """Those that are stored in the precision asked for: experts, attention and the dense MLPs; others stay bf16."""
        return self.experts + self.attention + self.mlp


@dataclass(frozen=True, kw_only=True)
class DrafterShape:
    """A drafter for decoder mtp that reads the model's own keys and values; sizes in elements.

    scored: rows of its head that it reads for a guess. Source: the released assistant's config.
    """

    target_width: int
    vocab_size: int
    scored: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    layers: tuple[LayerShape, ...]
    sliding_window: int


class Footprint(NamedTuple):
    """Bytes that a decoder needs, and what fits. kv_bytes_per_token: of one that no window has left yet.

    kv_bytes_per_sequence: of context and output together, sliding layers in a ring of their window. state_bytes: a
    request's canvas between steps. max_concurrency: requests of this length that fit into USABLE of the memory.
    """

    weights_bytes: float
    kv_bytes_per_token: int
    kv_bytes_per_sequence: int
    state_bytes_per_sequence: int
    max_concurrency: int


def count_parameters(config: ModelConfig) -> Parameters:
    """Every weight of a checkpoint of this shape; the layers' scalars are buffers and not counted."""
    D, E, layers = config.hidden_size, config.num_experts, len(config.layers)
    mlp = 3 * D * config.intermediate_size
    conditioned = config.family == "diffusion_gemma"
    heads = sum(D * attention_columns(config, layer) + config.num_heads * layer.head_dim * D for layer in config.layers)
    return Parameters(
        experts=layers * E * expert_parameters(config),
        attention=heads + sum(2 * layer.head_dim for layer in config.layers),
        mlp=layers * mlp,
        embedding=config.vocab_size * D,
        self_conditioning=mlp + D if conditioned else 0,
        router=layers * (D * E + D + E) if E else 0,
        norms=layers * (7 if E else 4) * D + D,
        vision=0 if config.vision is None else _vision_parameters(config.vision, D),
    )


def expert_parameters(config: ModelConfig) -> int:
    """Weights of one expert in one layer."""
    return 3 * config.hidden_size * config.moe_intermediate_size


def attention_columns(config: ModelConfig, layer: LayerShape) -> int:
    """Columns of a layer's products for queries, keys and values; values may be the keys."""
    return (config.num_heads + layer.kv_heads * (1 if layer.shares_kv else 2)) * layer.head_dim


def drafter_parameters(drafter: DrafterShape) -> int:
    """Matrix weights of a drafter; it has no keys or values of its own."""
    D, joins = drafter.hidden_size, 3 * drafter.target_width * drafter.hidden_size
    queries = sum(2 * D * drafter.num_heads * layer.head_dim for layer in drafter.layers)
    return drafter.vocab_size * D + joins + queries + len(drafter.layers) * 3 * D * drafter.intermediate_size


def kv_bytes(layers: Iterable[LayerShape], window: int, tokens: float) -> float:
    """Bytes of keys and values in bf16 behind `tokens` tokens, of which sliding layers keep the last `window`."""
    kept = {"sliding_attention": min(tokens, window), "full_attention": tokens}
    return sum(kept[layer.kind] * 2 * layer.kv_heads * layer.head_dim * BF16 for layer in layers)


def footprint(
    config: ModelConfig,
    precision: Precision,
    accelerator: Accelerator,
    tokens: int,
    *,
    drafter: DrafterShape | None = None,
    canvas: bool = False,
) -> Footprint:
    """What requests of `tokens` tokens need, with a drafter's weights or a canvas each if the decoder has them.

    Raises: ValueError where the weights alone do not fit, or leave the cache that a bandwidth holds for.
    """
    weights = weights_bytes(config, precision, drafter)
    if accelerator.cached is not None and weights > accelerator.cached:
        raise ValueError(
            f"--accelerator {accelerator.name} is known for weights of up to {accelerator.cached / 1e6:.0f} MB, which "
            f"its cache holds, and these are {weights / 1e6:.0f} MB; choose another"
        )
    room = USABLE * accelerator.memory - weights
    if room <= 0:
        raise ValueError(_too_large(config, precision, accelerator, weights, drafter))
    sequence = int(kv_bytes(config.layers, config.sliding_window, tokens))
    state = config.canvas_length * (config.hidden_size * BF16 + _CANVAS_INTEGERS) if canvas else 0
    return Footprint(
        weights_bytes=weights,
        kv_bytes_per_token=int(kv_bytes(config.layers, config.sliding_window, 1)),
        kv_bytes_per_sequence=sequence,
        state_bytes_per_sequence=state,
        max_concurrency=int(room // (sequence + state)),
    )


def weights_bytes(config: ModelConfig, precision: Precision, drafter: DrafterShape | None = None) -> float:
    """Bytes of all weights: those of Parameters.quantised in the precision, others and a drafter's in bf16."""
    parameters = count_parameters(config)
    kept = sum(parameters) - parameters.quantised + (0 if drafter is None else drafter_parameters(drafter))
    return parameters.quantised * precision.bytes + kept * BF16


def _too_large(
    config: ModelConfig, precision: Precision, accelerator: Accelerator, weights: float, drafter: DrafterShape | None
) -> str:
    room = USABLE * accelerator.memory
    fitting = [each.name for each in PRECISIONS.values() if weights_bytes(config, each, drafter) < room]
    remedy = f"take --dtype {' or '.join(fitting)}" if fitting else "no --dtype here is small enough"
    return (
        f"--dtype {precision.name} makes the weights {weights / 1e9:.1f} GB, and of the {accelerator.memory / 1e9:.0f} "
        f"GB of {accelerator.name} {room / 1e9:.1f} can be used; {remedy}, or take an accelerator with more memory"
    )


def _vision_parameters(vision: VisionConfig, width: int) -> int:
    D = vision.hidden_size
    attention = 2 * D * (vision.num_heads + vision.kv_heads) * vision.head_dim + 2 * vision.head_dim
    layer = attention + 3 * D * vision.intermediate_size + 4 * D
    patches = 3 * vision.patch_size**2 * D
    return vision.num_layers * layer + patches + 2 * vision.position_embedding_size * D + D * width
