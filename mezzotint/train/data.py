"""Examples as padded batches of token ids; what is computed on them lives in loss."""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.tasks import FAMILIES, Example
from mezzotint.train.config import TrainConfig

_POOL = 8  # batches that are drawn together and sorted by length
_MOST_SURPLUS = 48  # pads that a blank may have


class Sample(NamedTuple):
    """One example as ids; `answer` ends with the end-of-turn token.

    given: how many of the answer's last tokens stand behind a blank that its first ones fill.
    """

    prompt: list[int]
    answer: list[int]
    given: int = 0


class Batch(NamedTuple):
    """B samples, and one block of each as a denoising target.

    ids: [B, S] prompt and answer, right-padded. prompt_lengths, lengths: [B] of the prompt and of both.
    block: [B, C] the block's tokens, filled with the fill id behind the answer.
    pinned: [B, C] bool, True where a canvas is given the token. context: [B] tokens before the block.
    """

    ids: Tensor
    prompt_lengths: Tensor
    lengths: Tensor
    block: Tensor
    pinned: Tensor
    context: Tensor


class Target(NamedTuple):
    """One block to denoise: C tokens, which of them are given, and how many answer tokens stand before it."""

    tokens: list[int]
    pinned: list[bool]
    start: int


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
        width = random.Random(f"{config.seed}/width/{step}").choice(config.widths)
        yield collate(pool[step % _POOL], config, width, step, pad_id=pad_id, fill_id=fill_id)
        step += 1


def draw_example(config: TrainConfig, group: int, index: int) -> Example:
    """Example `index` of a pool, of the train split; its family is drawn from the mixture."""
    rng = random.Random(f"{config.seed}/{group}/{index}")
    names = list(config.mixture)
    family = FAMILIES[rng.choices(names, [config.mixture[name] for name in names])[0]]
    return family.generate(rng.getrandbits(48), "train")


def collate(samples: list[Sample], config: TrainConfig, width: int, seed: int, *, pad_id: int, fill_id: int) -> Batch:
    """Pad samples to one length and cut one random block of `width` tokens out of each answer."""
    rng = random.Random(seed)
    size = max(len(sample.prompt) + len(sample.answer) for sample in samples)
    targets = [_cut_block(sample, config, width, rng, pad_id=pad_id, fill_id=fill_id) for sample in samples]
    prompts = torch.tensor([len(sample.prompt) for sample in samples])
    answers = torch.tensor([len(sample.answer) for sample in samples])
    whole = [sample.prompt + sample.answer for sample in samples]
    return Batch(
        ids=torch.tensor([ids + [pad_id] * (size - len(ids)) for ids in whole]),
        prompt_lengths=prompts,
        lengths=prompts + answers,
        block=torch.tensor([target.tokens for target in targets]),
        pinned=torch.tensor([target.pinned for target in targets]),
        context=prompts + torch.tensor([target.start for target in targets]),
    )


def _draw_pool(config: TrainConfig, tokenise: Callable[[Example], Sample], group: int) -> list[list[Sample]]:
    """Batches of samples of like length, in shuffled order, so that little is padded."""
    samples = [tokenise(draw_example(config, group, index)) for index in range(_POOL * config.examples)]
    samples.sort(key=lambda sample: len(sample.prompt) + len(sample.answer))
    batches = [samples[i : i + config.examples] for i in range(0, len(samples), config.examples)]
    random.Random(f"{config.seed}/{group}").shuffle(batches)
    return batches


def _cut_block(
    sample: Sample, config: TrainConfig, width: int, rng: random.Random, *, pad_id: int, fill_id: int
) -> Target:
    if sample.given and rng.random() < config.blanks:
        filled = len(sample.answer) - sample.given
        if (surplus := _draw_surplus(filled, width, rng)) is not None:
            row = sample.answer[:filled] + [pad_id] * surplus + sample.answer[filled:]
            tokens = (row + [fill_id] * width)[:width]
            return Target(tokens, [place >= filled + surplus for place in range(width)], 0)
    start = width * rng.randrange(-(-len(sample.answer) // width))
    part = sample.answer[start : start + width]
    tokens = part + [fill_id] * (width - len(part))
    return Target(tokens, _draw_pins(width, rng) if rng.random() < config.pinned else [False] * width, start)


def _draw_surplus(filled: int, width: int, rng: random.Random) -> int | None:
    """Pads behind a blank's `filled` tokens: its capacity is a multiple of 4 that leaves room to its right."""
    capacities = [size for size in range(4, width, 4) if 0 <= size - filled <= _MOST_SURPLUS]
    return rng.choice(capacities) - filled if capacities else None


def _draw_pins(width: int, rng: random.Random) -> list[bool]:
    """A run from the left, as a validated prefix is, or scattered places, as a skeleton's are."""
    share = rng.random()
    if rng.random() < 0.5:
        return [place < share * width for place in range(width)]
    return [rng.random() < share for _ in range(width)]
