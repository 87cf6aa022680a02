"""Verifiers: what each takes and refuses, what cannot be judged, and specifications that ask for what is not there."""

import asyncio
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mezzotint.evaluate import apart
from mezzotint.evaluate.sandbox import SandboxError
from mezzotint.evaluate.verify import KINDS, LONGEST_ANSWER, Rating, make_verifier
from mezzotint.types import Verdict


def judged(spec: Mapping[str, Any], answer: str | Mapping[str, Any], **options: Any) -> Verdict:
    message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
    return asyncio.run(make_verifier(spec, **options).verify([{"role": "user", "content": "?"}], message))


def accepts(spec: Mapping[str, Any], answer: str | Mapping[str, Any], **options: Any) -> bool | None:
    return judged(spec, answer, **options).accepted


@pytest.mark.parametrize(
    ("options", "answer", "accepted"),
    [
        ({"value": "Paris"}, " Paris\n", True),
        ({"value": "Paris"}, "paris", False),
        ({"value": "Paris", "ignore_case": True}, "PARIS", True),
        ({"value": "Paris", "strip": False}, "Paris\n", False),
        ({"value": ["a", "b"]}, "b", True),
        ({"value": ["a", "b"]}, "ab", False),
        ({"value": ""}, "", True),
    ],
)
def test_an_exact_answer_is_one_of_the_values(options: dict[str, Any], answer: str, accepted: bool) -> None:
    assert accepts({"type": "exact", **options}, answer) is accepted


def test_the_content_of_a_message_may_come_in_parts_or_not_at_all() -> None:
    spec = {"type": "exact", "value": "ab"}
    assert accepts(spec, {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}) is True
    assert accepts(spec, {"content": None, "tool_calls": []}) is False


@pytest.mark.parametrize(
    ("value", "answer", "accepted"),
    [
        ("72", "48 + 24 = 72.", True),
        ("72", "#### 72\nCheck: 48/2 is 24", True),
        ("72", "so it is \\boxed{72}, not 71", True),
        ("72", "72 and then 73", False),
        ("1000.5", "It costs $1,000.50 in all", True),
        ("-3", "it is −3", True),
        ("3", "it is -3", False),
        ("2024", "about 12024", False),
        ("5", "none", False),
        ("7", "7 of 7.0", True),
    ],
)
def test_a_number_is_the_marked_one_or_the_last(value: str, answer: str, accepted: bool) -> None:
    assert accepts({"type": "number", "value": value}, answer) is accepted


@pytest.mark.parametrize(
    ("pattern", "answer", "accepted"),
    [
        (r"\b\d{4}\b", "in 1984, say", True),
        (r"^\d{4}$", "in 1984", False),
        ("(?i)yes", "YES", True),
        ("é+", "éé", True),
        ("^a.c$", "a\nc", False),
    ],
)
def test_a_pattern_is_found_anywhere_unless_it_is_anchored(pattern: str, answer: str, accepted: bool) -> None:
    assert accepts({"type": "regex", "pattern": pattern}, answer) is accepted


def test_a_pattern_that_makes_others_hang_is_answered_at_once() -> None:
    begin = time.process_time()
    assert accepts({"type": "regex", "pattern": "^(a+)+$"}, "a" * 100_000 + "b") is False
    assert time.process_time() - begin < 1


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "day": {"type": "string", "format": "date"}},
    "required": ["n"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"n": 3, "day": "2024-02-29"}', None),
        (' {"n": 3}\n', None),
        ('{"n": "3"}', 'at /n: "3" is not of type "integer"'),
        ('{"n": 3, "day": "2023-02-29"}', 'at /day: "2023-02-29" is not a "date"'),
        ('{"n": NaN}', "it is no JSON: NaN is no number in JSON"),
        ('```json\n{"n": 3}\n```', "it is no JSON: Expecting value"),
        ("[" * 100_000, "it is no JSON: maximum recursion depth exceeded"),
        ("", "it is no JSON: Expecting value"),
    ],
    ids=lambda text: str(text)[:20],
)
def test_an_answer_is_held_to_its_schema_as_it_stands(answer: str, reason: str | None) -> None:
    verdict = judged({"type": "json_schema", "schema": SCHEMA}, answer)
    assert verdict.accepted is (reason is None)
    assert verdict.reason.startswith(reason or "")


def doubling(depth: int) -> dict[str, Any]:
    """A schema that takes 2^depth steps for any value."""
    links = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(depth)}
    return {"$ref": "#/$defs/d0", "$defs": {**links, f"d{depth}": {"type": "integer"}}}


def test_a_schema_that_takes_for_ever_is_stopped_while_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_TIME_S", 0.3)
    endless = make_verifier({"type": "json_schema", "schema": doubling(40)})
    ticks = 0

    async def watch() -> Verdict:
        nonlocal ticks
        judging = asyncio.create_task(endless.verify([], {"content": "1"}))
        while not judging.done():
            ticks += 1
            await asyncio.sleep(0.01)  # what is tested is that others get their turn meanwhile
        return await judging

    verdict = asyncio.run(watch())
    assert verdict == (None, "holding the answer to its schema took more than 0.3 s or 1024 MB")
    assert ticks > 5
    monkeypatch.undo()
    assert accepts({"type": "json_schema", "schema": doubling(4)}, "1") is True


def test_an_answer_longer_than_anyone_reads_is_not_judged() -> None:
    spec = {"type": "json_schema", "schema": True}
    assert accepts(spec, "1" + " " * (LONGEST_ANSWER - 1)) is True
    assert judged(spec, "1" + " " * LONGEST_ANSWER) == (
        None,
        "it has 1000001 characters; at most 1000000 are held to a schema or pattern",
    )


def called(name: str, arguments: str) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_calls_are_compared_by_name_and_arguments_in_any_order() -> None:
    spec = {
        "type": "tool_calls",
        "calls": [{"name": "f", "arguments": {"a": 1, "b": "x"}}, {"name": "g", "arguments": {}}],
    }
    f, g = called("f", '{"b":"x", "a":1}'), called("g", "{}")
    assert accepts(spec, {"tool_calls": [g, f]}) is True
    assert accepts(spec, {"tool_calls": [f]}) is False
    assert accepts(spec, {"tool_calls": [f, g, g]}) is False
    assert accepts(spec, {"tool_calls": [called("f", '{"b":"x", "a":"1"}'), g]}) is False
    assert accepts(spec, {"tool_calls": [called("f", "{"), g]}) is False
    assert accepts(spec, {"tool_calls": [{"function": {}}, g]}) is False
    assert accepts({"type": "tool_calls", "calls": []}, "no call is needed") is True


class FirmJudge:
    def __init__(self, grade: int | None) -> None:
        self.asked: list[tuple[str, int]] = []
        self._grade = grade

    async def rate(
        self, messages: Sequence[Mapping[str, Any]], answer: Mapping[str, Any], *, rubric: str, grades: int
    ) -> Rating:
        self.asked.append((rubric, grades))
        return Rating(self._grade, "because")


@pytest.mark.parametrize(
    ("grade", "options", "accepted"),
    [(4, {}, True), (3, {}, False), (3, {"least": 3}, True), (None, {}, None), (2, {"grades": 2}, True)],
)
def test_a_judge_accepts_from_four_fifths_of_its_grades_on(
    grade: int | None, options: dict[str, Any], accepted: bool | None
) -> None:
    judge = FirmJudge(grade)
    verdict = judged({"type": "judge", "rubric": "be kind", **options}, "hello", judge=judge)
    assert verdict.accepted is accepted
    assert "because" in verdict.reason
    assert judge.asked == [("be kind", options.get("grades", 5))]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ([], "options are []; give a JSON object"),
        ({}, "type is missing; give it beside nothing"),
        ({"type": "vibes"}, f"type is 'vibes'; choose from {', '.join(KINDS)}"),
        ({"type": "exact"}, "value is missing of type 'exact'; give it beside type"),
        ({"type": "exact", "value": []}, "value is []; give a text or a list of some"),
        (
            {"type": "exact", "value": "a", "case": 1},
            "option 'case' is not known; choose from ignore_case, strip",
        ),
        ({"type": "exact", "value": "a", "strip": 1}, "strip is 1; give true or false"),
        ({"type": "number", "value": "many"}, "value is 'many'; write a number"),
        ({"type": "number", "value": "inf"}, "value is 'inf'; write a finite number"),
        ({"type": "regex", "pattern": "("}, "pattern is '(', which is no regular expression"),
        ({"type": "regex", "pattern": r"(a)\1"}, "write it with neither"),
        ({"type": "regex", "pattern": "(?=a)"}, "write it with neither"),
        ({"type": "regex", "pattern": "a{1000}{1000}"}, "with smaller bounds"),
        ({"type": "regex", "pattern": "a" * 5000}, "pattern has 5000 characters; at most 4096"),
        (
            {"type": "json_schema", "schema": {"type": "strin"}},
            "schema is no JSON Schema that an answer can be",
        ),
        ({"type": "json_schema", "schema": {"$ref": "https://example.com/a"}}, "put what it refers to into $defs"),
        ({"type": "json_schema", "schema": {"$schema": "x"}}, "$schema is 'x'; use one of"),
        ({"type": "json_schema", "schema": 3}, "a schema is 3; give a JSON object"),
        ({"type": "tool_calls", "calls": {}}, "calls is {}; give a list of objects"),
        ({"type": "tool_calls", "calls": [{"name": "f"}]}, "arguments is missing; give it beside name"),
        ({"type": "judge", "rubric": "r"}, "type is 'judge', but no judge is there; name its endpoint"),
        ({"type": "judge", "rubric": "r", "grades": 1}, "grades is 1; give a whole number from 2 to 10"),
        ({"type": "judge", "rubric": "r", "least": 6}, "least is 6; give a whole number from 1 to 5"),
        (
            {"type": "command", "name": "rm"},
            "name is 'rm', which is no command that the operator allows; ",
        ),
        ({"type": "command", "name": "lint"}, "command 'lint' is ['no-such-program'], which is no program here"),
        ({"type": "python_tests", "tests": "", "time_s": 100}, "time_s is 100; give seconds above 0, at most 60"),
        ({"type": "python_tests", "tests": "", "memory_mb": 1}, "memory_mb is 1; give a whole number from 16 to 4096"),
    ],
)
def test_a_specification_is_refused_by_option_value_and_remedy(spec: Any, told: str) -> None:
    with pytest.raises(ValueError, match=r"; |missing") as error:
        make_verifier(spec, commands={"lint": ["no-such-program"]})
    assert told in str(error.value)


@pytest.mark.parametrize("spec", [{"type": "python_tests", "tests": ""}, {"type": "command", "name": "cat"}])
def test_what_runs_programs_is_refused_without_bubblewrap_unless_that_is_meant(
    spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "bwrap" else which(name))
    with pytest.raises(SandboxError, match=r"bwrap is not installed.*say that programs are to run without it"):
        make_verifier(spec, commands={"cat": ["cat"]})
    assert accepts(spec, json.dumps(1), commands={"cat": ["cat"]}, walls=False) is True
