"""A drafter of a tiny model: its loss written out beside it, learnt by heart, and a run from texts to a checkpoint."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.model.assistant import Assistant, AssistantNetwork, Seen, drafter_reach
from mezzotint.model.assistant_config import AssistantConfig
from mezzotint.model.assistant_weights import load_assistant
from mezzotint.model.config import ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.layers import rotary_angles
from mezzotint.model.locate import BUNDLED
from mezzotint.model.weights import load_model
from mezzotint.train import drafter
from mezzotint.train.config import DrafterConfig
from mezzotint.train.data import Sample
from mezzotint.train.drafter import drafter_config, drafter_loss, train_drafter
from mezzotint.train.lab import initialise, lab_config
from mezzotint.train.state import TrainState
from mezzotint.types import Guess
from tests.train.tiny import SHAPE, cut, draw_samples, tiny_model

Entry = dict[str, float]
GUESSES = 3


def tiny_config(target: ModelConfig = SHAPE) -> AssistantConfig:
    """A narrow drafter for `target`, which sees less of the context than the target does."""
    whole = drafter_config(replace(target, num_heads=4), GUESSES)
    return replace(whole, hidden_size=16, intermediate_size=24, sliding_window=3)


def tiny_network(seed: int = 1) -> AssistantNetwork:
    return initialise(AssistantNetwork(tiny_config()), seed).double()


@pytest.fixture
def target() -> DiffusionGemma:
    return tiny_model().requires_grad_(requires_grad=False)


def chain(network: AssistantNetwork, target: DiffusionGemma, row: list[int], at: int) -> list[Tensor]:
    """Logits [V] of each guess behind the token at `at` of a row alone, fed with the row's own tokens."""
    kv = target.new_kv(1, len(row))
    hidden = target.encode(torch.tensor([row]), kv)
    reach = drafter_reach(network.config)
    seen = {
        "sliding_attention": Seen(*kv.pair(2, max(0, at - reach), at), None),
        "full_attention": Seen(*kv.pair(1, 0, at), None),
    }
    angles = {shape.kind: rotary_angles(shape, torch.tensor([at]), torch.float64) for shape in network.config.layers}
    carried, found = hidden[:, at - 1 : at], []
    for token in row[at : at + GUESSES]:
        state = network(target.embed(torch.tensor([[token]])), carried, angles, seen)  # type: ignore[arg-type]
        carried = network.next_hidden(state)
        found.append(network.logits(state)[0, 0])
    return found


def greedy(target: DiffusionGemma, row: list[int]) -> list[int]:
    """What the target says behind each token of a row."""
    hidden = target.encode(torch.tensor([row]), target.new_kv(1, len(row)))
    ids: list[int] = target.logits(hidden)[0].argmax(-1).tolist()
    return ids


def test_the_loss_is_that_of_every_guess_written_out(target: DiffusionGemma) -> None:
    samples = draw_samples((9, 5), (1, 2), (4, 11), seed=2)
    network = tiny_network()
    errors: list[list[Tensor]] = [[] for _ in range(GUESSES)]
    accepted, starts = 0, 0
    for sample in samples:
        row = sample.prompt + sample.answer
        said = greedy(target, row)
        for at in range(len(sample.prompt), len(row) - 1):
            starts, in_a_row = starts + 1, True
            for step, logits in enumerate(chain(network, target, row, at)[: len(row) - 1 - at]):
                wanted = torch.tensor(said[at + step])
                errors[step].append(F.cross_entropy(logits, wanted))
                in_a_row = in_a_row and int(logits.argmax()) == int(wanted)
                accepted += in_a_row
    lesson = drafter_loss(network, target, cut(samples, 0), GUESSES)
    expected = torch.stack([torch.stack(part).mean() for part in errors]).mean()
    assert float(lesson.loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-9)
    assert lesson.accepted == pytest.approx(accepted / starts)


def test_answers_of_one_token_have_nothing_to_guess(target: DiffusionGemma) -> None:
    network = tiny_network()
    lesson = drafter_loss(network, target, cut(draw_samples((6, 1), (3, 1)), 0), GUESSES)
    lesson.loss.backward()
    assert (float(lesson.loss.detach()), lesson.accepted) == (0.0, 0.0)


def test_the_targets_weights_get_no_gradient_and_all_of_the_drafters_do() -> None:
    target, network = tiny_model(), tiny_network()
    drafter_loss(network, target, cut(draw_samples((9, 8), (4, 11)), 0), GUESSES).loss.backward()
    assert all(parameter.grad is None for parameter in target.parameters())
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in network.parameters() if parameter.grad is not None)
    assert all(parameter.grad is not None for parameter in network.parameters())


def continuation(target: DiffusionGemma, prompt: list[int], count: int) -> Sample:
    """A prompt and what the target itself says behind it."""
    row = list(prompt)
    while len(row) < len(prompt) + count:
        row.append(greedy(target, row)[-1])
    return Sample(prompt, row[len(prompt) :])


def test_a_batch_learnt_by_heart_is_guessed_whole(target: DiffusionGemma) -> None:
    samples = [continuation(target, sample.prompt, 9) for sample in draw_samples((9, 1), (4, 1), (7, 1), seed=5)]
    batch, network = cut(samples, 0), tiny_network()
    config = DrafterConfig(warmup=5, peak_rate=1e-2, weight_decay=0.0, ema=0.9, steps=90).schedule
    state, losses = TrainState(network, config), []
    for _ in range(90):
        lesson = drafter_loss(network, target, batch, GUESSES)
        lesson.loss.backward()
        state.update()
        losses.append(float(lesson.loss.detach()))
    assert losses[-1] < 0.05 < 1.0 < losses[0]
    assert drafter_loss(network, target, batch, GUESSES).accepted > 2.5
    for sample in samples:
        row, at = sample.prompt + sample.answer, len(sample.prompt) + 1
        kv = target.new_kv(1, at)
        hidden = target.encode(torch.tensor([row[:at]]), kv)
        need = Guess(token=row[at], hidden=hidden[0, -1], at=at, size=GUESSES)
        assert Assistant(network, target).guess(need, kv) == row[at + 1 : at + 1 + GUESSES]


def test_a_drafter_of_lab_is_small() -> None:
    network = AssistantNetwork(drafter_config(lab_config(2048), 4))
    sizes = {name: parameter.numel() for name, parameter in network.named_parameters()}
    table = sizes.pop("embed_tokens.weight")
    assert 0.5e6 < sum(sizes.values()) < 0.7e6
    assert 2 * (table + sum(sizes.values())) < 2e6


def test_a_target_without_sliding_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="the target has no sliding_attention layer"):
        drafter_config(replace(SHAPE, layers=SHAPE.layers[1:2]), 4)


CONFIG = DrafterConfig(
    steps=10,
    examples=2,
    guesses=2,
    mixture={"parallel_rule": 0.5, "sequential_rule": 0.5},
    warmup=2,
    peak_rate=1e-2,
    ema=0.9,
    log_every=1,
    checkpoint_s=0.0,
)


@pytest.fixture(scope="module", autouse=True)
def _shrink() -> Iterator[None]:
    """Every run of this file trains a narrow drafter."""
    whole: Callable[..., AssistantConfig] = drafter_config

    def narrow(target: ModelConfig, guesses: int) -> AssistantConfig:
        return replace(whole(target, guesses), hidden_size=16, intermediate_size=16)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drafter, "drafter_config", narrow)
        yield


def without_times(entries: list[Entry]) -> list[Entry]:
    return [{key: value for key, value in entry.items() if key != "elapsed_s"} for entry in entries]


def test_an_interrupted_run_goes_on_as_the_straight_one_to_the_bit(tmp_path: Path) -> None:
    told: list[Entry] = []
    straight = train_drafter(tmp_path / "straight", CONFIG, report=told.append)
    resumed: list[Entry] = []

    def interrupt(entry: Entry) -> None:
        if entry["step"] == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_drafter(tmp_path / "broken", CONFIG, report=interrupt)
    broken = train_drafter(tmp_path / "broken", CONFIG, report=resumed.append)
    assert [entry["step"] for entry in resumed] == list(range(4, 11))
    assert without_times(resumed) == without_times(told)[3:]
    assert (broken / "model.safetensors").read_bytes() == (straight / "model.safetensors").read_bytes()
    assert set(told[0]) == {"step", "examples", "elapsed_s", "loss", "accepted", "norm"}
    assert told[-1]["loss"] < told[0]["loss"]


def test_the_checkpoint_holds_the_average_and_guesses_as_it_does(tmp_path: Path) -> None:
    checkpoint = train_drafter(tmp_path, CONFIG, report=lambda _: None, minutes=60.0)
    assert sorted(file.name for file in checkpoint.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
    ]
    target = load_model(BUNDLED / "lab", dtype=torch.float32)
    loaded = load_assistant(checkpoint, target)
    assert loaded.network.config.draft_tokens == CONFIG.guesses
    average: dict[str, Tensor] = torch.load(tmp_path / "state.pt")["average"]
    own = AssistantNetwork(loaded.network.config)
    own.load_state_dict(own.state_dict() | {name: value.bfloat16().float() for name, value in average.items()})
    kv = target.new_kv(1, 40)
    hidden = target.encode(torch.arange(100, 140)[None], kv)
    need = Guess(token=77, hidden=hidden[0, -1], at=40, size=4)
    assert loaded.guess(need, kv) == Assistant(own, target).guess(need, kv)
    assert any(not torch.equal(value, initial(own.config)[name]) for name, value in average.items())


def initial(config: AssistantConfig) -> dict[str, Any]:
    return initialise(AssistantNetwork(config), CONFIG.seed).state_dict()


def test_a_fresh_run_discards_the_old_one(tmp_path: Path) -> None:
    short = replace(CONFIG, steps=2)
    train_drafter(tmp_path, short, report=lambda _: None)
    again: list[Entry] = []
    train_drafter(tmp_path, short, report=again.append)
    assert again == []
    train_drafter(tmp_path, short, report=again.append, resume=False)
    assert [entry["step"] for entry in again] == [1, 2]
    assert len((tmp_path / "curve.jsonl").read_text().splitlines()) == 2


def test_a_config_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="guesses is 0; must be at least 1"):
        DrafterConfig(guesses=0)
    with pytest.raises(ValueError, match="peak_rate is 0; must be above 0"):
        DrafterConfig(peak_rate=0)
