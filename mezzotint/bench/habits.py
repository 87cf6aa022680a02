"""How a model writes, as measured elsewhere: tokens a forward, drafts that are kept; a plan takes it as given."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mezzotint.bench.footprint import DrafterShape
from mezzotint.model.config import LayerShape


@dataclass(frozen=True, kw_only=True)
class Habits:
    """What no config says. tokens_per_forward: of diffusion, commits counted. drafts, kept: guesses a round of mtp, and
    how many of them are kept on average beside the model's own token. expert_pool: share of a layer's experts that a
    request visits. source: where the figures come from. Raises: ValueError naming flag and limit.
    """

    tokens_per_forward: float
    drafts: int
    kept: float
    expert_pool: float
    source: str

    def __post_init__(self) -> None:
        if not self.tokens_per_forward > 0:
            raise ValueError(f"--tokens-per-forward is {self.tokens_per_forward:g}; it must be above 0")
        if not 0 <= self.kept <= self.drafts:
            raise ValueError(
                f"--kept-drafts is {self.kept:g}; of {self.drafts} drafts a round keeps 0 to {self.drafts}"
            )


# The report gives 1.40 tokens a forward and 303 tokens/s for 4 drafts. As tokens of a whole round that would make it
# 4.6 ms, shorter than the step of 4.9 ms without any draft; so it is read as drafts kept beside the model's own token.
REPORT = Habits(
    tokens_per_forward=19.74,
    drafts=4,
    kept=1.40,
    expert_pool=84 / 128,
    source="arXiv 2608.00146: 19.74 tokens a forward, the mean of seven benchmarks with thinking; 4 drafts, 1.40 kept "
    "(SPEED-Bench); about 84 of 128 experts visited by a canvas (PG-19)",
)

_LAB = Habits(
    tokens_per_forward=9.12,
    drafts=6,
    kept=4.5,
    expert_pool=1.0,
    source="docs/benchmarks.md: 9.12 tokens a forward of diffusion and 5.50 of mtp on `extract`, budget 16",
)

HABITS: Mapping[str, Habits] = MappingProxyType({"diffusiongemma-26b-a4b": REPORT, "lab": _LAB})


def kept_at(acceptance: float, drafts: int) -> float:
    """Drafts kept of a round when each that follows only kept ones is kept with this probability."""
    return sum(acceptance**place for place in range(1, drafts + 1))


def _layer(head_dim: int, kv_heads: int, *, full: bool) -> LayerShape:
    if full:
        return LayerShape("full_attention", head_dim, kv_heads, shares_kv=True, rope_theta=1e6, rotary_fraction=0.25)
    return LayerShape("sliding_attention", head_dim, kv_heads, shares_kv=False, rope_theta=1e4, rotary_fraction=1.0)


# The released assistant of Gemma 4 26B A4B, whose weights are not shipped here.
REPORT_DRAFTER = DrafterShape(
    target_width=2816,
    vocab_size=262_144,
    scored=262_144,
    hidden_size=1024,
    intermediate_size=8192,
    num_heads=16,
    layers=(*(_layer(256, 8, full=False) for _ in range(3)), _layer(512, 2, full=True)),
    sliding_window=1024,
)
