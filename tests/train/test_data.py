"""Batches: a function of seed and step, in the asked mixture, from the train split, cut and padded."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import pytest
import torch

from mezzotint.tasks import FAMILIES, Example, Split
from mezzotint.train import data
from mezzotint.train.config import TrainConfig
from mezzotint.train.data import Batch, Sample, collate, draw_example, training_batches
from tests.train.tiny import END, OPEN, PAD, draw_samples, spell

CONFIG = TrainConfig(
    examples=3,
    widths=(4, 8),
    mixture={"extract": 0.5, "parallel_rule": 0.3, "sequential_rule": 0.2},
)


def batches(config: TrainConfig, first: int, count: int) -> list[Batch]:
    return list(islice(training_batches(config, spell, first, pad_id=PAD, fill_id=END), count))


def same(left: Batch, right: Batch) -> bool:
    return all(torch.equal(mine, its) for mine, its in zip(left, right, strict=True))


@pytest.mark.parametrize("first", [1, 7, 8, 13, 16])
def test_a_batch_depends_on_its_step_and_not_on_where_the_run_began(first: int) -> None:
    straight = batches(CONFIG, 0, 20)
    assert all(map(same, batches(CONFIG, first, 20 - first), straight[first:]))


def test_another_seed_or_step_brings_other_examples() -> None:
    straight = batches(CONFIG, 0, 16)
    assert not any(map(same, batches(TrainConfig(seed=1, examples=3, widths=(4, 8)), 0, 16), straight))
    rows = [tuple(row) for batch in straight for row in batch.ids.tolist()]
    assert len(set(rows)) == len(rows) == 16 * 3


def test_families_come_in_the_asked_shares() -> None:
    drawn = Counter(draw_example(CONFIG, index // 50, index % 50).family for index in range(3000))
    expected = {name: 3000 * share for name, share in CONFIG.mixture.items()}
    chi_square = sum((drawn[name] - count) ** 2 / count for name, count in expected.items())
    assert drawn.keys() == expected.keys()
    assert chi_square < 13.8  # 2 degrees of freedom, one in a thousand


def test_shares_need_not_add_up_to_one_and_a_share_of_none_is_none() -> None:
    config = TrainConfig(mixture={"extract": 0.0, "parallel_rule": 3.0, "sequential_rule": 1.0})
    drawn = Counter(draw_example(config, 0, index).family for index in range(800))
    assert drawn.keys() == {"parallel_rule", "sequential_rule"}
    assert 560 < drawn["parallel_rule"] < 640


def test_nothing_that_test_holds_out_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Split] = []

    def watch(generate: Callable[[int, Split], Example]) -> Callable[[int, Split], Example]:
        return lambda seed, split: (asked.append(split), generate(seed, split))[1]

    watched = {name: family._replace(generate=watch(family.generate)) for name, family in FAMILIES.items()}
    monkeypatch.setattr(data, "FAMILIES", watched)
    everything = dict.fromkeys(FAMILIES, 1.0)
    batches(TrainConfig(examples=10, mixture=everything), 0, 30)
    assert len(asked) >= 300
    assert set(asked) == {"train"}


def test_a_batch_holds_examples_of_like_length() -> None:
    config = TrainConfig(examples=6, mixture={"extract": 1.0})
    padding = sum(int((batch.ids.shape[1] - batch.lengths).sum()) for batch in batches(config, 0, 8))
    samples = [spell(draw_example(config, 0, index)) for index in range(48)]
    sizes = [len(sample.prompt) + len(sample.answer) for sample in samples]
    unsorted = sum(6 * max(sizes[i : i + 6]) - sum(sizes[i : i + 6]) for i in range(0, 48, 6))
    assert padding < unsorted / 2


def test_short_batches_do_not_come_first() -> None:
    sizes = [batch.ids.shape[1] for batch in batches(TrainConfig(examples=6, seed=2), 0, 8)]
    assert sizes != sorted(sizes)


def test_every_asked_width_comes_up() -> None:
    assert {batch.block.shape[1] for batch in batches(CONFIG, 0, 24)} == {4, 8}


def test_ids_are_prompt_and_answer_with_padding_behind() -> None:
    samples = draw_samples((5, 6), (9, 7))
    batch = collate(samples, OPEN, 4, 0, pad_id=PAD, fill_id=END)
    assert batch.ids.shape == (2, 16)
    for row, sample in enumerate(samples):
        whole = sample.prompt + sample.answer
        assert batch.ids[row].tolist() == whole + [PAD] * (16 - len(whole))
    assert batch.prompt_lengths.tolist() == [5, 9]
    assert batch.lengths.tolist() == [11, 16]


@pytest.mark.parametrize("answer", [3, 4, 5, 11, 12])
def test_each_block_of_an_answer_is_a_target_and_the_last_is_filled_up(answer: int) -> None:
    (sample,) = samples = draw_samples((5, answer))
    padded = sample.answer + [END] * (-answer % 4)
    blocks = {start: padded[start : start + 4] for start in range(0, answer, 4)}
    drawn = [collate(samples, OPEN, 4, seed, pad_id=PAD, fill_id=END) for seed in range(60)]
    found = {int(batch.context) - 5: batch.block[0].tolist() for batch in drawn}
    assert found == blocks


def test_a_blank_is_filled_up_with_pads_and_a_canvas_is_given_what_stands_behind_it() -> None:
    (sample,) = draw_samples((5, 9))
    blank = sample._replace(given=4)
    capacities = set()
    for seed in range(200):
        batch = collate([blank], replace(OPEN, blanks=1.0), 24, seed, pad_id=PAD, fill_id=END)
        block, pinned = batch.block[0].tolist(), batch.pinned[0].tolist()
        capacity = pinned.index(True)
        capacities.add(capacity)
        assert pinned == [place >= capacity for place in range(24)]
        right = (sample.answer[5:] + [END] * 24)[: 24 - capacity]
        assert block == sample.answer[:5] + [PAD] * (capacity - 5) + right
        assert int(batch.context) == 5
    assert capacities == {8, 12, 16, 20}


def test_a_blank_that_does_not_fit_the_canvas_is_an_answer_like_another() -> None:
    (sample,) = draw_samples((5, 20))
    batch = collate([sample._replace(given=2)], replace(OPEN, blanks=1.0), 8, 0, pad_id=PAD, fill_id=END)
    assert not batch.pinned.any()
    start = int(batch.context) - 5
    assert batch.block[0].tolist() == (sample.answer + [END] * 8)[start : start + 8]


def test_some_canvases_are_given_a_run_from_the_left_or_scattered_tokens() -> None:
    samples = draw_samples(*[(5, 8)] * 400)
    pinned = collate(samples, replace(OPEN, pinned=0.5), 8, 0, pad_id=PAD, fill_id=END).pinned.tolist()
    some = [row for row in pinned if any(row)]
    runs = [row for row in some if row == sorted(row, reverse=True)]
    assert 140 <= len(some) <= 230
    assert 60 <= len(runs) <= len(some) - 60


def test_rows_of_one_batch_show_different_blocks() -> None:
    samples = draw_samples(*[(5, 16)] * 12)
    batch = collate(samples, OPEN, 4, 0, pad_id=PAD, fill_id=END)
    assert len(set((batch.context - 5).tolist())) > 1


def test_a_sample_is_what_the_tokenizer_made_of_the_example() -> None:
    seen: list[Sample] = []

    def tokenise(example: Example) -> Sample:
        seen.append(spell(example))
        return seen[-1]

    batch = next(training_batches(CONFIG, tokenise, 0, pad_id=PAD, fill_id=END))
    wholes = [sample.prompt + sample.answer for sample in seen]
    rows = [row[:length] for row, length in zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)]
    assert all(row in wholes for row in rows)
