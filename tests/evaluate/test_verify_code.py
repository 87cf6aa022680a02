"""Verifiers that run programs: answers that are right, that are not, and that try to look as if they were."""

import asyncio
import os
import select
from pathlib import Path
from typing import Any

import pytest

from mezzotint.evaluate.sandbox import SandboxError, check_sandbox
from mezzotint.evaluate.verify import make_verifier
from mezzotint.types import Verdict


@pytest.fixture(scope="module", autouse=True)
def _usable() -> None:
    try:
        check_sandbox()
    except SandboxError as error:
        pytest.skip(str(error))


def judged(spec: dict[str, Any], answer: str, **options: Any) -> Verdict:
    return asyncio.run(make_verifier(spec, **options).verify([], {"role": "assistant", "content": answer}))


ADD = {"type": "python_tests", "tests": "assert add(2, 3) == 5", "before": 'def add(a, b):\n    """Add."""\n'}


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        ("    return a + b\n", True),
        ("def add(a, b):\n    return a + b", True),
        ("Here it is:\n```python\ndef add(a, b):\n    return a + b\n```\nEnjoy!", True),
        ("```python\ndef add(a, b):\n    return a + b\n```\nand\n```py\nprint(add(1, 1))\n```", True),
        ("```\ndef add(a, b):\n    return a + b", True),
        ("from __future__ import annotations\ndef add(a, b):\n    return a + b", True),
        ("def add(a, b):\n    return a + b\nif __name__ == '__main__':\n    assert False", True),
        ("    return a - b\n", False),
        ("I do not know.", False),
        ("", False),
    ],
)
def test_code_goes_on_with_the_question_or_begins_anew(answer: str, accepted: bool) -> None:
    assert judged(ADD, answer).accepted is accepted


def test_what_the_question_defines_is_there_for_an_answer_that_says_a_part_of_it_again() -> None:
    before = "def double(x):\n    return 2 * x\n\ndef four(x):\n    '''Four times.'''\n"
    spec = {"type": "python_tests", "tests": "assert four(2) == 8", "before": before}
    assert judged(spec, "def four(x):\n    return double(double(x))").accepted is True


def test_code_in_a_blank_stands_exactly_between_what_is_around_it() -> None:
    spec = {
        "type": "python_tests",
        "tests": "assert f() == '```\\nabc\\n```\\n'",
        "before": "def f():\n    return '''",
        "after": "'''\n",
    }
    assert judged({**spec, "as_is": True}, "```\nabc\n```\n").accepted is True
    assert judged(spec, "```\nabc\n```\n").accepted is False


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("import sys; sys.exit(0)", "the program ended before its tests did"),
        ("import os; os._exit(0)", "the program ended before its tests did"),
        ("def add(a, b): return 1", "status 1: "),
        ("while True: pass", "it took more than 1 s"),
        ("x = bytearray(10**10)", "MemoryError"),
    ],
)
def test_an_answer_that_does_not_pass_says_why(answer: str, reason: str) -> None:
    verdict = judged({"type": "python_tests", "tests": "assert add(2, 3) == 5", "time_s": 1}, answer)
    assert verdict.accepted is False
    assert reason in verdict.reason


def test_dataclasses_of_an_answer_find_their_module() -> None:
    answer = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    n: int = 3\n"
    )
    assert judged({"type": "python_tests", "tests": "assert A().n == 3"}, answer).accepted is True


def test_a_command_reads_the_answer_and_its_status_decides() -> None:
    commands = {"find": ["grep", "-q", "needle"]}
    assert judged({"type": "command", "name": "find"}, "a needle", commands=commands) == (True, "")
    assert judged({"type": "command", "name": "find"}, "hay", commands=commands) == (False, "find: status 1")
    as_message = {"type": "command", "name": "role", "stdin": "message"}
    assert judged(as_message, "hay", commands={"role": ["grep", "-q", '"role": "assistant"']}).accepted is True


def test_a_command_sees_the_files_that_it_names_and_no_other(tmp_path: Path) -> None:
    check, other = tmp_path / "check.sh", tmp_path / "other"
    check.write_text(f'read line; test ! -e {other} && test -z "$SECRET" && test "$(echo $line)" = hello\n')
    other.write_text("secret")
    commands = {"check": ["sh", str(check)]}
    assert judged({"type": "command", "name": "check"}, "hello\n", commands=commands) == (True, "")
    outside = judged({"type": "command", "name": "check"}, "hello\n", commands=commands, walls=False)
    assert outside.accepted is False  # there the other file is


def test_a_command_that_cannot_tell_gives_no_verdict(tmp_path: Path) -> None:
    late = judged({"type": "command", "name": "c", "time_s": 0.5}, "", commands={"c": ["sleep", "60"]})
    assert late == (None, "c: it took more than 0.5 s")
    broken = tmp_path / "broken"
    broken.write_text("#!/no/such/program\n")
    broken.chmod(0o755)
    assert judged({"type": "command", "name": "c"}, "", commands={"c": [str(broken)]}).accepted is None


def test_what_a_program_leaves_running_is_ended_even_without_walls(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    commands = {"c": ["sh", "-c", f"sleep 600 & echo $! > {mark}"]}
    assert judged({"type": "command", "name": "c"}, "", commands=commands, walls=False).accepted is True
    try:
        left = os.pidfd_open(int(mark.read_text()))
    except ProcessLookupError:
        return
    ended, _, _ = select.select([left], [], [], 10)
    os.close(left)
    assert ended
