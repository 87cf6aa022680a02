"""What a trained variant is scored by: losses on held-out examples, and answers; nothing is trained here."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from mezzotint.evaluate.config import EvaluateConfig
from mezzotint.evaluate.run import answer_prompts
from mezzotint.evaluate.score import Row, score
from mezzotint.llm import LLM
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.generation_config import GenerationDefaults
from mezzotint.model.locate import BUNDLED
from mezzotint.model.weights import write_checkpoint
from mezzotint.tasks import FAMILIES, Example
from mezzotint.train.config import Plan, TrainConfig
from mezzotint.train.data import Batch, Sample, collate
from mezzotint.train.loss import Canvases, Losses, joint_loss

NOISE = (0.25, 0.5, 0.75, 1.0)
BUDGET = 8
_ROWS = 25  # of a batch
_TEXT_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


class HeldOut(NamedTuple):
    """Losses on held-out examples, in nats per token.

    causal: of answers. denoise: of canvases by their share of noise, on a first step. heard: the mean over all of
    these, with the soft embedding of a first pass.
    """

    causal: float
    denoise: dict[str, float]
    heard: float


def held_out_losses(
    model: DiffusionGemma, task: str, tokenise: Callable[[Example], Sample], n: int, *, width: int
) -> HeldOut:
    """Losses on the first n held-out examples of a task, a block of `width` tokens of each, the same for any model."""
    samples = [tokenise(FAMILIES[task].generate(seed, "test")) for seed in range(n)]
    samples.sort(key=lambda sample: len(sample.prompt) + len(sample.answer))
    groups = [samples[first : first + _ROWS] for first in range(0, n, _ROWS)]
    found = [_batch_losses(model, group, index, width) for index, group in enumerate(groups)]
    weights = [len(group) / n for group in groups]

    def mean(values: Sequence[float]) -> float:
        return sum(weight * value for weight, value in zip(weights, values, strict=True))

    return HeldOut(
        causal=mean([each.causal for each in found]),
        denoise={str(t): mean([each.denoise[str(t)] for each in found]) for t in NOISE},
        heard=mean([each.heard for each in found]),
    )


@torch.no_grad()
def _batch_losses(model: DiffusionGemma, samples: list[Sample], seed: int, width: int) -> HeldOut:
    shape, silent, heard = model.config, _asked(conditioned=0.0), _asked(conditioned=1.0)
    batch = collate(samples, silent, width, seed, pad_id=shape.pad_id, fill_id=shape.eos_ids[0])
    levels = [corrupt_to(batch, t, shape.vocab_size, seed) for t in NOISE]
    plan = Plan(easy=False, causal_weight=1.0, budget=None, mined=False)

    def losses(canvases: Canvases, config: TrainConfig) -> Losses:
        return joint_loss(model, batch, canvases, config, plan, Generator().manual_seed(seed))

    first = [losses(canvases, silent) for canvases in levels]
    together = Canvases(*(torch.cat(parts) for parts in zip(*levels, strict=True)))
    by_noise = {str(t): float(found.denoise) for t, found in zip(NOISE, first, strict=True)}
    return HeldOut(float(first[0].causal), by_noise, float(losses(together, heard).denoise))


def corrupt_to(batch: Batch, share: float, vocab_size: int, seed: int) -> Canvases:
    """A canvas for each row of the batch, each of its tokens replaced by a uniform one with probability `share`."""
    generator = Generator().manual_seed(seed)
    rows, shape = torch.arange(batch.block.shape[0]), batch.block.shape
    replaced: Tensor = torch.rand(shape, generator=generator) < share
    ids = torch.where(replaced, torch.randint(vocab_size, shape, generator=generator), batch.block)
    return Canvases(ids, batch.block, batch.pinned, rows, torch.full((len(rows),), share))


def _asked(conditioned: float) -> TrainConfig:
    """Answers alone in the causal loss, nothing pinned, no blank."""
    return TrainConfig(conditioned=conditioned, pinned=0.0, blanks=0.0, prompt_weight=0.0, prompt_share=0.0)


def pass_rates(model: DiffusionGemma, tasks: tuple[str, ...], n: int, *, compiled: bool) -> list[Row]:
    """How diffusion at budget BUDGET, and ar, answer n held-out prompts of every task."""
    with tempfile.TemporaryDirectory() as folder:
        store(model, Path(folder))
        llm = LLM(folder, compiled=compiled)
        config = EvaluateConfig(tasks=tasks, n=n, steps=(BUDGET,))
        return score(answer_prompts(llm, config))


def store(model: DiffusionGemma, folder: Path) -> None:
    """Write a checkpoint that has lab's tokenizer and template."""
    write_checkpoint(model, folder, generation=GenerationDefaults(eos_ids=model.config.eos_ids, max_denoising_steps=16))
    for name in _TEXT_FILES:
        shutil.copyfile(BUNDLED / "lab" / name, folder / name)


def as_json(losses: HeldOut, rows: Sequence[Row]) -> dict[str, Any]:
    """One task's scores."""
    return {**losses._asdict(), "rows": [asdict(row) for row in rows]}
