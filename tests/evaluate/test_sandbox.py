"""The sandbox: programs that try to get out, take too much or never end, and machines that cannot build it."""

import shutil
import socket
import struct
import sys
from pathlib import Path

import pytest

from mezzotint.evaluate.filter import one_process_filter
from mezzotint.evaluate.sandbox import Limits, SandboxError, check_sandbox, run_command, run_python


@pytest.fixture(scope="module")
def usable() -> None:
    """Skips where bubblewrap is not installed, or not allowed to make namespaces."""
    try:
        run_python("")
    except SandboxError as error:
        pytest.skip(str(error))


needs_bwrap = pytest.mark.usefixtures("usable")


@needs_bwrap
def test_a_program_that_ends_well_passes_and_shows_what_it_wrote() -> None:
    outcome = run_python("import sys\nprint('out', 1 + 1)\nprint('err', file=sys.stderr)")
    assert outcome.passed
    assert not outcome.timed_out
    assert (outcome.exit_status, outcome.stdout, outcome.stderr) == (0, "out 2\n", "err\n")
    assert 0 < outcome.duration_s < Limits().time_s


@needs_bwrap
@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("import sys; sys.exit(3)", 3),
        ("import os; os._exit(0)", 0),
        ("assert 1 == 2", 1),
        ("def f(:", 1),
        ("\x00", 1),
        ("'\ud800'", 1),
        ("import os; os.kill(os.getpid(), 11)", 128 + 11),
    ],
    ids=ascii,
)
def test_the_exit_status_is_the_programs_own(source: str, status: int) -> None:
    outcome = run_python(source)
    assert outcome.exit_status == status
    assert outcome.passed is (status == 0)


@needs_bwrap
def test_an_error_names_the_line_of_the_program() -> None:
    outcome = run_python("x = 1\nassert x == 2, 'x is wrong'")
    assert 'File "/program.py", line 2' in outcome.stderr
    assert outcome.stderr.endswith("AssertionError: x is wrong\n")


@needs_bwrap
def test_a_program_that_never_ends_is_stopped_and_keeps_what_it_wrote() -> None:
    outcome = run_python("print('begun', flush=True)\nwhile True:\n    pass", Limits(time_s=2))
    assert outcome.timed_out
    assert not outcome.passed
    assert outcome.exit_status is None
    assert outcome.stdout in ("begun\n", "")  # a busy machine may spend the time on the start
    assert 2 <= outcome.duration_s < 10


@needs_bwrap
@pytest.mark.parametrize(
    "attempt",
    [
        "os.fork()",
        "os.posix_spawn('/bin/sh', ['sh'], {})",
        "subprocess.run([sys.executable, '-c', ''])",
        "multiprocessing.get_context('fork').Process(target=print).start()",
        "call(ctypes.CDLL(None, use_errno=True).unshare(0x10000000))",
        "call(ctypes.CDLL(None, use_errno=True).syscall({'x86_64': 56, 'aarch64': 220}[platform.machine()], 17, 0))",
        "call(ctypes.CDLL(None, use_errno=True).syscall(435, 0, 0))",
    ],
)
def test_no_other_process_can_be_started(attempt: str) -> None:
    source = f"""
import ctypes, errno, multiprocessing, os, platform, subprocess, sys
def call(returned):
    if returned == -1:
        raise OSError(ctypes.get_errno(), 'refused')
try:
    {attempt}
except OSError as error:
    assert error.errno in (errno.EPERM, errno.ENOSYS), error
    print('refused')
"""
    assert run_python(source).stdout == "refused\n"


@needs_bwrap
def test_threads_can_be_started() -> None:
    source = (
        "import threading\nthread = threading.Thread(target=print, args=('thread',))\nthread.start()\nthread.join()"
    )
    assert run_python(source).stdout == "thread\n"


@needs_bwrap
@pytest.mark.parametrize("bomb", ["bytearray(10**9)", "[0] * 10**9", "[bytearray(10**6) for _ in range(1000)]"])
def test_memory_is_bounded(bomb: str) -> None:
    outcome = run_python(
        f"try:\n    x = {bomb}\nexcept MemoryError:\n    print('bounded')", Limits(memory_bytes=256 << 20)
    )
    assert outcome.stdout == "bounded\n"


@needs_bwrap
@pytest.mark.parametrize("descriptor", [1, 2])
def test_output_is_bounded(descriptor: int) -> None:
    source = f"import os\nwhile True:\n    os.write({descriptor}, b'x' * 1000)"
    outcome = run_python(source, Limits(output_bytes=50_000))
    assert not outcome.passed
    assert not outcome.timed_out
    assert outcome.stdout.count("x") == (50_000 if descriptor == 1 else 0)
    assert len(outcome.stderr) <= 50_000


@needs_bwrap
def test_output_that_is_not_utf_8_is_shown_as_far_as_it_can_be() -> None:
    assert run_python(r"import os; os.write(1, b'a\xff\xfeb')").stdout == "a��b"


@needs_bwrap
def test_files_in_its_own_folder_are_bounded_one_by_one_and_together() -> None:
    source = """
import errno
def write(name, size):
    try:
        with open(f'/tmp/{name}', 'wb') as file:
            file.write(bytes(size))
    except OSError as error:
        print(errno.errorcode[error.errno])
write('large', 30_000)
for name in range(40):
    write(name, 20_000)
"""
    outcome = run_python(source, Limits(output_bytes=25_000, folder_bytes=400_000))
    assert outcome.stdout.split("\n")[0] == "EFBIG"
    assert "ENOSPC" in outcome.stdout


@needs_bwrap
def test_its_folder_is_its_working_folder_empty_at_the_start_and_gone_at_the_end() -> None:
    source = "import os; print(os.getcwd(), os.listdir()); open('left', 'w').write('x'); print(os.listdir())"
    assert run_python(source).stdout == run_python(source).stdout == "/tmp []\n['left']\n"


@needs_bwrap
@pytest.mark.parametrize("folder", ["/", "/usr", "/usr/lib", "/dev", "/dev/shm", "/etc", "{library}"])
def test_nothing_else_can_be_written(folder: str) -> None:
    source = f"""
import os
try:
    open({folder!r}.format(library=os.path.dirname(os.__file__)) + '/mezzotint_was_here', 'w')
except OSError as error:
    print(type(error).__name__)
"""
    assert run_python(source).stdout in ("OSError\n", "PermissionError\n", "FileNotFoundError\n")


@needs_bwrap
def test_no_file_of_the_machine_and_no_variable_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    monkeypatch.setenv("API_KEY", "secret")
    home = Path.home()
    source = f"""
import os
for path in ({str(secret)!r}, '/etc/shadow', '/etc/passwd', '/proc/self/environ', {str(home / ".profile")!r}):
    assert not os.path.exists(path), path
assert os.listdir('/tmp') == []
assert 'API_KEY' not in os.environ
assert 'secret' not in str(os.environ)
"""
    outcome = run_python(source)
    assert outcome.passed, outcome.stderr


@needs_bwrap
def test_only_the_standard_library_can_be_imported() -> None:
    source = """
import decimal, hashlib, json, sqlite3
for name in ('mezzotint', 'torch', 'pytest', 'pip'):
    try:
        __import__(name)
    except ModuleNotFoundError:
        print(name)
"""
    assert run_python(source).stdout.split() == ["mezzotint", "torch", "pytest", "pip"]


@needs_bwrap
def test_there_is_no_network_not_even_to_this_machine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        source = f"""
import socket
for address in (('127.0.0.1', {port}), ('192.0.2.1', 80)):
    try:
        socket.create_connection(address, 1)
    except OSError as error:
        print('refused')
"""
        assert run_python(source).stdout == "refused\nrefused\n"


@needs_bwrap
def test_the_program_has_no_rights_no_input_and_no_open_file_but_its_output() -> None:
    source = """
import os, sys
assert os.getuid() == os.getgid() == 65534
assert sys.stdin.read() == ''
opened = []
for descriptor in range(3, 100):
    try:
        opened.append(os.fstat(descriptor))
    except OSError:
        pass
assert not opened, opened
"""
    outcome = run_python(source)
    assert outcome.passed, outcome.stderr


@needs_bwrap
def test_strings_hash_alike_in_every_run() -> None:
    assert run_python("print(hash('mezzotint'))").stdout == run_python("print(hash('mezzotint'))").stdout


@needs_bwrap
def test_a_program_that_looks_like_a_failed_sandbox_is_an_outcome() -> None:
    outcome = run_python("import sys\nprint('bwrap: No permissions', file=sys.stderr)\nsys.exit(1)")
    assert (outcome.exit_status, outcome.stderr) == (1, "bwrap: No permissions\n")


@needs_bwrap
def test_a_command_reads_what_it_is_given_in_an_empty_folder_of_its_own() -> None:
    outcome = run_command(["sh", "-c", "cat; ls; echo left > file; ls; pwd"], "äb\n".encode())
    assert (outcome.exit_status, outcome.stdout) == (0, "äb\nfile\n/tmp\n")
    assert run_command(["ls"], b"").stdout == ""
    assert run_command(["sh", "-c", "exit 3"], b"").exit_status == 3


@needs_bwrap
def test_a_command_has_no_network_no_home_no_variables_and_no_right_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "secret")
    named, other = tmp_path / "named", tmp_path / "other"
    named.write_text("named")
    other.write_text("other")
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"""
env | grep -q API_KEY && echo variable
test -e {other} && echo file
test -e {Path.home()} && ls {Path.home()} | grep -q . && echo home
(echo > {named}) 2>/dev/null && echo written
(echo > /usr/bin/mine) 2>/dev/null && echo installed
(exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}) 2>/dev/null && echo network
cat {named}
"""
        assert run_command(["bash", "-c", script, str(named)], b"").stdout == "named"


@needs_bwrap
def test_a_command_and_what_it_starts_end_with_their_time() -> None:
    outcome = run_command(["sh", "-c", "sleep 600 & echo begun; sleep 600"], b"", Limits(time_s=1))
    assert outcome.timed_out
    assert outcome.duration_s < 5


@needs_bwrap
def test_each_process_of_a_command_has_bounded_memory_and_output() -> None:
    limits = Limits(memory_bytes=256 << 20, output_bytes=10_000)
    greedy = run_command([sys.executable, "-c", "bytearray(10**9)"], b"", limits, walls=False)
    assert "MemoryError" in greedy.stderr
    loud = run_command(["sh", "-c", "yes loud"], b"", limits)
    assert not loud.passed
    assert len(loud.stdout) <= 10_000


def test_a_command_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="command is 'no-such-program', which is no program here; give a path"):
        run_command(["no-such-program"], b"")


@pytest.mark.parametrize("source", ["import os; print(os.listdir()); os.fork()", "print(input())"])
def test_without_walls_a_program_has_a_folder_of_its_own_and_its_limits(source: str) -> None:
    outcome = run_python(source, walls=False)
    assert outcome.stdout.startswith("['program.py']") or "EOFError" in outcome.stderr
    late = run_python("while True: pass", Limits(time_s=0.5), walls=False)
    assert late.timed_out
    assert "MemoryError" in run_python("bytearray(10**10)", walls=False).stderr


def test_without_bubblewrap_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SandboxError, match=r"bwrap is not installed.*apt install bubblewrap"):
        run_python("print('run')")
    with pytest.raises(SandboxError, match="bwrap is not installed"):
        check_sandbox()


def test_where_namespaces_are_refused_the_reason_and_the_remedy_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(refusing))
    with pytest.raises(SandboxError, match=r"No permissions to create new namespace.*unprivileged_userns_clone=1"):
        run_python("print('run')")


@pytest.mark.parametrize(
    ("name", "value"), [("time_s", 0), ("time_s", float("inf")), ("memory_bytes", -1), ("output_bytes", 0)]
)
def test_a_limit_that_is_none_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be positive and finite"):
        Limits(**{name: value})  # type: ignore[arg-type]


def verdict(program: bytes, machine: int, call: int, flags: int = 0) -> int:
    """What a filter answers to a call, by a reading of the kernel's manual of its own."""
    shown = {0: call, 4: machine, 16: flags}
    steps = list(struct.iter_unpack("<HBBI", program))
    at = loaded = 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        if code == 0x20:
            loaded = shown[operand]
        elif code == 0x06:
            return int(operand)
        else:
            holds = {0x15: loaded == operand, 0x35: loaded >= operand, 0x45: bool(loaded & operand)}[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize(
    ("name", "machine", "clone", "others"),
    [("x86_64", 0xC000003E, 56, (57, 58, 272)), ("aarch64", 0xC00000B7, 220, (97,))],
)
def test_the_filter_lets_threads_through_and_no_process(
    name: str, machine: int, clone: int, others: tuple[int, ...]
) -> None:
    program = one_process_filter(name)
    allowed, not_permitted, not_there, killed = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
    assert verdict(program, machine, clone, 0x3D0F00) == allowed  # the flags of a thread
    assert verdict(program, machine, clone, 0x1200011) == not_permitted  # those of fork
    assert {verdict(program, machine, call) for call in others} == {not_permitted}
    assert verdict(program, machine, 435) == not_there
    refused = {clone, 435, *others}
    assert {verdict(program, machine, call) for call in range(500) if call not in refused} == {allowed}
    assert verdict(program, 0x40000003, 1) == killed
    assert verdict(program, machine, 0x40000000 + clone) == killed


def test_a_machine_whose_calls_are_not_known_is_refused() -> None:
    with pytest.raises(SandboxError, match="machine is 'riscv64'; programs are run on x86_64 and aarch64 only"):
        one_process_filter("riscv64")
