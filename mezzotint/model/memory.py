"""How much memory a model needs, from its config alone, and how much there is; nothing is allocated here."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from mezzotint.model.config import ModelConfig
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.fields import CheckpointError
from mezzotint.model.fused import fuses, layer_bytes
from mezzotint.model.kv import kv_bytes

# A vocabulary pass holds one block of scores, their powers and the weights' own product: some 32 bytes each.
_BLOCK_BYTES = 32 << 18

Network = TypeVar("Network", bound=nn.Module)

_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """What a model needs: weights, the fused copy of small layers, keys and values, and scratch.

    Scratch is that of a vocabulary pass over every canvas.
    """

    weights_bytes: int
    fused_bytes: int
    kv_bytes: int
    scratch_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.weights_bytes + self.fused_bytes + self.kv_bytes + self.scratch_bytes


class _Unfilled(TorchFunctionMode):
    """Leaves out normal_, which on the meta device fills nothing and takes seconds to import a compiler."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        return named["tensor"] if func is nn.init.normal_ else func(*args, **named)


def outline(config: ModelConfig) -> DiffusionGemma:
    """The network on the meta device: every name, shape and module, and no memory."""
    return on_meta(lambda: DiffusionGemma(config))


def on_meta(build: Callable[[], Network]) -> Network:
    """What `build` returns, made on the meta device."""
    with torch.device("meta"), _Unfilled():
        return build()


def estimate(config: ModelConfig, *, dtype: torch.dtype, context_tokens: int, rows: int) -> MemoryEstimate:
    """Memory for `rows` requests of up to `context_tokens` tokens each, canvas included, in `dtype`."""
    network = outline(config).to(dtype)
    layers = layer_bytes(network)
    soft_bytes = 2 * max(4, dtype.itemsize) * rows * config.canvas_length * config.hidden_size
    return MemoryEstimate(
        weights_bytes=sum(tensor.nbytes for tensor in network.state_dict().values()),
        fused_bytes=layers if fuses(layers) else 0,
        kv_bytes=rows * kv_bytes(config, context_tokens, dtype),
        scratch_bytes=_BLOCK_BYTES + soft_bytes,
    )


def available_bytes(device: torch.device) -> int:
    """Bytes that can be filled on `device` without pushing others out.

    On CUDA what is free; on a host what is available to it or, where that is less, to the container we run in.
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    host, container = _host_bytes(), _container_bytes()
    return host if container is None else min(host, container)


def _host_bytes() -> int:
    if _MEMINFO.is_file():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _container_bytes() -> int | None:
    """What the control group (v2) leaves us; None where there is none, or none that limits memory."""
    limit, current, stat = (_CGROUP / f"memory.{name}" for name in ("max", "current", "stat"))
    if not (limit.is_file() and current.is_file()) or limit.read_text().strip() == "max":
        return None
    # The group is charged for files that it has read, and gives those pages up when it needs them.
    lines = stat.read_text().splitlines() if stat.is_file() else []
    cached = sum(int(line.split()[1]) for line in lines if line.startswith(("active_file ", "inactive_file ")))
    return max(0, int(limit.read_text()) - int(current.read_text()) + cached)


def check_memory(need: MemoryEstimate, *, device: torch.device, limit_bytes: int | None = None) -> None:
    """Refuse a model that does not fit into `limit_bytes`, or where that is None into what `device` has.

    Raises: CheckpointError with need, have and remedy.
    """
    if device.type == "cuda" and not torch.cuda.is_available():
        raise CheckpointError(f"device is {device}, and torch finds no CUDA device here; use cpu")
    have = available_bytes(device) if limit_bytes is None else limit_bytes
    if need.total_bytes > have:
        raise CheckpointError(
            f"the model needs {_size(need.total_bytes)} (weights {_size(need.weights_bytes)}, "
            f"fused layers {_size(need.fused_bytes)}, keys and values {_size(need.kv_bytes)}, "
            f"vocabulary pass {_size(need.scratch_bytes)}), "
            f"and {device} has {_size(have)} {'available' if limit_bytes is None else 'as its limit'}; "
            "use a smaller checkpoint or dtype, free memory, or name another device"
        )


def _size(count: int) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"
