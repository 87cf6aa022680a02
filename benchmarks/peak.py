"""How much memory a call adds to this process at its peak; what it calls is not its business."""

import ctypes
import gc
import re
from collections.abc import Callable
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_growth_bytes(call: Callable[[], object]) -> int | None:
    """Highest resident size during the call, less the size before it; None where the system does not tell.

    Everything counts: tensors, what libraries allocate beside them, pages of files touched the first time. So
    call it once before. Memory freed earlier is handed back first, or it would serve the call unseen.
    Source: proc(5), VmHWM, which a 5 written to clear_refs sets back.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        _RESET.write_text("5")
    except (OSError, AttributeError):  # no Linux, no glibc, or a sandbox that forbids it
        return None
    before = _status_bytes("VmRSS")
    call()
    return _status_bytes("VmHWM") - before


def _status_bytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert found, f"{_STATUS} has no {name}"
    return int(found[1]) * 1024
