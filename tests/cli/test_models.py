"""The list of checkpoints that are on this machine."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mezzotint.cli import app


@pytest.fixture
def places(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with one bundled checkpoint, and an empty cache."""
    shutil.copytree(tiny, tmp_path / "bundled" / "lab")
    (tmp_path / "bundled" / "half").mkdir()
    (tmp_path / "hub").mkdir()
    monkeypatch.setattr("mezzotint.model.locate.BUNDLED", tmp_path / "bundled")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def cache(places: Path, name: str, checkpoint: Path | None, card: str | None = None) -> Path:
    """Put a repository into the cache as the hub's library does."""
    repo = places / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = repo / "snapshots" / "0123abc"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text("0123abc")
    if checkpoint is not None:
        shutil.copytree(checkpoint, snapshot)
    else:
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text('{"model_type": "bert"}')
    if card is not None:
        (snapshot / "README.md").write_text(card)
    return snapshot


def listed() -> list[dict[str, object]]:
    result = CliRunner().invoke(app, ["models", "--json"])
    assert result.exit_code == 0
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def test_a_bundled_checkpoint_is_listed_with_its_bytes_and_licence(places: Path) -> None:
    folder = places / "bundled" / "lab"
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert listed() == [{"name": "lab", "path": str(folder), "size": size, "licence": "Apache-2.0"}]


def test_a_cached_checkpoint_is_listed_if_it_runs_here(places: Path, tiny: Path) -> None:
    ours = cache(places, "owner/ours", tiny, card="---\nlicense: mit\n---\n")
    quiet = cache(places, "owner/quiet", tiny)
    cache(places, "owner/bert", None)
    weightless = cache(places, "owner/weightless", tiny)
    (weightless / "model.safetensors").unlink()
    assert [(each["name"], each["path"], each["licence"]) for each in listed()[1:]] == [
        ("owner/ours", str(ours), "mit"),
        ("owner/quiet", str(quiet), None),
    ]


def test_without_a_cache_the_bundled_ones_are_listed(places: Path) -> None:
    (places / "hub").rmdir()
    assert [each["name"] for each in listed()] == ["lab"]


def test_the_text_form_has_a_line_a_checkpoint(places: Path, tiny: Path) -> None:
    cache(places, "owner/quiet", tiny)
    lines = CliRunner().invoke(app, ["models"]).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["lab", "owner/quiet"]
    assert "Apache-2.0" in lines[0]
    assert "licence unknown" in lines[1]
    assert lines[0].endswith(str(places / "bundled" / "lab"))
