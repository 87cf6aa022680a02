"""Writes the filter of system calls that keeps a program to one process; who is put behind it is said by sandbox."""

import errno
import struct
from typing import NamedTuple


class SandboxError(RuntimeError):
    """The sandbox cannot be built on this machine, and nothing was run; the message says what to do."""


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
