"""The drafter's files, what it asks of its target, and its heads; the reference's numbers are in tests/contract."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from mezzotint.model.assistant import Assistant, AssistantNetwork, drafter_reach
from mezzotint.model.assistant_config import AssistantConfig, parse_assistant_config, read_assistant_config
from mezzotint.model.assistant_weights import load_assistant, write_assistant
from mezzotint.model.config import parse_config
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fields import CheckpointError, ConfigError
from mezzotint.model.ordered_head import OrderedHead
from mezzotint.model.shards import Shards
from mezzotint.model.weights import load_model
from mezzotint.types import Guess
from tests.model.checkpoints import TEXT, Tensors, random_model

TARGET = parse_config({"model_type": "gemma4_text", **TEXT})
CONFIG = AssistantConfig(
    target_width=16,
    vocab_size=40,
    hidden_size=8,
    intermediate_size=12,
    num_heads=2,
    layers=TARGET.layers,
    sliding_window=3,
    rms_norm_eps=1e-6,
    max_positions=64,
    draft_tokens=4,
)
ORDERED = replace(CONFIG, centroids=8, top_centroids=2)
ORDERING = "masked_embedding.token_ordering"


def random_network(config: AssistantConfig, seed: int = 3) -> AssistantNetwork:
    network, generator = AssistantNetwork(config), torch.Generator().manual_seed(seed)
    for name, tensor in network.state_dict().items():
        if name == ORDERING:
            tensor.copy_(torch.randperm(len(tensor), generator=generator))
        else:
            tensor.copy_(torch.randn(tensor.shape, generator=generator))
    return network


@pytest.fixture(scope="module")
def target() -> DiffusionGemma:
    return random_model(TARGET)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_assistant(random_network(ORDERED), tmp_path, dtype=torch.float32)
    return tmp_path


def rewrite(folder: Path, change: Callable[[Tensors], None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def restate(folder: Path, **changes: Any) -> None:
    """Change keys of config.json, those of the text config where they stand there."""
    config = json.loads((folder / "config.json").read_text())
    for key, value in changes.items():
        (config["text_config"] if key in config["text_config"] else config)[key] = value
    (folder / "config.json").write_text(json.dumps(config))


def pop(name: str) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.__delitem__(name)


def put(name: str, value: Tensor) -> Callable[[Tensors], None]:
    return lambda tensors: tensors.__setitem__(name, value)


@pytest.mark.parametrize("config", [CONFIG, ORDERED, replace(CONFIG, layers=TARGET.layers[1:])])
def test_a_written_assistant_reads_back_bit_for_bit(
    config: AssistantConfig, target: DiffusionGemma, tmp_path: Path
) -> None:
    network = random_network(config)
    write_assistant(network, tmp_path, dtype=torch.float32)
    loaded = load_assistant(str(tmp_path), target).network
    assert loaded.config == config
    assert loaded.state_dict().keys() == network.state_dict().keys()
    for name, tensor in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    assert not any(parameter.requires_grad for parameter in loaded.parameters())


def test_it_takes_the_dtype_of_its_target(folder: Path) -> None:
    loaded = load_assistant(folder, random_model(TARGET).bfloat16()).network
    assert {tensor.dtype for tensor in loaded.state_dict().values()} == {torch.bfloat16, torch.int64}


@pytest.mark.parametrize("config", [CONFIG, ORDERED])
def test_transformers_finds_every_key_it_wants_and_no_other(config: AssistantConfig, tmp_path: Path) -> None:
    from transformers import Gemma4AssistantForCausalLM

    network = random_network(config)
    write_assistant(network, tmp_path)
    load: Any = Gemma4AssistantForCausalLM.from_pretrained
    theirs, told = load(tmp_path, output_loading_info=True)
    assert not any(told.values()), told
    assert theirs.generation_config.num_assistant_tokens == 4
    assert theirs.config.use_ordered_embeddings == (config.centroids > 0)
    assert torch.equal(theirs.model.layers[1].layer_scalar, network.layers[1].layer_scalar.bfloat16())
    if config.centroids:
        assert torch.equal(theirs.masked_embedding.token_ordering, network.masked_embedding.token_ordering)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (pop("model.norm.weight"), "lacks model.norm.weight (1 such tensors)"),
        (pop("pre_projection.weight"), "lacks pre_projection.weight"),
        (pop(ORDERING), f"lacks {ORDERING}"),
        (put("model.layers.0.self_attn.k_proj.weight", torch.ones(16, 8)), "holds model.layers.0.self_attn.k_proj"),
        (put("post_projection.weight", torch.ones(8, 8)), "post_projection.weight has shape [8, 8], config.json asks"),
        (put("lm_head.weight", torch.ones(40, 8)), "lm_head.weight differs from model.embed_tokens.weight"),
        (put("model.layers.1.layer_scalar", torch.tensor([torch.nan])), "layers.1.layer_scalar is not finite"),
        (put("pre_projection.weight", torch.ones(8, 32).int()), "(I32) belongs to quantised weights"),
        (put(ORDERING, torch.ones(40)), "(F32) belongs to quantised weights"),
        (put(ORDERING, torch.zeros(40).long()), "must list every token id from 0 to 39 once"),
    ],
)
def test_a_damaged_assistant_is_refused_by_name(
    damage: Callable[[Tensors], None], message: str, folder: Path, target: DiffusionGemma
) -> None:
    rewrite(folder, damage)
    with pytest.raises(CheckpointError, match=re.escape(message)):
        load_assistant(folder, target)


def test_ids_may_be_stored_in_32_bits_and_the_head_beside_the_table(folder: Path, target: DiffusionGemma) -> None:
    def change(tensors: Tensors) -> None:
        tensors[ORDERING] = tensors[ORDERING].int()
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].clone()

    rewrite(folder, change)
    loaded = load_assistant(folder, target).network
    assert torch.equal(loaded.masked_embedding.token_ordering, random_network(ORDERED).masked_embedding.token_ordering)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_ordered_embedings": True}, "use_ordered_embedings is true; an unknown key"),
        ({"model_type": "gemma4"}, 'text_config: model_type is "gemma4"; only "gemma4_text" is supported'),
        ({"num_centroids": 7}, "vocab_size is 40, must be a multiple of num_centroids 7"),
        (
            {"centroid_intermediate_top_k": 9},
            "centroid_intermediate_top_k is 9, must lie between 1 and num_centroids 8",
        ),
        ({"num_kv_shared_layers": 1}, "num_kv_shared_layers is 1; only 2 is supported"),
        ({"hidden_size_per_layer_input": 8}, "hidden_size_per_layer_input is 8; only 0 is supported"),
        ({"enable_moe_block": True}, "enable_moe_block is true; only false is supported"),
        ({"num_attention_heads": 3}, "layer 0 has 2 KV heads, which do not divide num_attention_heads 3"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is false; only true is supported"),
        ({"layer_types": []}, "layer_types has 0 entries, num_hidden_layers is 2"),
        ({"num_hidden_layers": 0}, "num_hidden_layers is 0; must be a whole number of at least 1"),
    ],
)
def test_a_config_that_cannot_be_honoured_is_refused_by_key(
    changes: dict[str, Any], message: str, folder: Path, target: DiffusionGemma
) -> None:
    restate(folder, **changes)
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_assistant(folder, target)


def test_nothing_is_read_before_everything_is_accounted_for(
    folder: Path, target: DiffusionGemma, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shards, "read", lambda *_: pytest.fail("a weight was read"))
    with pytest.raises(CheckpointError, match=r"needs .* cpu has 1000 bytes as its limit"):
        load_assistant(folder, target, memory_limit_bytes=1000)
    with pytest.raises(CheckpointError, match="backbone_hidden_size is 16 in the drafter and 8 in the target"):
        load_assistant(folder, random_model(replace(TARGET, hidden_size=8)))


def test_an_assistant_is_no_model_of_its_own(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"'gemma4_assistant', a drafter .* load_assistant"):
        load_model(folder)


def test_a_model_is_no_assistant() -> None:
    with pytest.raises(ConfigError, match=r"model_type is 'gemma4', must be 'gemma4_assistant' for a drafter"):
        parse_assistant_config({"model_type": "gemma4"})


def test_a_head_without_centroids_forgets_their_numbers(folder: Path) -> None:
    restate(folder, use_ordered_embeddings=False)
    assert read_assistant_config(folder) == CONFIG


def test_absent_keys_have_the_references_defaults() -> None:
    from transformers import Gemma4AssistantConfig, Gemma4TextConfig

    absent: Any = {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
    theirs = Gemma4AssistantConfig(text_config=Gemma4TextConfig(**absent))
    config = parse_assistant_config({"model_type": "gemma4_assistant", "use_ordered_embeddings": True})
    assert config.target_width == theirs.backbone_hidden_size
    assert (config.centroids, config.top_centroids) == (theirs.num_centroids, theirs.centroid_intermediate_top_k)
    text: Any = theirs.text_config
    assert [layer.kind for layer in config.layers] == text.layer_types
    assert (config.hidden_size, config.sliding_window) == (text.hidden_size, text.sliding_window)


def test_a_network_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    network = random_network(CONFIG)
    network.state_dict()["norm.weight"][0] = torch.inf
    with pytest.raises(CheckpointError, match=r"model.norm.weight is not finite"):
        write_assistant(network, tmp_path / "new")
    with pytest.raises(CheckpointError, match=r"dtype is torch.float16, must be one of"):
        write_assistant(random_network(CONFIG), tmp_path / "new", dtype=torch.float16)
    odd = replace(CONFIG, layers=(TARGET.layers[1], TARGET.layers[0]))
    with pytest.raises(CheckpointError, match=r"an assistant's config.json has no place for that"):
        write_assistant(random_network(odd), tmp_path / "new")
    assert not (tmp_path / "new").exists()


FULL = TARGET.layers[1]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (replace(CONFIG, target_width=8), "backbone_hidden_size is 8 in the drafter and 16 in the target"),
        (replace(CONFIG, vocab_size=32), "vocab_size is 32 in the drafter and 40 in the target"),
        (replace(CONFIG, layers=(FULL._replace(head_dim=8),)), "head_dim of layer 0 is 8 in the drafter and 12 in"),
        (replace(CONFIG, layers=(FULL._replace(kv_heads=2),)), "num_key_value_heads of layer 0 is 2 in the drafter"),
    ],
)
def test_a_drafter_of_another_target_is_refused(config: AssistantConfig, message: str, target: DiffusionGemma) -> None:
    with pytest.raises(CheckpointError, match=message):
        Assistant(AssistantNetwork(config), target)


def test_a_target_lacks_the_layer_or_the_dtype_that_a_drafter_needs(target: DiffusionGemma) -> None:
    with pytest.raises(CheckpointError, match="layer 0 of the drafter is sliding_attention, and the target has no"):
        Assistant(AssistantNetwork(CONFIG), random_model(replace(TARGET, layers=(FULL,))))
    with pytest.raises(CheckpointError, match=r"dtype is torch.bfloat16 in the drafter and torch.float32 in the"):
        Assistant(AssistantNetwork(CONFIG).bfloat16(), target)


class Watching:
    """A context that notes which of its tokens are read."""

    def __init__(self, kv: Any) -> None:
        self.kv, self.read = kv, set[tuple[int, int, int]]()

    def pair(self, layer: int, first: int, end: int) -> Any:
        self.read.add((layer, first, end))
        return self.kv.pair(layer, first, end)


def test_only_what_is_settled_and_in_reach_is_read(target: DiffusionGemma) -> None:
    deep = random_model(replace(TARGET, layers=TARGET.layers * 2))
    drafter, kv = Assistant(random_network(CONFIG), deep), deep.new_kv(1, 16)
    hidden = deep.encode(torch.arange(12)[None], kv)
    watching = Watching(kv)
    need = Guess(token=8, hidden=hidden[0, 7], at=8, size=3)
    said = drafter.guess(need, watching)
    assert watching.read == {(2, 8 - drafter_reach(CONFIG), 8), (3, 0, 8)}
    kv.truncate(8)
    assert drafter.guess(need, kv) == said
    assert len(said) == 3
    assert drafter.guess(need._replace(size=0), kv) == []


def test_every_guess_of_a_round_stands_at_the_position_of_the_known_token(target: DiffusionGemma) -> None:
    drafter, kv = Assistant(random_network(CONFIG), target), target.new_kv(1, 16)
    hidden = target.encode(torch.arange(9)[None], kv)
    met: list[Any] = []
    step = drafter.network.layers[0].self_attn
    step.register_forward_pre_hook(lambda _, given: met.append(given[1].sin.clone()))
    drafter.guess(Guess(token=9, hidden=hidden[0, -1], at=9, size=3), kv)
    assert len(met) == 3
    assert all(torch.equal(each, met[0]) for each in met)
    frequencies = 1e4 ** -(torch.arange(4) * 2 / 8)
    assert torch.allclose(met[0][0, 4:], (9 * frequencies).sin())


def test_of_equally_likely_ids_the_ordered_head_takes_the_lowest() -> None:
    head = OrderedHead(4, 12, centroids=3, top=2)
    head.token_ordering.copy_(torch.tensor([11, 5, 2, 8, 0, 1, 3, 4, 6, 7, 9, 10]))
    torch.nn.init.eye_(head.centroids.weight)
    table = torch.zeros(12, 4)
    table[[5, 8]] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    hidden = torch.tensor([[3.0, 2.0, -1.0, 0.0]])
    assert head.best(hidden, table).tolist() == [5]
    table[0] = torch.tensor([2.0, 0.0, 0.0, 0.0])
    assert head.best(hidden, table).tolist() == [0]
    table[9] = torch.tensor([9.0, 0.0, 0.0, 0.0])  # likelier, but of the group that is not scored
    assert head.best(hidden, table).tolist() == [0]
    logits = head.logits(hidden, table)[0].tolist()
    assert logits == [6, 0, 0, 0, 0, 3, -1, -1, 3, -1, -1, 0]
