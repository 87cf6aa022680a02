from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

from mezzotint.model import locate
from mezzotint.model.fields import CheckpointError
from mezzotint.model.locate import resolve


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert resolve(str(tmp_path)) == tmp_path


def test_a_bundled_name_is_a_folder_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "BUNDLED", tmp_path)
    (tmp_path / "lab").mkdir()
    with pytest.raises(CheckpointError, match=r"neither a bundled model \(none\)"):
        resolve("lab")
    (tmp_path / "lab" / "config.json").touch()
    assert resolve("lab") == tmp_path / "lab"


@pytest.mark.parametrize("name", ["labb", "./a/b", "/a/b", "../b", "a/b/c", "~/b", ""])
def test_what_is_neither_a_folder_nor_a_hub_id_is_not_looked_up(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(locate, "snapshot_download", lambda *_, **__: pytest.fail("looked up"))
    with pytest.raises(CheckpointError, match=r"nor a hub id owner/name; check the spelling"):
        resolve(name)


def test_a_file_is_told_to_be_one(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.touch()
    with pytest.raises(CheckpointError, match=r"is a file; name the folder that holds config.json"):
        resolve(str(file))


def test_a_hub_id_downloads_only_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(hub_id: str, *, allow_patterns: list[str]) -> str:
        assert hub_id == "google/diffusiongemma-26B-A4B-it"
        assert {"config.json", "tokenizer.json", "README.md", "model-*-of-*.safetensors"} <= set(allow_patterns)
        assert not any(pattern.startswith("*") for pattern in allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr(locate, "snapshot_download", download)
    assert resolve("google/diffusiongemma-26B-A4B-it") == tmp_path


def test_without_network_a_model_that_is_not_cached_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"nobody/nothing is not in the local cache.*or name a folder"):
        resolve("nobody/nothing")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (GatedRepoError, "is gated: accept its terms at https://huggingface.co/a/b, then log in"),
        (RepositoryNotFoundError, "the hub has no model 'a/b' that you may see; check the spelling"),
    ],
)
def test_what_the_hub_refuses_is_told_with_its_remedy(
    error: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(hub_id: str, **_: Any) -> str:
        raise error.__new__(error)  # its constructor wants the whole answer of the hub

    monkeypatch.setattr(locate, "snapshot_download", refuse)
    with pytest.raises(CheckpointError, match=message):
        resolve("a/b")
