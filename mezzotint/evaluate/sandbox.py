"""Runs one untrusted Python program shut in by bubblewrap, or refuses; what its end proves is for others to say.

The program sees the standard library and an empty folder /tmp of its own: no network, no file of this machine, no
other process. It cannot start a process either, so that the limits on memory and time, which Linux sets for one
process, hold for all that it does.
"""

import errno
import json
import math
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import IO, NamedTuple

# Where Linux distributions keep shared libraries; the interpreter's own folders come beside them.
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_INSTALL = "install bubblewrap 0.7 or newer (`apt install bubblewrap`, `dnf install bubblewrap`); it needs Linux"
_ALLOW = (
    "let this user make namespaces (`sysctl kernel.unprivileged_userns_clone=1` on Debian, an AppArmor profile for "
    "bwrap on Ubuntu, `--security-opt seccomp=unconfined` for a container)"
)
# Sets the limits within the sandbox, writes down that it got there, and gives way to the program.
_LAUNCHER = """
import json, os, resource, sys
for name, limit in json.loads(sys.argv[1]).items():
    resource.setrlimit(getattr(resource, name), (limit, limit))
started = int(sys.argv[2])
os.write(started, b"started")
os.close(started)
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""
_PYTHON = ("-s", "-S", "-P", "-B", "-X", "utf8")  # the standard library alone is imported from


class SandboxError(RuntimeError):
    """The sandbox cannot be built on this machine, and nothing was run; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one program may use.

    time_s: seconds, by the clock and of the processor. memory_bytes: of address space. output_bytes: of stdout, of
    stderr, and of any one file. folder_bytes: of all files in /tmp.
    """

    time_s: float = 10.0
    memory_bytes: int = 512 << 20
    output_bytes: int = 64 << 10
    folder_bytes: int = 16 << 20

    def __post_init__(self) -> None:
        for field in fields(self):
            if not 0 < (value := getattr(self, field.name)) < math.inf:
                raise ValueError(f"{field.name} is {value}; it must be positive and finite")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a program ended: `exit_status` is 128 + the signal that ended it, and None where its time was up.

    stdout, stderr: all that output_bytes let it write, U+FFFD for what is not UTF-8. duration_s: seconds by the
    clock, the sandbox's own start among them.
    """

    exit_status: int | None
    stdout: str
    stderr: str
    duration_s: float

    @property
    def timed_out(self) -> bool:
        """Whether the program was stopped because its time by the clock was up."""
        return self.exit_status is None

    @property
    def passed(self) -> bool:
        """Whether it ended with status 0, at its end or, for anyone can call exit, before."""
        return self.exit_status == 0


def run_python(source: str, limits: Limits | None = None) -> Outcome:
    """Run a program in a new sandbox, under this release of Python and with nothing on its standard input.

    Returns: how it ended, whatever it did.
    Raises: SandboxError where the sandbox cannot be built; no program is run without one.
    """
    limits = limits or Limits()
    if (bwrap := shutil.which("bwrap")) is None:
        raise SandboxError(f"bwrap is not installed, and no program is run without it: {_INSTALL}")
    with ExitStack() as stack:
        program, calls, started, stdout, stderr = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(5))
        _fill(program, source.encode(errors="surrogatepass"))
        _fill(calls, one_process_filter(platform.machine()))
        walls = _walls(program.fileno(), calls.fileno(), limits)
        begin = time.monotonic()
        try:
            status = subprocess.run(
                [bwrap, *walls, *_launch(started.fileno(), limits)],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=[program.fileno(), calls.fileno(), started.fileno()],
                env={"PYTHONHASHSEED": "0"},
                timeout=limits.time_s,
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        duration_s = time.monotonic() - begin
        if status is not None and not _read(started):
            raise SandboxError(f"bwrap built no sandbox ({_read(stderr).strip() or status}): {_ALLOW}, or {_INSTALL}")
        return Outcome(exit_status=status, stdout=_read(stdout), stderr=_read(stderr), duration_s=duration_s)


def _walls(program: int, calls: int, limits: Limits) -> list[str]:
    """Options of bwrap: one empty file system with a few read-only folders, and new namespaces of every kind."""
    interpreter = (sys.base_prefix, sys.base_exec_prefix, os.path.dirname(_executable()))
    shared = [option for path in (*_LIBRARIES, *interpreter) for option in ("--ro-bind-try", path, path)]
    alone = ["--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    folder = ["--size", str(limits.folder_bytes), "--tmpfs", "/tmp", "--chdir", "/tmp"]
    file = ["--ro-bind-data", str(program), "/program.py"]
    sealed = ["--remount-ro", "/dev", "--remount-ro", "/", "--seccomp", str(calls)]
    return [*alone, "--die-with-parent", "--new-session", *folder, "--dev", "/dev", *shared, *file, *sealed]


def _launch(started: int, limits: Limits) -> list[str]:
    bounds = {
        "RLIMIT_CPU": math.ceil(limits.time_s),
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.output_bytes,
        "RLIMIT_CORE": 0,
    }
    return [_executable(), *_PYTHON, "-c", _LAUNCHER, json.dumps(bounds), str(started), *_PYTHON, "/program.py"]


def _executable() -> str:
    """The interpreter that runs this, or that its virtual environment was made from."""
    return os.path.realpath(os.path.join(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))


def _fill(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.seek(0)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


class _Machine(NamedTuple):
    """Numbers that Linux gives a machine, and the calls that begin a process or new namespaces beside `clone`."""

    audit: int
    clone: int
    refused: tuple[int, ...]


_MACHINES = {
    "x86_64": _Machine(0xC000003E, clone=56, refused=(57, 58, 272)),  # fork, vfork, unshare
    "aarch64": _Machine(0xC00000B7, clone=220, refused=(97,)),  # unshare
}
_CLONE3 = 435
_CLONE_THREAD = 0x10000
_OTHER_NUMBERING = 0x40000000  # from here on x86_64 has its calls for a second time
_CALL, _AUDIT, _FLAGS = 0, 4, 16  # offsets in what a filter is shown; the flags are the first argument of clone
_ALLOW_CALL, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_EQUAL, _AT_LEAST, _ANY_BIT = 0x15, 0x35, 0x45


def one_process_filter(machine: str) -> bytes:
    """Write a filter of system calls under which threads can be started but no process.

    `machine` is as in platform.machine(). clone3 keeps its flags in memory, where no filter sees them, so that it is
    said to be missing; C libraries then use clone.
    Returns: a program for the kernel's seccomp, little-endian.
    Raises: SandboxError for a machine whose numbers of calls are not known here.
    Source: Linux, Documentation/userspace-api/seccomp_filter.rst.
    """
    if (numbers := _MACHINES.get(machine)) is None:
        raise SandboxError(f"machine is {machine!r}; programs are run on {' and '.join(_MACHINES)} only")
    refuse = _ERROR | errno.EPERM
    steps = [
        _load(_AUDIT),
        *_unless(_EQUAL, numbers.audit, _KILL),
        _load(_CALL),
        *_when(_AT_LEAST, _OTHER_NUMBERING, _KILL),
        *(step for call in numbers.refused for step in _when(_EQUAL, call, refuse)),
        *_when(_EQUAL, _CLONE3, _ERROR | errno.ENOSYS),
        *_unless(_EQUAL, numbers.clone, _ALLOW_CALL),
        _load(_FLAGS),
        *_when(_ANY_BIT, _CLONE_THREAD, _ALLOW_CALL),
        _end(refuse),
    ]
    return b"".join(steps)


def _load(offset: int) -> bytes:
    return struct.pack("<HBBI", 0x20, 0, 0, offset)


def _end(verdict: int) -> bytes:
    return struct.pack("<HBBI", 0x06, 0, 0, verdict)


def _when(test: int, operand: int, verdict: int) -> list[bytes]:
    return [struct.pack("<HBBI", test, 0, 1, operand), _end(verdict)]


def _unless(test: int, operand: int, verdict: int) -> list[bytes]:
    return [struct.pack("<HBBI", test, 1, 0, operand), _end(verdict)]
