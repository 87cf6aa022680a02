"""From the name of a model to its folder: one on disk, a bundled one, or a download; reads nothing in it."""

from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

from mezzotint.model.fields import CheckpointError

BUNDLED = Path(__file__).parents[1] / "checkpoints"

# Weights, their description, what turns text into ids, and the licence; nothing else of a repository is downloaded.
_NEEDED = [
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*-of-*.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "README.md",  # its header states the licence
]


def resolve(name_or_path: str) -> Path:
    """The folder of a checkpoint: one on disk, a bundled one such as `lab`, or that of a hub id `owner/name`.

    Raises: CheckpointError that says what was tried and what to do.
    """
    folder = Path(name_or_path).expanduser()
    if name_or_path and folder.is_dir():
        return folder
    if name_or_path and folder.exists():
        raise CheckpointError(f"{folder} is a file; name the folder that holds config.json and the weights")
    bundled = sorted(file.parent.name for file in BUNDLED.glob("*/config.json"))
    if name_or_path in bundled:
        return BUNDLED / name_or_path
    if len(folder.parts) != 2 or name_or_path.startswith((".", "/", "~")):
        raise CheckpointError(
            f"there is no folder {name_or_path!r}, and it is neither a bundled model "
            f"({', '.join(bundled) or 'none'}) nor a hub id owner/name; check the spelling"
        )
    return _download(name_or_path)


def _download(hub_id: str) -> Path:
    try:
        return Path(snapshot_download(hub_id, allow_patterns=_NEEDED))
    except GatedRepoError as error:
        raise CheckpointError(
            f"{hub_id} is gated: accept its terms at https://huggingface.co/{hub_id}, then log in with `hf auth login`"
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise CheckpointError(
            f"the hub has no model {hub_id!r} that you may see; check the spelling, "
            "or log in with `hf auth login` if it is private"
        ) from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise CheckpointError(
            f"{hub_id} is not in the local cache, and the hub did not answer "
            f"({type(error).__name__}: {error}); connect once to download it, or name a folder"
        ) from error
