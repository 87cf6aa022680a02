"""Verifiers that run programs: an answer's code with its tests, and an operator's command on the answer."""

import asyncio
import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mezzotint.evaluate.extract import content_of, find_code, join_code
from mezzotint.evaluate.sandbox import Limits, Outcome, find_bwrap, run_command, run_python
from mezzotint.evaluate.spec import Spec
from mezzotint.types import Verdict

_MOST_TIME_S = 60.0
_MOST_MEMORY_MB = 4096
_STDIN = ("content", "message")
_NOT_STARTED = 126
_LAST_WORDS = 300  # characters of what a program said that a reason tells
# The tests see what the answer defined. What an answer runs only as a program is not run. Where the end is reached a
# word is written that no answer holds: one that only calls exit has not passed.
_PROGRAM = """\
import os, sys, types
module = sys.modules["answer"] = types.ModuleType("answer")
for name, sources in {parts!r}:
    while True:
        try:
            code = compile(sources.pop(0), name, "exec")
            break
        except SyntaxError:
            if not sources:
                raise
    exec(code, module.__dict__)
sys.stdout.flush()
os.write(1, {word!r}.encode())
"""


@dataclass(frozen=True, kw_only=True)
class TestsVerifier:
    """Takes answers whose code lets `tests` run to their end.

    setup: what runs before it. before, after: what of the code stands around it in the question; behind `before` the
    answer may go on or begin anew. as_is: the answer is all code, exactly what stands between the two.
    """

    __test__ = False  # it is no test of ours

    setup: str
    before: str
    after: str
    as_is: bool
    tests: str
    limits: Limits
    walls: bool

    @classmethod
    def read(cls, reader: Spec, *, walls: bool) -> "TestsVerifier":
        """What the options called like its fields, `time_s` and `memory_mb` describe. Raises: as make_verifier."""
        if walls:
            find_bwrap()
        return cls(
            setup=reader.text("setup", ""),
            before=reader.text("before", ""),
            after=reader.text("after", ""),
            as_is=reader.flag("as_is", default=False),
            tests=reader.text("tests"),
            limits=_read_limits(reader, memory_mb=512),
            walls=walls,
        )

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """See Verifier. Raises: SandboxError where no sandbox can be built."""
        return await asyncio.to_thread(self.run, content_of(answer))

    def run(self, text: str) -> Verdict:
        """Judge the text of an answer. Raises: SandboxError where no sandbox can be built."""
        codes = [self.before + text] if self.as_is else join_code(self.before, find_code(text))
        word = f"\nend {secrets.token_hex(16)}"
        answers = [code + self.after for code in codes]
        parts = [("setup.py", [self.setup]), ("answer.py", answers), ("tests.py", [self.tests])]
        outcome = run_python(_PROGRAM.format(parts=parts, word=word), self.limits, walls=self.walls)
        if outcome.passed and outcome.stdout.endswith(word):
            return Verdict(accepted=True)
        if outcome.passed:
            return Verdict(accepted=False, reason="the program ended before its tests did")
        return Verdict(accepted=False, reason=_explain(outcome, self.limits))


@dataclass(frozen=True, kw_only=True)
class CommandVerifier:
    """Takes answers on which a command exits with status 0; it reads the content, or the message as JSON."""

    name: str
    argv: tuple[str, ...]
    reads_message: bool
    limits: Limits
    walls: bool

    @classmethod
    def read(cls, reader: Spec, commands: Mapping[str, Sequence[str]], *, walls: bool) -> "CommandVerifier":
        """What options `name`, `stdin`, `time_s` and `memory_mb` describe. Raises: as make_verifier."""
        if (name := reader.text("name")) not in commands:
            listed = ", ".join(commands) or "none"
            raise ValueError(f"name is {name!r}, which is no command that the operator allows; allowed: {listed}")
        argv = tuple(commands[name])
        if not argv or shutil.which(argv[0]) is None:
            raise ValueError(
                f"command {name!r} is {list(argv)!r}, which is no program here; give a path, or install it"
            )
        if walls:
            find_bwrap()
        return cls(
            name=name,
            argv=argv,
            reads_message=reader.one_of("stdin", _STDIN, "content") == "message",
            limits=_read_limits(reader, memory_mb=2048),
            walls=walls,
        )

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """See Verifier. Raises: SandboxError where no sandbox can be built."""
        given = json.dumps(dict(answer)) if self.reads_message else content_of(answer)
        outcome = await asyncio.to_thread(
            run_command, self.argv, given.encode(errors="surrogatepass"), self.limits, walls=self.walls
        )
        if outcome.passed:
            return Verdict(accepted=True)
        is_known = not outcome.timed_out and outcome.exit_status != _NOT_STARTED
        return Verdict(accepted=False if is_known else None, reason=f"{self.name}: {_explain(outcome, self.limits)}")


def _read_limits(reader: Spec, *, memory_mb: int) -> Limits:
    time_s = reader.seconds("time_s", Limits().time_s, most=_MOST_TIME_S)
    memory = reader.whole("memory_mb", memory_mb, least=16, most=_MOST_MEMORY_MB)
    return Limits(time_s=time_s, memory_bytes=memory << 20)


def _explain(outcome: Outcome, limits: Limits) -> str:
    if outcome.timed_out:
        return f"it took more than {limits.time_s:g} s"
    said = outcome.stderr.strip() or outcome.stdout.strip()
    return f"status {outcome.exit_status}: {said[-_LAST_WORDS:]}" if said else f"status {outcome.exit_status}"
