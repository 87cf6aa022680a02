"""Machine code of the C++ in kernels, made once for each machine and type of weights; what it computes stands there."""

import ctypes
import os
import platform
import shlex
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from shutil import which
from typing import Any

import torch

KERNELS = Path(__file__).parent / "kernels"
_WEIGHTS = {torch.bfloat16: "bf16", torch.float32: "float", torch.float64: "double"}
_FLAGS = "-std=c++17 -O3 -march=native -fno-math-errno -fno-trapping-math -fopenmp -fPIC -shared".split()
# For some processors g++ would take narrow sums apart into products and sums, and leave wide ones whole: a token's bits
# would depend on how many stand beside it.
_FLAGS.append("--param=avoid-fma-max-bits=0")
_REMEDY = "install g++, name another compiler in the environment variable CXX, or leave compiling out"


def check_compiled(*, compiled: Any, device: torch.device) -> None:
    """Refuse `compiled` where it cannot be honoured. Raises: ValueError naming what is in the way, and the remedy."""
    if not isinstance(compiled, bool):
        raise ValueError(f"compiled is {compiled!r}; give True or False")
    if compiled and device.type != "cpu":
        raise ValueError(f"compiled code runs on the CPU, and device is {str(device)!r}; leave out one of the two")
    if compiled:
        _compiler()


def load_kernels(dtype: torch.dtype) -> ctypes.CDLL:
    """The kernels for weights of `dtype`, compiled if this machine has not done so yet.

    That takes some seconds. The library stays in mezzotint/ under XDG_CACHE_HOME, or ~/.cache.
    Raises: ValueError if there is no C++ compiler, it fails, or the folder cannot be written.
    """
    sources = sorted(file for file in KERNELS.iterdir() if file.suffix in (".cpp", ".h"))
    command = [*_compiler(), *_FLAGS, f"-DWEIGHT={_WEIGHTS[dtype]}"]
    library = _cache() / f"{_fingerprint(command, sources)}.so"
    if not library.exists():
        _build([*command, *(str(source) for source in sources if source.suffix == ".cpp")], library)
    return ctypes.CDLL(str(library))


def _compiler() -> list[str]:
    """The words that call the compiler."""
    named = os.environ.get("CXX")
    for words in [shlex.split(named)] if named else [["g++"], ["c++"], ["clang++"]]:
        if words and which(words[0]):
            return words
    raise ValueError(f"compiling takes a C++ compiler, and {named or 'g++'} is not installed; {_REMEDY}")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mezzotint"


def _fingerprint(command: list[str], sources: list[Path]) -> str:
    """A name that changes with everything that the library depends on: a home may be shared by unlike machines."""
    version = _run([command[0], "--version"]).stdout
    parts = [version, *command, _processor(), *(source.read_text() for source in sources)]
    return sha256("\0".join(parts).encode()).hexdigest()[:32]


def _processor() -> str:
    """What the processor can do, as far as the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    told = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    return "\n".join([platform.machine(), platform.processor(), *sorted(told)])


def _build(command: list[str], library: Path) -> None:
    try:
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            # Others may be at it, too: each moves a whole library into place.
            made = Path(folder, library.name)
            done = _run([*command, "-o", str(made)])
            if done.returncode:
                errors = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
                raise ValueError(f"{command[0]} cannot compile {KERNELS} ({''.join(errors[:1])}); {_REMEDY}")
            made.replace(library)
    except OSError as error:
        raise ValueError(
            f"compiled code cannot be kept in {library.parent} ({error}); name a folder in XDG_CACHE_HOME"
        ) from None


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
