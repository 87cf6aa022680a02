"""What figures of a ledger hold for: the weights, how and where they run, the arms and their prices, in one word."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from mezzotint import __version__
from mezzotint.types import ArmTraits


def fingerprint(arms: Sequence[ArmTraits], checkpoint: Path, running: Mapping[str, Any]) -> str:
    """A word that changes where what was measured may no longer hold.

    checkpoint: its folder, known by the names and sizes of its files and the text of the small ones. running: how the
    model runs: dtype, device, threads, machine code or not. Returns: 16 hexadecimal digits.
    """
    told = {
        "version": __version__,
        "machine": [platform.system(), platform.machine(), os.cpu_count()],
        "checkpoint": [_describe(file) for file in sorted(checkpoint.iterdir()) if file.is_file()],
        "running": dict(running),
        "arms": [{**asdict(arm), "abilities": sorted(arm.abilities)} for arm in arms],
    }
    return sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _describe(file: Path) -> tuple[str, int, str]:
    is_small = file.suffix in (".json", ".jinja") and file.stat().st_size < 1 << 20
    return file.name, file.stat().st_size, sha256(file.read_bytes()).hexdigest() if is_small else ""
