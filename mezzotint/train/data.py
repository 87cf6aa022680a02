"""Examples as padded batches of token ids; what is computed on them lives in loss."""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.tasks import FAMILIES, Example
from mezzotint.train.config import TrainConfig

_POOL = 8  # batches that are drawn together and sorted by length


class Sample(NamedTuple):
    """One example as ids; `answer` ends with the end-of-turn token."""

    prompt: list[int]
    answer: list[int]


class Batch(NamedTuple):
    """B samples, and one block of each as a denoising target.

    ids: [B, S] prompt and answer, right-padded. prompt_lengths, lengths: [B] of the prompt and of both.
    block: [B, C] the block's tokens, filled with the fill id behind the answer.
    context: [B] tokens before the block.
    """

    ids: Tensor
    prompt_lengths: Tensor
    lengths: Tensor
    block: Tensor
    context: Tensor


def training_batches(
    config: TrainConfig,
    tokenise: Callable[[Example], Sample],
    first_step: int,
    *,
    pad_id: int,
    fill_id: int,
) -> Iterator[Batch]:
    """Endless batches for `first_step` and the steps after it; each depends on the seed and its step only."""
    step, pool = first_step, list[list[Sample]]()
    while True:
        if not pool or step % _POOL == 0:
            pool = _draw_pool(config, tokenise, step // _POOL)
        yield collate(pool[step % _POOL], _width(config, step), step, pad_id=pad_id, fill_id=fill_id)
        step += 1


def draw_example(config: TrainConfig, group: int, index: int) -> Example:
    """Example `index` of a pool, of the train split; its family is drawn from the mixture."""
    rng = random.Random(f"{config.seed}/{group}/{index}")
    names = list(config.mixture)
    family = FAMILIES[rng.choices(names, [config.mixture[name] for name in names])[0]]
    return family.generate(rng.getrandbits(48), "train")


def collate(samples: list[Sample], width: int, seed: int, *, pad_id: int, fill_id: int) -> Batch:
    """Pad samples to one length and cut one random block of `width` tokens out of each answer."""
    rng = random.Random(seed)
    size = max(len(sample.prompt) + len(sample.answer) for sample in samples)
    ids, blocks, context = [], [], []
    for sample in samples:
        whole = sample.prompt + sample.answer
        ids.append(whole + [pad_id] * (size - len(whole)))
        start = width * rng.randrange(-(-len(sample.answer) // width))
        part = sample.answer[start : start + width]
        blocks.append(part + [fill_id] * (width - len(part)))
        context.append(len(sample.prompt) + start)
    return Batch(
        ids=torch.tensor(ids),
        prompt_lengths=torch.tensor([len(sample.prompt) for sample in samples]),
        lengths=torch.tensor([len(sample.prompt) + len(sample.answer) for sample in samples]),
        block=torch.tensor(blocks),
        context=torch.tensor(context),
    )


def _draw_pool(config: TrainConfig, tokenise: Callable[[Example], Sample], group: int) -> list[list[Sample]]:
    """Batches of samples of like length, in shuffled order, so that little is padded."""
    samples = [tokenise(draw_example(config, group, index)) for index in range(_POOL * config.examples)]
    samples.sort(key=lambda sample: len(sample.prompt) + len(sample.answer))
    batches = [samples[i : i + config.examples] for i in range(0, len(samples), config.examples)]
    random.Random(f"{config.seed}/{group}").shuffle(batches)
    return batches


def _width(config: TrainConfig, step: int) -> int:
    return random.Random(f"{config.seed}/width/{step}").choice(config.widths)
