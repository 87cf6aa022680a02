"""Time by part of the real loops: every part that must be there is, and nothing of ours stays behind."""

from math import isclose
from pathlib import Path

import pytest
import torch

from benchmarks.bound import denoise_cost, token_cost
from benchmarks.ours import Ours
from benchmarks.parts import Stopwatch, split_denoising, split_token
from benchmarks.subjects import random_subject
from mezzotint.decoding.params import SamplingParams
from mezzotint.model.product import Product
from tests.benchmarks.tiny import CONFIG

PROMPT = list(range(20))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Ours:
    folder = tmp_path_factory.mktemp("parts") / "tiny"
    return Ours(random_subject("tiny", CONFIG, folder, prompts=1).folder, "float32")


def test_a_denoising_step_splits_into_the_parts_of_its_bound(ours: Ours) -> None:
    sampler = ours.llm.sampler(SamplingParams(steps=5))
    split = split_denoising(ours.llm.model, PROMPT, ours.llm.limits, sampler)
    assert set(split.parts_s) == {*denoise_cost(CONFIG, 20, 4), "sampler", "rest"}
    assert isclose(sum(split.parts_s.values()), split.median_s)
    assert all(seconds > 0 for part, seconds in split.parts_s.items() if part != "rest")


def test_an_autoregressive_step_splits_into_the_parts_of_its_bound(ours: Ours) -> None:
    split = split_token(ours.llm.model, PROMPT, ours.llm.limits, 4)
    assert set(split.parts_s) == {*token_cost(CONFIG, 20, 4), "sampler", "rest"}
    assert 0 < split.minimum_s <= split.median_s


def test_a_watched_model_is_left_as_it_was(ours: Ours) -> None:
    watch = Stopwatch()
    called = Product.__call__
    with watch.watching():
        ours.llm.model.embed(torch.tensor([1]))
    assert watch.lap()
    ours.llm.model.embed(torch.tensor([1]))
    assert not watch.lap()
    assert Product.__call__ is called


def test_a_lap_begins_where_the_last_one_ended() -> None:
    watch = Stopwatch()
    with watch, watch.within("vocabulary"):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    assert {"vocabulary products", "vocabulary element-wise"} == set(watch.lap())
    assert watch.lap() == {}


def test_a_folder_of_fixed_steps_links_to_the_weights(ours: Ours) -> None:
    assert Path(ours.llm.path, "model.safetensors").is_file()
    assert ours.llm.sampler(SamplingParams(steps=3)).stability > 1000
