"""The recipe on a shrunken `lab`: from texts and random weights to a checkpoint that transformers reads."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from mezzotint.model.config import ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.locate import BUNDLED
from mezzotint.model.weights import load_model
from mezzotint.tasks import FAMILIES
from mezzotint.text.parse import parse_reply
from mezzotint.text.template import ChatTemplate
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.train import lab
from mezzotint.train.config import TrainConfig
from mezzotint.train.lab import initialise, lab_config, tokenise, train_lab

CONFIG = TrainConfig(
    steps=50,
    examples=3,
    canvases=2,
    widths=(16, 24),
    mixture={"parallel_rule": 0.5, "sequential_rule": 0.5},
    warmup=10,
    peak_rate=1e-2,
    ema=0.9,
    log_every=1,
)

Entry = dict[str, float]


def shrunken(vocab_size: int) -> ModelConfig:
    """`lab` with two narrow layers, one of each kind."""
    whole = lab_config(vocab_size)
    layers = tuple(layer._replace(head_dim=8) for layer in whole.layers[1:3])
    return replace(whole, hidden_size=32, intermediate_size=24, moe_intermediate_size=16, layers=layers)


@pytest.fixture(scope="module", autouse=True)
def _shrink() -> Iterator[None]:
    """Every run of this file is of the shrunken shape."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lab, "lab_config", shrunken)
        yield


class Run(NamedTuple):
    """A run that is over: its checkpoint, and what it told."""

    checkpoint: Path
    told: list[Entry]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run from random weights, long enough to have learnt which ids there are."""
    told: list[Entry] = []
    folder = tmp_path_factory.mktemp("lab")
    return Run(train_lab(folder, CONFIG, report=told.append, compiled=False), told)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_directory(BUNDLED / "lab")


def mean(entries: list[Entry], key: str) -> float:
    return sum(entry[key] for entry in entries) / len(entries)


def test_a_run_writes_state_curve_and_a_whole_checkpoint(trained: Run) -> None:
    folder = trained.checkpoint.parent
    assert trained.checkpoint == folder / "checkpoint"
    assert [entry["step"] for entry in trained.told] == list(range(1, 51))
    lines = (folder / "curve.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == trained.told
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint", "curve.jsonl", "state.pt"]
    assert sorted(path.name for path in trained.checkpoint.iterdir()) == [
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_the_checkpoint_holds_the_average_in_bfloat16(trained: Run) -> None:
    weights = load_model(trained.checkpoint).state_dict()
    state = torch.load(trained.checkpoint.parent / "state.pt")
    for name, average in state["average"].items():
        assert torch.equal(weights[name], average.bfloat16()), name
    assert any(not torch.equal(state["masters"][name], average) for name, average in state["average"].items())


def test_transformers_reads_the_checkpoint_whole_and_computes_the_same(trained: Run) -> None:
    from transformers import DiffusionGemmaForBlockDiffusion, DynamicCache

    oracle, loading = DiffusionGemmaForBlockDiffusion.from_pretrained(
        trained.checkpoint, dtype=torch.float32, output_loading_info=True
    )
    assert not any(loading.values()), loading
    model = load_model(trained.checkpoint, dtype=torch.float32)
    generator = torch.Generator().manual_seed(0)
    prompt, canvas = (torch.randint(3, 2048, (1, n), generator=generator) for n in (40, 64))
    kv, cache = model.new_kv(1, 104), DynamicCache(config=oracle.config.text_config)
    with torch.no_grad():
        encoded = model.encode(prompt, kv)
        theirs = oracle.model.encoder(prompt, attention_mask=torch.ones_like(prompt), cache=cache)
        said = oracle(cache=cache, decoder_input_ids=canvas, decoder_attention_mask=torch.ones(1, 104).long())
        ours = model.logits(model.denoise(canvas, kv))
    assert (encoded - theirs.last_hidden_state).abs().max() < 2e-4
    assert (ours - said.logits).abs().max() < 2e-4
    assert ours.std() > 0.5


def test_a_run_from_bfloat16_weights_alone_begins_where_the_last_one_stood(trained: Run, tmp_path: Path) -> None:
    told: list[Entry] = []
    config = replace(CONFIG, steps=4, easy_until=0.0, warmup=200)
    train_lab(tmp_path, config, report=told.append, start=trained.checkpoint, compiled=False)
    for key in ("causal", "denoise"):
        first, last = mean(trained.told[:4], key), mean(trained.told[-8:], key)
        assert last < first - 1.0
        assert abs(mean(told, key) - last) < 0.4 * (first - last)


def test_such_a_run_has_fresh_optimisers_and_warms_up(trained: Run, tmp_path: Path) -> None:
    config = replace(CONFIG, steps=1, warmup=200)
    train_lab(tmp_path, config, report=lambda _: None, start=trained.checkpoint, compiled=False)
    state = torch.load(tmp_path / "state.pt")
    assert (state["step"], config.rate(0)) == (1, 5e-5)
    before = load_model(trained.checkpoint, dtype=torch.float32).embed_tokens.weight
    moved = (state["masters"]["embed_tokens.weight"] - before).abs()
    # AdamW's first step moves each weight by the rate, whatever its gradient.
    assert moved.max() == pytest.approx(5e-5, rel=1e-2)
    assert moved.median() == pytest.approx(5e-5, rel=1e-2)


def test_a_state_in_the_folder_goes_before_the_start(trained: Run, tmp_path: Path) -> None:
    config, told = replace(CONFIG, steps=2), list[Entry]()
    train_lab(tmp_path, config, report=told.append, compiled=False)
    train_lab(tmp_path, replace(config, steps=3), report=told.append, start=trained.checkpoint, compiled=False)
    assert [entry["step"] for entry in told] == [1, 2, 3]
    assert told[2]["causal"] > mean(trained.told[-8:], "causal") + 1.0


def test_a_start_of_another_shape_is_refused(trained: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "lab_config", lambda size: replace(shrunken(size), sliding_window=128))
    with pytest.raises(ValueError, match="is not of lab's shape"):
        train_lab(tmp_path, CONFIG, report=lambda _: None, start=trained.checkpoint, compiled=False)


def test_minutes_that_are_up_still_end_in_a_checkpoint(tmp_path: Path) -> None:
    config = replace(CONFIG, steps=10**6, log_every=10)
    told: list[Entry] = []
    checkpoint = train_lab(tmp_path, config, report=told.append, minutes=0.05, compiled=False)
    steps = torch.load(tmp_path / "state.pt")["step"]
    assert 0 < steps < 10**6
    assert len(told) == steps // 10
    assert sum(entry["elapsed_s"] > 3.1 for entry in told) <= 1  # the step that ran when time was up
    assert load_model(checkpoint).config == shrunken(2048)


def test_parts_are_compiled_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[DiffusionGemma] = []
    monkeypatch.setattr(lab, "compile_parts", compiled.append)
    config = replace(CONFIG, steps=1)
    train_lab(tmp_path / "eager", config, report=lambda _: None, compiled=False)
    assert not compiled
    train_lab(tmp_path / "compiled", config, report=lambda _: None)
    assert len(compiled) == 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", FAMILIES)
def test_an_example_becomes_the_prompt_of_inference_and_a_closed_answer(
    name: str, seed: int, tokenizer: Tokenizer
) -> None:
    template = ChatTemplate.from_directory(BUNDLED / "lab", tokenizer)
    example = FAMILIES[name].generate(seed, "train")
    sample = tokenise(example, tokenizer, template)
    prompt = template.encode(example.messages, tools=example.tools, thinking=example.thinking)
    assert sample.prompt == prompt + tokenizer.encode_text(example.begins)
    assert sample.answer[-1] == tokenizer.control["<|tool_response>" if example.calls else "<turn|>"]
    assert sample.answer[-1] in lab_config(tokenizer.vocab_size).eos_ids
    filled = len(sample.answer) - (sample.given or 1)
    assert parse_reply(sample.answer[:filled], tokenizer) == example.reply
    assert tokenizer.decode(sample.answer[filled:]) == example.ends


def test_lab_is_small_enough_to_bundle_and_knows_its_tokenizers_ids(tokenizer: Tokenizer) -> None:
    config = lab_config(tokenizer.vocab_size)
    with torch.device("meta"):
        weights = DiffusionGemma(config).parameters()
    count = sum(weight.numel() for weight in weights)
    assert 5.5e6 < count < 6.5e6
    assert (config.bos_id, config.pad_id) == (tokenizer.bos_id, tokenizer.pad_id)
    ends = ("<eos>", "<turn|>", "<|tool_response>")
    assert config.eos_ids == tuple(tokenizer.control[end] for end in ends)


def test_random_weights_keep_the_size_of_what_flows_through_them() -> None:
    config = shrunken(2048)
    model = initialise(DiffusionGemma(config), 0)
    ids = torch.arange(3, 259).view(4, 64)
    with torch.no_grad():
        assert model.embed(ids).square().mean().sqrt() == pytest.approx(1.0, abs=0.1)
        logits = model.logits(model.encode(ids, model.new_kv(4, 64)))
    assert 0.5 < logits.std() < 2.0


def test_the_start_depends_on_the_seed_only() -> None:
    def weights(seed: int) -> dict[str, torch.Tensor]:
        return initialise(DiffusionGemma(shrunken(64)), seed).state_dict()

    one, same, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["embed_tokens.weight"], other["embed_tokens.weight"])


def test_a_fresh_run_discards_state_and_curve_and_leaves_the_rest(tmp_path: Path) -> None:
    for name in ("state.pt", "curve.jsonl", "notes.txt"):
        (tmp_path / name).write_text("old")
    train_lab(tmp_path, replace(CONFIG, steps=1), report=lambda _: None, resume=False, compiled=False)
    assert len((tmp_path / "curve.jsonl").read_text().splitlines()) == 1
    assert (tmp_path / "notes.txt").read_text() == "old"


@pytest.mark.parametrize("here", [False, True], ids=["no checkpoint", "another shape"])
def test_a_fresh_run_that_cannot_start_discards_nothing(
    trained: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    monkeypatch.setattr(lab, "lab_config", lambda size: replace(shrunken(size), sliding_window=128))
    start = str(trained.checkpoint) if here else "nowhere"
    for name in ("state.pt", "curve.jsonl"):
        (tmp_path / name).write_text("old")
    with pytest.raises(ValueError, match="is not of lab's shape" if here else "no folder 'nowhere'"):
        train_lab(tmp_path, CONFIG, report=lambda _: None, start=start, resume=False, compiled=False)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"state.pt": "old", "curve.jsonl": "old"}


def test_the_bundled_lab_is_a_start_by_its_name(trained: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[object] = []

    def load(start: object, *, dtype: torch.dtype) -> DiffusionGemma:
        asked.append(start)
        return load_model(trained.checkpoint, dtype=dtype)

    monkeypatch.setattr(lab, "load_model", load)
    train_lab(tmp_path, replace(CONFIG, steps=1), report=lambda _: None, start="lab", compiled=False)
    assert asked == ["lab"]
