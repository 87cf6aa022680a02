"""Where a model runs and in what numbers, from the names that users give; nothing is loaded here."""

from typing import Any

import torch
from torch import Tensor


def parse_dtype(name: str | None) -> torch.dtype | None:
    """The dtype of a name; None stays None. Raises: ValueError naming the value and what works."""
    known = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}
    if name is None:
        return None
    if name not in known:
        raise ValueError(f"dtype is {name!r}; choose one of {', '.join(known)}")
    return known[name]


def parse_device(name: str) -> torch.device:
    """The device of a name, tried out. Raises: ValueError naming the value and what works."""
    try:
        place = torch.device(name)
        torch.zeros(1, device=place).item()  # read back, for "meta" lets itself be filled and holds nothing
    except (RuntimeError, AssertionError, ImportError, TypeError) as error:  # torch has no narrower class
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device is {name!r}, which torch cannot use here ({reason}); 'cpu' works") from None
    return place


def check_threads(threads: Any) -> None:
    """Refuse what is no number of threads. Raises: ValueError naming value and remedy."""
    whole = isinstance(threads, int) and not isinstance(threads, bool)
    if threads is not None and not (whole and threads >= 1):
        raise ValueError(f"threads is {threads!r}; give a whole number from 1 up")


def is_awaited(tensor: Tensor) -> bool:
    """Whether the host would have to wait for a look at the numbers of a tensor, as it has for those of a GPU."""
    return tensor.device.type != "cpu"


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on a device; the host goes on while it travels, which only pinned memory allows."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
