"""Folders of somebody's own tasks: what a line may say, and how it is told what is wrong with it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mezzotint.evaluate.sandbox import SandboxError, check_sandbox
from mezzotint.evaluate.suites import read_suite
from mezzotint.evaluate.suites.folder import read_folder

EXACT = {"type": "exact", "value": "yes"}


def write(folder: Path, *tasks: Any, verifier: Any = None) -> Path:
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)) + "\n\n")
    if verifier is not None:
        (folder / "verifier.json").write_text(json.dumps(verifier))
    return folder


def test_a_task_is_a_prompt_or_a_chat_with_what_is_declared(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    chat = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
    ]
    more = {"tools": [tool], "schema": {"type": "object"}, "max_tokens": 9}
    folder = write(
        tmp_path,
        {"id": "a", "prompt": "yes?", "verifier": EXACT},
        {"id": "b", "messages": chat, "verifier": {"type": "regex", "pattern": "y"}, **more},
    )
    suite = read_suite(str(folder), data=None)
    first, second = suite.questions
    assert suite.name == tmp_path.name
    assert (first.messages, first.max_tokens) == (({"role": "user", "content": "yes?"},), 512)
    assert second.messages[1]["tool_responses"] == [{"name": "f", "response": "done"}]
    assert (second.tools, second.schema, second.max_tokens) == ((tool,), {"type": "object"}, 9)
    assert asyncio.run(first.verifier.verify([], {"content": "yes"})).accepted is True


def test_the_verifier_of_a_task_adds_to_that_of_the_folder_and_overrules_it(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {"id": "a", "prompt": "?", "verifier": {"value": "no"}},
        {"id": "b", "prompt": "?"},
        verifier={**EXACT, "ignore_case": True},
    )
    no, yes = read_suite(str(folder), data=None).questions
    assert asyncio.run(no.verifier.verify([], {"content": "NO"})).accepted is True
    assert asyncio.run(yes.verifier.verify([], {"content": "YES"})).accepted is True


def test_a_command_of_the_operator_judges(tmp_path: Path) -> None:
    try:
        check_sandbox()
    except SandboxError as error:
        pytest.skip(str(error))
    folder = write(tmp_path, {"id": "a", "prompt": "?"}, verifier={"type": "command", "name": "has"})
    with pytest.raises(ValueError, match="line 1: name is 'has', which is no command that the operator allows"):
        read_suite(str(folder), data=None)
    [question] = read_suite(str(folder), data=None, commands={"has": ["grep", "-q", "x"]}).questions
    assert asyncio.run(question.verifier.verify([], {"content": "a x"})).accepted is True
    assert asyncio.run(question.verifier.verify([], {"content": "a y"})).accepted is False


GOOD = {"id": "a", "prompt": "?", "verifier": EXACT}


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ({**GOOD, "notes": 1}, "line 2: option 'notes' is not known; choose from id, "),
        ({"prompt": "?", "verifier": EXACT}, "line 2: id is missing"),
        ({**GOOD, "id": 3}, "line 2: id is 3; give a text"),
        (GOOD, "line 2 has the id 'a' of an earlier line"),
        ({**GOOD, "messages": []}, "line 2: give either prompt"),
        ({"id": "b", "verifier": EXACT}, "line 2: give either prompt"),
        ({"id": "b", "messages": [], "verifier": EXACT}, "line 2: messages is empty"),
        ({"id": "b", "messages": "hi", "verifier": EXACT}, "line 2: messages are 'hi'"),
        ({"id": "b", "prompt": "?"}, "line 2: verifier is missing"),
        ({**GOOD, "verifier": "yes"}, "line 2: verifier is 'yes'; give an object"),
        ({**GOOD, "verifier": {"type": "exact"}}, "line 2: value is missing"),
        ({**GOOD, "schema": 3}, "line 2: schema is 3; give a JSON Schema"),
        ({**GOOD, "max_tokens": 0}, "line 2: max_tokens is 0; give a whole number from 1"),
        ([], "line 2 is []; write an object"),
    ],
)
def test_a_line_is_refused_by_its_number_with_a_remedy(tmp_path: Path, task: Any, told: str) -> None:
    folder = write(tmp_path, GOOD, task)
    with pytest.raises(ValueError, match="line 2") as error:
        read_folder(folder, commands={}, judge=None, walls=True)
    assert told in str(error.value)


def test_a_folder_without_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no task; write one a line"):
        read_folder(write(tmp_path), commands={}, judge=None, walls=True)
    (tmp_path / "tasks.jsonl").write_text("{")
    with pytest.raises(ValueError, match="line 1 is no JSON"):
        read_folder(tmp_path, commands={}, judge=None, walls=True)
