"""Which parts of the training recipe are varied, from which weights, and for how long; nothing is trained here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mezzotint.model.config import ModelConfig
from mezzotint.train.config import TrainConfig
from mezzotint.train.lab import lab_config

Shape = Literal["small", "middle", "deep", "wide"]
Start = Literal["nothing", "copying", "lab"] | Shape  # of a shape: its random weights
Optimiser = Literal["muon", "adamw"]

COPYING = "recipe"  # the run whose weights are the start of those that begin from "copying"
MIXTURE = {"extract": 0.45, "repeat": 0.45, "sequential_rule": 0.05, "parallel_rule": 0.05}
# Processor seconds. A run from nothing goes on until it has learnt to copy; from copying, and from lab.
LONGEST_S, FORK_S, LAB_S, SHAPE_S = 2400.0, 240.0, 270.0, 750.0
LEARNT = 0.5  # nats per token of the causal loss in training, below which names and digits are copied


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One short run of training.

    says: what differs from the first run of the same start. changes: fields of its TrainConfig. seconds: of the
    processor; until_loss ends it sooner, at a causal loss of its training in nats per token. as_long_as: another
    run, whose processor seconds are this one's. deaf: the denoiser never hears the soft embedding, here or later.
    Raises: ValueError if a deaf one is to be told something after all.
    """

    name: str
    says: str
    start: Start
    seconds: float
    changes: Mapping[str, Any] = field(default_factory=dict)
    until_loss: float | None = None
    as_long_as: str | None = None
    optimiser: Optimiser = "muon"
    deaf: bool = False

    def __post_init__(self) -> None:
        if self.deaf and (self.config.conditioned or self.config.on_policy):
            raise ValueError(f"{self.name} is deaf; set conditioned and on_policy to 0")

    @property
    def config(self) -> TrainConfig:
        """What the run is told: the rate stays at its highest, since how many steps it will take is not known."""
        return TrainConfig(**_CONFIGS[self.start] | dict(self.changes))

    @property
    def tasks(self) -> tuple[str, ...]:
        """The families that it is scored by."""
        return ("call", "repair") if self.start == "lab" else ("extract", "repeat")


_SHORT = {"steps": 10**6, "final_share": 1.0, "easy_until": 0.0, "on_policy_from": 0.0}
_NOTHING = _SHORT | {"on_policy": 0.0, "mixture": MIXTURE, "warmup": 60, "examples": 24, "peak_rate": 2e-3}
_CONFIGS: dict[Start, dict[str, Any]] = {
    **dict.fromkeys(("nothing", "small", "middle", "deep", "wide"), _NOTHING),
    # Another seed, so that a run does not meet the examples again that its start has seen.
    "copying": _SHORT | {"seed": 1, "on_policy": 0.0, "mixture": MIXTURE, "warmup": 20, "examples": 24},
    # Weights that have come to rest leave it again at a high rate, and a run this short would not bring them back.
    "lab": _SHORT | {"seed": 2, "mixture": {"call": 0.5, "repair": 0.5}, "warmup": 20, "peak_rate": 3e-4},
}
_NO_REPEAT = {name: share for name, share in MIXTURE.items() if name != "repeat"}

_FORK = Variant(name="as it is", says="the recipe", start="copying", seconds=FORK_S)
_LAB = Variant(name="on-policy 15", says="15 % of the steps on-policy", start="lab", seconds=LAB_S)

# The most telling first: a run that is cut short has them.
VARIANTS = (
    Variant(name=COPYING, says="the recipe, until it copies", start="nothing", seconds=LONGEST_S, until_loss=LEARNT),
    _FORK,
    replace(_FORK, name="adamw", says="AdamW for matrices too", optimiser="adamw", changes={"matrix_rate": 1.0}),
    replace(_FORK, name="deaf", says="no self-conditioning", deaf=True, changes={"conditioned": 0.0}),
    replace(_FORK, name="other seed", says="the recipe, other examples and noise", changes={"seed": 3}),
    # Examples so that a step has as many tokens: 140 an example are encoded, 48 a canvas denoised.
    replace(_FORK, name="four canvases", says="4 canvases an encode", changes={"canvases": 4, "examples": 17}),
    replace(_FORK, name="one canvas", says="1 canvas an encode", changes={"canvases": 1, "examples": 30}),
    replace(_FORK, name="causal weight 0.3", says="causal weight 0.3", changes={"causal_weight": 0.3}),
    replace(_LAB, name="untrained", says="as bundled, untrained", seconds=0.0),
    replace(_LAB, name="on-policy 0", says="no step on-policy", changes={"on_policy": 0.0}),
    replace(_LAB, name="on-policy 35", says="35 % of the steps on-policy", changes={"on_policy": 0.35}),
    _LAB,
    replace(_LAB, name="mined", says="15 %, spent on what the sampler gets wrong", changes={"mined": 1.0}),
    replace(_FORK, name="scattered noise", says="no noise in runs", changes={"span_noise": 0.0}),
    Variant(
        name="without repeat",
        says="the recipe without plain copying, as long",
        start="nothing",
        seconds=LONGEST_S,
        as_long_as=COPYING,
        changes={"mixture": _NO_REPEAT},
    ),
    replace(
        _FORK,
        name="adamw twice the rate",
        says="AdamW for matrices too, at twice the rate",
        optimiser="adamw",
        changes={"matrix_rate": 2.0},
    ),
    Variant(name="shape small", says="width 128, 6 layers, 1.7 M", start="small", seconds=SHAPE_S),
    Variant(name="shape middle", says="width 256, 6 layers, 6.0 M: lab's", start="middle", seconds=SHAPE_S),
    Variant(name="shape deep", says="width 256, 9 layers, 8.7 M", start="deep", seconds=SHAPE_S),
    Variant(name="shape wide", says="width 384, 6 layers, 13.0 M", start="wide", seconds=SHAPE_S),
)


def small_config(vocab_size: int) -> ModelConfig:
    """Shape of the runs from nothing: lab's at half its width, 1.7 M parameters, so that copying comes in minutes."""
    return replace(
        lab_config(vocab_size), hidden_size=128, num_heads=2, intermediate_size=192, moe_intermediate_size=64
    )


def _deep_config(vocab_size: int) -> ModelConfig:
    shape = lab_config(vocab_size)
    return replace(shape, layers=shape.layers + shape.layers[:3])


def _wide_config(vocab_size: int) -> ModelConfig:
    return replace(
        lab_config(vocab_size), hidden_size=384, num_heads=6, intermediate_size=576, moe_intermediate_size=192
    )


# Each fits into 32 MB in bfloat16.
SHAPES: dict[Shape, Callable[[int], ModelConfig]] = {
    "small": small_config,
    "middle": lab_config,
    "deep": _deep_config,
    "wide": _wide_config,
}
