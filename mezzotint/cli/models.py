"""`mezzotint models`: the checkpoints that are here already; what a name leads to is for the model room."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

_BUNDLED_LICENCE = "Apache-2.0"  # the package's own


class Listed(NamedTuple):
    """One checkpoint on this machine. size: bytes; licence: None where the checkpoint does not say."""

    name: str
    path: str
    size: int
    licence: str | None


def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print one list of objects.")] = False,
) -> None:
    """List the checkpoints on this machine: the bundled ones, and those that the Hugging Face cache holds."""
    listed = [*_bundled(), *_cached()]
    if as_json:
        print(json.dumps([each._asdict() for each in listed], ensure_ascii=False))
        return
    width = max((len(each.name) for each in listed), default=0)
    for each in listed:
        licence = each.licence or "licence unknown"
        print(f"{each.name:<{width}}  {each.size / 1e6:>9.1f} MB  {licence}  {each.path}")


def _bundled() -> Iterator[Listed]:
    # The hub's library takes half a second to import, and --help is not to wait for it.
    from mezzotint.model.locate import BUNDLED

    for folder in sorted(file.parent for file in BUNDLED.glob("*/config.json")):
        size = sum(file.stat().st_size for file in folder.iterdir())
        yield Listed(folder.name, str(folder), size, _BUNDLED_LICENCE)


def _cached() -> Iterator[Listed]:
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.errors import CacheNotFound

    try:
        repos = scan_cache_dir(HF_HUB_CACHE).repos
    except CacheNotFound:
        return
    for repo in sorted(repos, key=lambda repo: repo.repo_id):
        for revision in repo.revisions:
            folder = Path(revision.snapshot_path)
            if "main" in revision.refs and _runs_here(folder):
                yield Listed(repo.repo_id, str(folder), revision.size_on_disk, _stated_licence(folder))


def _runs_here(folder: Path) -> bool:
    from mezzotint.model.config import read_config
    from mezzotint.model.fields import CheckpointError

    try:
        read_config(folder)
    except CheckpointError:
        return False
    return any(folder.glob("*.safetensors"))


def _stated_licence(folder: Path) -> str | None:
    card = folder / "README.md"
    found = re.search(r"^license: *(\S+)", card.read_text(), re.MULTILINE) if card.is_file() else None
    return found and found[1]
