"""Makes verifiers of what tasks and requests say of a right answer; what runs programs lives in verify_code.

A verifier judges an assistant's message by its content. None of them holds up the event loop, whatever the answer or
the specification: expressions run in linear time and, like schemas, in a process that can be stopped.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from mezzotint.evaluate.apart import compile_schema, find_fault
from mezzotint.evaluate.extract import content_of, find_number, read_number
from mezzotint.evaluate.spec import Spec
from mezzotint.evaluate.verify_code import CommandVerifier, TestsVerifier
from mezzotint.text.schema_document import Document
from mezzotint.types import Verdict, Verifier

KINDS = ("exact", "number", "regex", "json_schema", "tool_calls", "command", "python_tests", "judge")
LONGEST_ANSWER = 1_000_000  # characters
_LONGEST_PATTERN = 4096
_LONGEST_RUBRIC = 20_000
_MOST_GRADES = 10


class Rating(NamedTuple):
    """A judge's grade of one answer; None where it gave none that could be read. reason: why, in its words or ours."""

    grade: int | None
    reason: str


class Judge(Protocol):
    """A model that grades answers."""

    async def rate(
        self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any], *, rubric: str, grades: int
    ) -> Rating:
        """Grade an answer from 1 to `grades` by a rubric."""


def make_verifier(
    spec: Mapping[str, Any],
    *,
    commands: Mapping[str, Sequence[str]] | None = None,
    judge: Judge | None = None,
    walls: bool = True,
) -> Verifier:
    """Make what `spec` describes, an object with a `type` and what else that type takes.

    exact: `value`, a text or several, `strip` and `ignore_case`. number: `value`, which the last number of the answer,
    or the one behind #### or in \\boxed, must be. regex: `pattern`, found anywhere; in the syntax of JSON Schema
    without backreferences and lookaround. json_schema: `schema`, which the whole content follows; formats count.
    tool_calls: `calls`, each a name with arguments, the message's in any order. command: `name`, one of `commands`,
    which exits with 0, and `stdin`, content or message, that it reads. python_tests: `tests`, which run to their end
    behind the answer's code; see TestsVerifier. judge: `rubric`, `grades` and `least`, the lowest grade that is taken.
    commands: argv by name, from an operator. walls: whether programs run in a sandbox.
    Raises: ValueError naming option, value and remedy; SandboxError where a sandbox is needed and not there.
    """
    reader = Spec(spec)
    match reader.one_of("type", KINDS):
        case "exact":
            verifier: Verifier = _exact(reader)
        case "number":
            verifier = NumberVerifier(value=read_number(reader.text("value")))
        case "regex":
            verifier = _regex(reader)
        case "json_schema":
            verifier = _json_schema(reader)
        case "tool_calls":
            verifier = _tool_calls(reader)
        case "command":
            verifier = CommandVerifier.read(reader, commands or {}, walls=walls)
        case "python_tests":
            verifier = TestsVerifier.read(reader, walls=walls)
        case _:
            verifier = _judge(reader, judge)
    reader.end()
    return verifier


@dataclass(frozen=True, kw_only=True)
class ExactVerifier:
    """Takes answers that are one of `values`."""

    values: tuple[str, ...]
    strip: bool
    ignore_case: bool

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """See Verifier."""
        if self._plain(content_of(answer)) in map(self._plain, self.values):
            return Verdict(accepted=True)
        return Verdict(accepted=False, reason="it is not the right answer")

    def _plain(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.casefold() if self.ignore_case else text


@dataclass(frozen=True, kw_only=True)
class NumberVerifier:
    """Takes answers whose result is a number; numbers are compared as such, 72 and 72.00 are one."""

    value: Decimal

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """See Verifier."""
        if (said := find_number(content_of(answer)[-LONGEST_ANSWER:])) is None:
            return Verdict(accepted=False, reason="it has no number")
        if said == self.value:
            return Verdict(accepted=True)
        return Verdict(accepted=False, reason=f"its number is {said:f}, not {self.value:f}")


@dataclass(frozen=True, kw_only=True)
class SchemaVerifier:
    """Takes answers that follow a JSON Schema: their content as JSON, or as a text where `is_text`."""

    schema: str
    is_text: bool

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """See Verifier."""
        if len(content := content_of(answer)) > LONGEST_ANSWER:
            told = f"it has {len(content)} characters; at most {LONGEST_ANSWER} are held to a schema or pattern"
            return Verdict(accepted=None, reason=told)
        value = json.dumps(content) if self.is_text else content
        try:
            fault = await asyncio.to_thread(find_fault, self.schema, value)
        except TimeoutError as error:
            return Verdict(accepted=None, reason=str(error))
        if fault and self.is_text:
            fault = "it does not match the pattern"
        return Verdict(accepted=fault is None, reason=fault or "")


@dataclass(frozen=True, kw_only=True)
class CallsVerifier:
    """Takes messages that make exactly these calls, each a name with its arguments as JSON with sorted keys."""

    calls: tuple[tuple[str, str], ...]

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """See Verifier."""
        try:
            made = [_name_and_arguments(call["function"]) for call in answer.get("tool_calls") or ()]
        except (KeyError, TypeError, ValueError) as error:
            return Verdict(accepted=False, reason=f"a call cannot be read: {error!r}")
        if sorted(made) == sorted(self.calls):
            return Verdict(accepted=True)
        return Verdict(accepted=False, reason=f"it calls {[name for name, _ in made]}, or with other arguments")


@dataclass(frozen=True, kw_only=True)
class JudgeVerifier:
    """Takes answers to which a judge gives at least grade `least` of 1 to `grades`."""

    judge: Judge
    rubric: str
    grades: int
    least: int

    async def verify(self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any]) -> Verdict:
        """See Verifier."""
        grade, reason = await self.judge.rate(messages, answer, rubric=self.rubric, grades=self.grades)
        if grade is None:
            return Verdict(accepted=None, reason=reason)
        return Verdict(accepted=grade >= self.least, reason=f"grade {grade} of {self.grades}: {reason}")


def _exact(reader: Spec) -> ExactVerifier:
    values = reader.texts("value")
    strip, ignore_case = reader.flag("strip", default=True), reader.flag("ignore_case", default=False)
    return ExactVerifier(values=values, strip=strip, ignore_case=ignore_case)


def _regex(reader: Spec) -> SchemaVerifier:
    pattern = reader.text("pattern", longest=_LONGEST_PATTERN)
    schema = {"type": "string", "pattern": pattern}
    try:
        compile_schema(schema)
    except ValueError:
        told = "which is no regular expression without backreferences and lookaround, or one that is too large"
        raise ValueError(f"pattern is {pattern!r}, {told}; write it with neither, and with smaller bounds") from None
    return SchemaVerifier(schema=json.dumps(schema), is_text=True)


def _json_schema(reader: Spec) -> SchemaVerifier:
    schema = reader.value("schema")
    Document(schema)  # its limits are those of schemas that a grammar is made of
    try:
        compile_schema(schema)
    except ValueError as error:
        told = f"schema is no JSON Schema that an answer can be held to: {error}"
        raise ValueError(f"{told}; mend it there, and put what it refers to into $defs") from None
    return SchemaVerifier(schema=json.dumps(schema), is_text=False)


def _tool_calls(reader: Spec) -> CallsVerifier:
    calls = reader.value("calls")
    if not isinstance(calls, list):
        raise ValueError(f"calls is {calls!r}; give a list of objects with name and arguments")
    wanted = []
    for call in calls:
        inner = Spec(call)
        wanted.append((inner.text("name"), _sorted_json(inner.value("arguments"))))
        inner.end()
    return CallsVerifier(calls=tuple(wanted))


def _judge(reader: Spec, judge: Judge | None) -> JudgeVerifier:
    rubric = reader.text("rubric", longest=_LONGEST_RUBRIC)
    grades = reader.whole("grades", default=5, least=2, most=_MOST_GRADES)
    least = reader.whole("least", default=-(-4 * grades // 5), least=1, most=grades)
    if judge is None:
        raise ValueError("type is 'judge', but no judge is there; name its endpoint and model, or take another type")
    return JudgeVerifier(judge=judge, rubric=rubric, grades=grades, least=least)


def _name_and_arguments(function: Mapping[str, Any]) -> tuple[str, str]:
    return str(function["name"]), _sorted_json(json.loads(function["arguments"]))


def _sorted_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
