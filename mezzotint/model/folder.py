"""A checkpoint's folder: opened with every tensor accounted for, and written; of which network is not known here."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from mezzotint.model.fields import CheckpointError
from mezzotint.model.names import Account, Shape
from mezzotint.model.shards import SINGLE, Shards

_DTYPES = (torch.float64, torch.float32, torch.bfloat16)


class Opened(NamedTuple):
    """An opened checkpoint whose names and shapes are all accounted for; shapes by our names."""

    shapes: dict[str, Shape]
    shards: Shards
    account: Account

    def check_head(self) -> None:
        """Refuse a stored output head that differs from the embedding: we run them tied. Raises: CheckpointError."""
        head, embedding = self.account.head, self.account.sources["embed_tokens.weight"][0]
        if head is not None and not torch.equal(self.shards.read(head), self.shards.read(embedding)):
            raise CheckpointError(
                f"{self.shards.stored[head].file}: {head} differs from {embedding}; this model ties its head "
                "to the embedding, so another head cannot be honoured: use a checkpoint with tied embeddings"
            )

    def read(self, name: str, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Our tensor `name`: the stored one where dtype and device allow, else a converted copy; finite.

        Whole numbers become int64. Raises: CheckpointError naming the tensor.
        """
        parts = self.account.sources[name]
        if not self.shards.stored[parts[0]].dtype.is_floating_point:
            return self.shards.read(parts[0]).to(device, torch.int64)
        if len(parts) == 1:
            tensor = self.shards.read(parts[0]).to(device, dtype)
        else:
            tensor = torch.empty(self.shapes[name], dtype=dtype, device=device)
            slots = tensor.view(len(parts), *self.shards.stored[parts[0]].shape)
            for slot, part in zip(slots, parts, strict=True):
                slot.copy_(self.shards.read(part))
        check_finite(f"{self.shards.stored[parts[0]].file}: {parts[0]}", tensor)
        return tensor

    def read_all(self, dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
        """Every tensor by our name; see `read`."""
        return {name: self.read(name, dtype, device) for name in self.account.sources}


def write_folder(folder: Path, descriptions: Mapping[str, dict[str, Any]], tensors: Mapping[str, Tensor]) -> None:
    """Write model.safetensors and JSON files by name; an interrupted write leaves old weights whole.

    Raises: CheckpointError for a tensor that is not finite, before anything is written.
    """
    for name, tensor in tensors.items():
        check_finite(name, tensor)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{SINGLE}.partial"
    save_file(dict(tensors), partial, metadata={"format": "pt"})
    partial.replace(folder / SINGLE)
    for name, content in descriptions.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def check_dtype(dtype: torch.dtype) -> None:
    """Refuse an element type that no model runs in. Raises: CheckpointError naming those that work."""
    if dtype not in _DTYPES:
        raise CheckpointError(f"dtype is {dtype}, must be one of {', '.join(map(str, _DTYPES))}")


def check_finite(name: str, tensor: Tensor) -> None:
    """Refuse nan and infinity. One pass without scratch: least and greatest carry a nan along.

    Raises: CheckpointError with both.
    """
    least, greatest = torch.aminmax(tensor)
    if not (least.isfinite() and greatest.isfinite()):
        raise CheckpointError(
            f"{name} is not finite in {tensor.dtype} (from {least.item()} to {greatest.item()}); "
            "the weights are damaged or too large for this dtype: download them again, or choose a wider one"
        )
