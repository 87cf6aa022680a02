"""The safetensors files of one checkpoint: what their headers declare, and memory-mapped reading."""

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from mezzotint.model.fields import CheckpointError, read_json

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"

# The element types of plain weights; whole numbers and 8-bit floats are those of quantised ones.
_DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
# Whole numbers that are none: token ids, listed by the ordered head of an assistant.
_IDS = {"I64": torch.int64, "I32": torch.int32}
_LISTS = ".token_ordering"

_QUANTISED = (
    "weight_scale weight_scale_2 weight_scale_inv input_scale weight_packed weight_zero_point "
    "qweight qzeros scales g_idx SCB"
).split()


class Stored(NamedTuple):
    """A tensor as its file's header declares it."""

    file: Path
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def bytes(self) -> int:
        """Stored size."""
        return prod(self.shape) * self.dtype.itemsize


class Shards:
    """Open files of a checkpoint: `stored` tells of every tensor, `read` maps one and copies nothing."""

    def __init__(self, files: Mapping[Path, Any]) -> None:
        """Take open files, each a `safe_open` by its path."""
        self._files = files
        self.stored = {
            name: _declared(file, handle, name) for file, handle in files.items() for name in sorted(handle.keys())
        }

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the single file or all the files of the index.

        Raises: CheckpointError for a file that is missing, cut short or no safetensors, for an index that its
        files contradict, and for quantised weights.
        """
        if (folder / SINGLE).is_file():
            return cls({folder / SINGLE: _open(folder / SINGLE)})
        if not (folder / INDEX).is_file():
            raise CheckpointError(
                f"{folder} holds neither {SINGLE} nor {INDEX}; only safetensors weights are read: "
                "convert others with their own tools, or name another folder"
            )
        places = _weight_map(folder)
        files = {folder / name: _open(folder / name) for name in sorted(set(places.values()))}
        _check_index(folder, places, files)
        return cls(files)

    def read(self, name: str) -> Tensor:
        """The tensor as stored, backed by the file itself; pages enter memory when they are touched."""
        tensor: Tensor = self._files[self.stored[name].file].get_tensor(name)
        return tensor


def _open(file: Path) -> Any:
    if not file.is_file():
        raise CheckpointError(f"{file} does not exist, but {INDEX} names it; download it again")
    try:
        return safe_open(file, framework="pt", device="cpu")
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{file} is cut short, corrupt or no safetensors file ({error}); download it again "
            "(a file of a hundred bytes is a git-lfs pointer: `git lfs pull` fetches what it stands for)"
        ) from error


def _declared(file: Path, handle: Any, name: str) -> Stored:
    header = handle.get_slice(name)
    kind = header.get_dtype()
    known = _IDS if name.endswith(_LISTS) else _DTYPES
    if kind not in known or name.rpartition(".")[2] in _QUANTISED:
        raise CheckpointError(
            f"{file}: {name} ({kind}) belongs to quantised weights, which this version does not read; "
            "use the release in bfloat16"
        )
    return Stored(file, tuple(header.get_shape()), known[kind])


def _weight_map(folder: Path) -> dict[str, str]:
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise CheckpointError(f"{folder / INDEX} has no weight_map of tensor names to files; download it again")
    for name, file in places.items():
        if not isinstance(file, str) or Path(file).name != file:
            raise CheckpointError(
                f"{folder / INDEX}: {name} lies in {file!r}, must be the name of a file beside the index"
            )
    return places


def _check_index(folder: Path, places: Mapping[str, str], files: Mapping[Path, Any]) -> None:
    held = {file.name: set(handle.keys()) for file, handle in files.items()}
    for name, file in places.items():
        if name not in held[file]:
            raise CheckpointError(
                f"{folder / INDEX} places {name} in {file}, which does not hold it; download both again"
            )
    for file, names in held.items():
        strays = sorted(name for name in names if places.get(name) != file)
        if strays:
            raise CheckpointError(
                f"{folder / file} holds {strays[0]}, which {INDEX} does not place there "
                f"({len(strays)} such tensors); download both again"
            )
