"""What a figure must stand beside: the machine that asked, versions and commit; measures nothing."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mezzotint import __version__


def describe(command: Sequence[str]) -> dict[str, str]:
    """Command, machine, versions and commit of this process, by name; the machine is that of whoever asks."""
    cores = f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} cores"
    return {
        "command": " ".join(command),
        "machine": f"{_processor()}, {cores}; {platform.system()} {platform.release()}",
        "versions": f"mezzotint {__version__}, Python {platform.python_version()}",
        "commit": _commit(),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.is_file() else None
    return found[1] if found else platform.processor() or platform.machine()


def _commit() -> str:
    """Of the checkout that this package runs from, if it is one."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return "not a checkout"
    try:
        told = [
            subprocess.run(["git", *more], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
            for more in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain"])
        ]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{told[0]} with changes" if told[1] else told[0]
