import json
import re
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.weights import CheckpointError, load_model
from tests.model.checkpoints import assert_same_weights


def test_a_wrong_folder_is_refused_with_what_it_lacks(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config.json does not exist; name the folder of a whole"):
        load_model(folder / "nowhere")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"neither model.safetensors nor model.safetensors.index.json"):
        load_model(folder)


def test_a_file_that_is_cut_short_or_something_else_is_refused(folder: Path) -> None:
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    for content in (
        whole[:-1],
        whole[:100],
        b"",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0",
    ):
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"model.safetensors is cut short, corrupt or no safetensors"):
            load_model(folder)


@pytest.fixture
def sharded(folder: Path) -> Path:
    """The same checkpoint in two files and an index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    halves = {f"model-0000{number}-of-00002.safetensors": sorted(tensors)[number - 1 :: 2] for number in (1, 2)}
    for file, names in halves.items():
        save_file({name: tensors[name] for name in names}, folder / file)
    write_index(folder, {name: file for file, names in halves.items() for name in names})
    return folder


def write_index(folder: Path, weight_map: dict[str, str]) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def read_index(folder: Path) -> dict[str, str]:
    places: dict[str, str] = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
    return places


def test_a_sharded_checkpoint_is_the_same_as_a_single_file(model: DiffusionGemma, sharded: Path) -> None:
    assert_same_weights(load_model(sharded), model)


def test_an_index_that_its_files_contradict_is_refused(sharded: Path) -> None:
    places = read_index(sharded)
    norm = "model.decoder.norm.weight"
    here, there = places[norm], next(file for file in places.values() if file != places[norm])
    wrong = {
        f"places {norm} in {there}, which does not hold it": places | {norm: there},
        f"{here} holds {norm}, which": {name: file for name, file in places.items() if name != norm},
        "model-3.safetensors does not exist, but": places | {"x": "model-3.safetensors"},
        "must be the name of a file beside the index": places | {"x": "../model.safetensors"},
        "has no weight_map": {},
    }
    for message, index in wrong.items():
        write_index(sharded, index)
        with pytest.raises(CheckpointError, match=re.escape(message)):
            load_model(sharded)
