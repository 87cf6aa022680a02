"""What a figure must stand beside: command, machine, versions and commit; measures nothing."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import torch

_ROOT = Path(__file__).parents[1]


def describe_run(arguments: Sequence[str], module: str = "foundation") -> dict[str, str]:
    """Command, machine, versions and commit of this process, by name. module: of benchmarks, that was started."""
    packages = (f"{name} {version(name)}" for name in ("torch", "transformers", "numpy"))
    cores = f"{len(os.sched_getaffinity(0))} of {os.cpu_count()} cores, threads: {torch.get_num_threads()}"
    system = f"{platform.system()} {platform.release()}"
    return {
        "command": " ".join([f"python -m benchmarks.{module}", *arguments]),
        "machine": f"{_processor()} ({torch.backends.cpu.get_cpu_capability()}), {cores}; {system}",
        "versions": ", ".join([f"Python {platform.python_version()}", *packages]),
        "commit": _commit(),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.is_file() else None
    return found[1] if found else platform.processor() or platform.machine()


def _commit() -> str:
    head = _git("rev-parse", "--short", "HEAD")
    if not head:
        return "not a checkout with a commit"
    return f"{head} with changes" if _git("status", "--porcelain") else head


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
