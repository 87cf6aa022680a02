"""From an assistant's folder to a drafter beside its target, and back; other models' folders are read by weights."""

from pathlib import Path

import torch
from torch import Tensor

from mezzotint.model.assistant import Assistant, AssistantNetwork, source_layers
from mezzotint.model.assistant_config import read_assistant_config
from mezzotint.model.config_json import assistant_json
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fields import CheckpointError
from mezzotint.model.folder import Opened, check_dtype, write_folder
from mezzotint.model.locate import resolve
from mezzotint.model.memory import MemoryEstimate, check_memory, on_meta
from mezzotint.model.names import account_assistant, assistant_name
from mezzotint.model.shards import Shards

_ORDERING = "masked_embedding.token_ordering"


def load_assistant(path: Path | str, target: DiffusionGemma, *, memory_limit_bytes: int | None = None) -> Assistant:
    """The drafter of a checkpoint (folder, bundled name or hub id), in the dtype and on the device of `target`.

    memory_limit_bytes: what its weights may take; None asks the device what it has.
    Config, names, shapes and memory are accounted for before a weight is read, and every weight is checked.
    Raises: CheckpointError naming file, key or tensor and the remedy, or what does not fit the target.
    """
    folder = path if isinstance(path, Path) else resolve(path)
    config = read_assistant_config(folder)
    source_layers(config, target.config)
    network = on_meta(lambda: AssistantNetwork(config)).to(target.dtype)
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    shards = Shards.open(folder)
    opened = Opened(shapes, shards, account_assistant(shapes, shards.stored))
    weights_bytes = sum(tensor.nbytes for tensor in network.state_dict().values())
    need = MemoryEstimate(weights_bytes=weights_bytes, fused_bytes=0, kv_bytes=0, scratch_bytes=0)
    check_memory(need, device=target.device, limit_bytes=memory_limit_bytes)
    opened.check_head()
    weights = opened.read_all(target.dtype, target.device)
    _check_ordering(folder, weights)
    network.load_state_dict(weights, assign=True)
    return Assistant(network.requires_grad_(requires_grad=False).eval(), target)


def write_assistant(network: AssistantNetwork, path: Path | str, *, dtype: torch.dtype = torch.bfloat16) -> None:
    """Write the checkpoint that Hugging Face reads: config.json, generation_config.json, model.safetensors.

    An interrupted write leaves old weights whole.
    Raises: CheckpointError for a config that the format cannot hold, a dtype that no model runs in, or a weight that
    is not finite.
    """
    check_dtype(dtype)
    config = network.config
    descriptions = {
        "config.json": assistant_json(config, dtype),
        "generation_config.json": {
            "is_assistant": True,
            "num_assistant_tokens": config.draft_tokens,
            "num_assistant_tokens_schedule": "constant",
        },
    }
    write_folder(
        Path(path),
        descriptions,
        {assistant_name(own): _stored(own, value, dtype) for own, value in network.state_dict().items()},
    )


def _stored(own: str, tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.detach().to("cpu", tensor.dtype if own == _ORDERING else dtype).contiguous()


def _check_ordering(folder: Path, weights: dict[str, Tensor]) -> None:
    """Refuse an ordered head that does not list every id once: some tokens could never be guessed."""
    listed = weights.get(_ORDERING)
    if listed is not None and not torch.equal(listed.sort().values, torch.arange(len(listed), device=listed.device)):
        raise CheckpointError(
            f"{folder}: {_ORDERING} must list every token id from 0 to {len(listed) - 1} once; "
            "the weights are damaged: download them again"
        )
