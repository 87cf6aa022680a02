"""A tiny model that remembers its forwards, and hand-made examples for it; no test lives here."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from mezzotint.model.config import LayerShape, ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.tasks import Example
from mezzotint.train.config import Plan, TrainConfig
from mezzotint.train.data import Batch, Sample, collate
from mezzotint.train.lab import initialise
from mezzotint.train.loss import Canvases, Losses, corrupt, joint_loss
from mezzotint.types import KeyValues

VOCABULARY, PAD, END = 24, 0, 1
WIDTH = 4
ORDINARY = Plan(easy=False, causal_weight=1.0, budget=None, mined=False)

_SLIDING = LayerShape("sliding_attention", 8, 2, shares_kv=False, rope_theta=1e4, rotary_fraction=1.0)
_FULL = LayerShape("full_attention", 8, 1, shares_kv=True, rope_theta=1e5, rotary_fraction=0.5)

# The window is shorter than the examples below, so that a wrong mask or position shows.
SHAPE = ModelConfig(
    family="diffusion_gemma",
    vocab_size=VOCABULARY,
    hidden_size=16,
    intermediate_size=24,
    num_heads=2,
    layers=(_SLIDING, _FULL, _SLIDING),
    sliding_window=6,
    num_experts=3,
    top_k_experts=2,
    moe_intermediate_size=8,
    rms_norm_eps=1e-6,
    softcap=30.0,
    max_positions=128,
    canvas_length=WIDTH,
    bos_id=2,
    pad_id=PAD,
    eos_ids=(END,),
    vision=None,
)


class Fed(NamedTuple):
    """What one denoise forward was fed."""

    ids: Tensor
    soft: Tensor | None


class Watched(DiffusionGemma):
    """The network, with what its denoise forwards were fed and the logits it was asked for, in order."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.fed: list[Fed] = []
        self.said: list[Tensor] = []

    def denoise(
        self,
        canvas: Tensor,
        kv: KeyValues,
        soft: Tensor | None = None,
        *,
        window: int | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        self.fed.append(Fed(canvas, soft))
        return super().denoise(canvas, kv, soft, window=window, lengths=lengths)

    def logits(self, hidden: Tensor) -> Tensor:
        found = super().logits(hidden)
        self.said.append(found.detach())
        return found


OPEN = TrainConfig(pinned=0.0)  # canvases that are given nothing


class Pass(NamedTuple):
    """One joint loss, what the denoiser was fed, and both logits: causal [T, V] and canvases [N, C, V]."""

    losses: Losses
    fed: Fed
    causal: Tensor
    canvases: Tensor


def tiny_model(seed: int = 0, dtype: torch.dtype = torch.float64, shape: ModelConfig = SHAPE) -> Watched:
    model = Watched(shape)
    initialise(model, seed)
    return model.to(dtype)


def draw_samples(*lengths: tuple[int, int], seed: int = 0) -> list[Sample]:
    """One sample for each (prompt tokens, answer tokens)."""
    generator = Generator().manual_seed(seed)
    drawn = [[torch.randint(3, VOCABULARY, (n,), generator=generator).tolist() for n in pair] for pair in lengths]
    return [Sample(prompt, [*answer[:-1], END]) for prompt, answer in drawn]


def cut(samples: list[Sample], block: int, width: int = WIDTH) -> Batch:
    """A batch whose targets are block `block` of every sample."""
    batch = collate(samples, OPEN, width, 0, pad_id=PAD, fill_id=END)
    start = block * width
    parts = [sample.answer[start : start + width] for sample in samples]
    padded = [part + [END] * (width - len(part)) for part in parts]
    return batch._replace(block=torch.tensor(padded), context=batch.prompt_lengths + start)


def noisy(batch: Batch, config: TrainConfig, *, easy: bool = False) -> Canvases:
    """Canvases from the first seed."""
    generator = Generator().manual_seed(0)
    return corrupt(batch, config, vocab_size=VOCABULARY, easy=easy, generator=generator)


def run(
    model: Watched,
    batch: Batch,
    canvases: Canvases,
    config: TrainConfig,
    plan: Plan = ORDINARY,
    seed: int = 0,
) -> Pass:
    model.fed, model.said = [], []
    losses = joint_loss(model, batch, canvases, config, plan, Generator().manual_seed(seed))
    return Pass(losses, model.fed[-1], model.said[0], model.said[-1])


def spell(example: Example) -> Sample:
    """A stand-in for a tokenizer: letters become ids, and only the first few are kept."""
    text, answer = example.messages[0]["content"], example.answer
    return Sample(_ids(text[-9 - len(answer) % 5 :]), [*_ids(answer[: 4 + len(text) % 7]), END])


def _ids(text: str) -> list[int]:
    return [3 + ord(letter) % (VOCABULARY - 3) for letter in text]
