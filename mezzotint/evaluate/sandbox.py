"""Runs one untrusted program shut in by bubblewrap, or refuses; what its end proves is for others to say.

A program sees the machine's libraries and an empty folder /tmp of its own: no network, no file of a user, no process
but its own. A Python program cannot start a process either, so that the limits on memory and time, which Linux sets for
one process, hold for all that it does. Who says so has programs run without these walls; limits hold there as well.
"""

import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO

from mezzotint.evaluate.filter import SandboxError, one_process_filter

__all__ = ["Limits", "Outcome", "SandboxError", "check_sandbox", "find_bwrap", "run_command", "run_python"]

# Where Linux distributions keep shared libraries; the interpreter's own folders come beside them.
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_PROGRAMS = ("/usr", "/bin", "/sbin", "/etc/alternatives")  # what a command may be, or call
_INSTALL = "install bubblewrap 0.7 or newer (`apt install bubblewrap`, `dnf install bubblewrap`); it needs Linux"
_ALLOW = (
    "let this user make namespaces (`sysctl kernel.unprivileged_userns_clone=1` on Debian, an AppArmor profile for "
    "bwrap on Ubuntu, `--security-opt seccomp=unconfined` for a container)"
)
_UNSAFE = "or say that programs are to run without it, with all that this user may do"
# Sets the limits within the sandbox, writes down that it got there, and gives way to the program.
_LAUNCHER = """
import json, os, resource, sys
for name, limit in json.loads(sys.argv[1]).items():
    resource.setrlimit(getattr(resource, name), (limit, limit))
started = int(sys.argv[2])
os.write(started, b"started")
os.close(started)
try:
    os.execv(sys.argv[3], sys.argv[3:])
except OSError as error:
    print(error, file=sys.stderr)
    sys.exit(126)
"""
_PYTHON = ("-s", "-S", "-P", "-B", "-X", "utf8")  # the standard library alone is imported from
_STOPPED = 128


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one program may use.

    time_s: seconds, by the clock and of the processor. memory_bytes: of address space, of each process. output_bytes:
    of stdout, of stderr, and of any one file. folder_bytes: of all files in /tmp.
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


def run_python(source: str, limits: Limits | None = None, *, walls: bool = True) -> Outcome:
    """Run a program in a new sandbox, under this release of Python and with nothing on its standard input.

    walls: without them it has the rights of this user, and a folder of its own only to begin with.
    Returns: how it ended, whatever it did.
    Raises: SandboxError where the sandbox cannot be built; no program is run without the walls that it was to have.
    """
    code = source.encode(errors="surrogatepass")
    if not walls:
        return _run_in_folder([_executable(), *_PYTHON, "program.py"], b"", limits or Limits(), {"program.py": code})
    with ExitStack() as stack:
        program, calls = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        _fill(program, code)
        _fill(calls, one_process_filter(platform.machine()))
        file = ["--ro-bind-data", str(program.fileno()), "/program.py", "--seccomp", str(calls.fileno())]
        return _run_in_walls([_executable(), *_PYTHON, "/program.py"], b"", limits or Limits(), file, (program, calls))


def run_command(argv: Sequence[str], given: bytes, limits: Limits | None = None, *, walls: bool = True) -> Outcome:
    """Run a command that an operator trusts on a text that nobody does, which it finds on its standard input.

    Behind walls it sees the machine's programs, and of other files those that `argv` names by a path from the root; it
    may start processes, each within the limits. walls: without them it has the rights and variables of this user.
    Returns: how it ended; status 126 where it could not be started.
    Raises: SandboxError where the sandbox cannot be built; ValueError for a program that is not found.
    """
    if (program := shutil.which(argv[0])) is None:
        raise ValueError(f"command is {argv[0]!r}, which is no program here; give a path, or install it")
    found = [os.path.abspath(program), *argv[1:]]
    if not walls:
        return _run_in_folder(found, given, limits or Limits(), {})
    named = [path for path in found if os.path.isabs(path) and not path.startswith(("/usr/", "/bin/"))]
    shown = [option for path in (*_PROGRAMS, *named) for option in ("--ro-bind-try", path, path)]
    return _run_in_walls(found, given, limits or Limits(), shown, ())


def find_bwrap() -> str:
    """Where bubblewrap is. Raises: SandboxError where it is not installed."""
    if (bwrap := shutil.which("bwrap")) is None:
        raise SandboxError(f"bwrap is not installed, and no program is run without it: {_INSTALL}, {_UNSAFE}")
    return bwrap


def check_sandbox() -> None:
    """Raises: SandboxError, which says what to do, where a sandbox cannot be built on this machine."""
    run_python("")


def _run_in_walls(
    argv: Sequence[str], given: bytes, limits: Limits, inside: Sequence[str], files: Sequence[IO[bytes]]
) -> Outcome:
    variables = {"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin"}
    walls = [find_bwrap(), *_walls(limits), *inside, "--remount-ro", "/"]
    outcome, started = _run(walls, argv, given, limits, files, variables)
    if not started and not outcome.timed_out:
        told = outcome.stderr.strip() or outcome.exit_status
        raise SandboxError(f"bwrap built no sandbox ({told}): {_ALLOW}, {_INSTALL}, {_UNSAFE}")
    return outcome


def _run_in_folder(argv: Sequence[str], given: bytes, limits: Limits, contents: dict[str, bytes]) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            Path(folder, name).write_bytes(content)
        variables = {**os.environ, "PYTHONHASHSEED": "0"}
        return _run([], argv, given, limits, (), variables, folder)[0]


def _run(
    walls: Sequence[str],
    argv: Sequence[str],
    given: bytes,
    limits: Limits,
    files: Sequence[IO[bytes]],
    variables: dict[str, str],
    folder: str | None = None,
) -> tuple[Outcome, bool]:
    """Run `argv` behind walls. Returns: how that ended, and whether it came to its start."""
    with ExitStack() as stack:
        stdin, started, stdout, stderr = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(4))
        _fill(stdin, given)
        begin = time.monotonic()
        process = subprocess.Popen(
            [*walls, *_launch(started.fileno(), limits), *argv],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=[file.fileno() for file in (*files, started)],
            env=variables,
            cwd=folder,
            start_new_session=True,
        )
        try:
            status = process.wait(limits.time_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with suppress(ProcessLookupError):  # all that it started and left, too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        status = status if status is None or status >= 0 else _STOPPED - status
        duration_s = time.monotonic() - begin
        outcome = Outcome(exit_status=status, stdout=_read(stdout), stderr=_read(stderr), duration_s=duration_s)
        return outcome, bool(_read(started))


def _walls(limits: Limits) -> list[str]:
    """Options of bwrap: one empty file system with a few read-only folders, and new namespaces of every kind."""
    interpreter = (sys.base_prefix, sys.base_exec_prefix, os.path.dirname(_executable()))
    shared = [option for path in (*_LIBRARIES, *interpreter) for option in ("--ro-bind-try", path, path)]
    alone = ["--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
    folder = ["--size", str(limits.folder_bytes), "--tmpfs", "/tmp", "--chdir", "/tmp"]
    return [*alone, "--die-with-parent", "--new-session", *folder, "--dev", "/dev", "--remount-ro", "/dev", *shared]


def _launch(started: int, limits: Limits) -> list[str]:
    bounds = {
        "RLIMIT_CPU": math.ceil(limits.time_s),
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.output_bytes,
        "RLIMIT_CORE": 0,
    }
    return [_executable(), *_PYTHON, "-c", _LAUNCHER, json.dumps(bounds), str(started)]


def _executable() -> str:
    """The interpreter that runs this, or that its virtual environment was made from."""
    return os.path.realpath(os.path.join(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))


def _fill(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.seek(0)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
