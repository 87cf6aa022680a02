"""A folder of somebody's own tasks: `tasks.jsonl`, a task a line, and `verifier.json` for what all of them share.

    {"id": "1", "prompt": "Name the capital of France.", "verifier": {"value": "Paris"}}

prompt: what a user says; or messages, a chat in OpenAI's form. tools, schema: declared to the model. max_tokens: of the
answer. verifier: see make_verifier; it adds to the folder's, and overrules it.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mezzotint.evaluate.history import read_history
from mezzotint.evaluate.question import Question, Suite
from mezzotint.evaluate.spec import Spec
from mezzotint.evaluate.verify import Judge, make_verifier
from mezzotint.text.messages import check_chat

TASKS = "tasks.jsonl"
_SHARED = "verifier.json"
_MAX_TOKENS, _MOST_TOKENS = 512, 1 << 20


def read_folder(folder: Path, *, commands: Mapping[str, Sequence[str]], judge: Judge | None, walls: bool) -> Suite:
    """Read all tasks before any is asked.

    Raises: ValueError naming the line, what is wrong with it and the remedy; SandboxError.
    """
    shared = _read_object((folder / _SHARED).read_text(), str(folder / _SHARED)) if _has_shared(folder) else {}
    questions: dict[str, Question] = {}
    for number, line in enumerate((folder / TASKS).read_text(encoding="utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        where = f"{folder / TASKS}, line {number}"
        try:
            question = _read_task(_read_object(line, where), shared, commands, judge, walls=walls)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        if question.id in questions:
            raise ValueError(f"{where} has the id {question.id!r} of an earlier line; give each its own")
        questions[question.id] = question
    if not questions:
        raise ValueError(f"{folder / TASKS} has no task; write one a line")
    return Suite(name=folder.resolve().name, questions=tuple(questions.values()))


def _read_task(
    task: Mapping[str, Any],
    shared: Mapping[str, Any],
    commands: Mapping[str, Sequence[str]],
    judge: Judge | None,
    *,
    walls: bool,
) -> Question:
    reader = Spec(task)
    own, tools, schema = reader.value("verifier", {}), reader.value("tools", []), reader.value("schema", None)
    if not isinstance(own, dict):
        raise ValueError(f"verifier is {own!r}; give an object")
    if schema is not None and not isinstance(schema, dict):
        raise ValueError(f"schema is {schema!r}; give a JSON Schema as an object")
    if not (merged := {**shared, **own}):
        raise ValueError(f"verifier is missing; give one in the task, or for all tasks in {_SHARED}")
    question = Question(
        id=reader.text("id"),
        messages=_read_messages(reader, tools),
        tools=tuple(tools),
        schema=schema,
        max_tokens=reader.whole("max_tokens", _MAX_TOKENS, least=1, most=_MOST_TOKENS),
        verifier=make_verifier(merged, commands=commands, judge=judge, walls=walls),
    )
    reader.end()
    return question


def _read_messages(reader: Spec, tools: Any) -> tuple[Mapping[str, Any], ...]:
    prompt, messages = reader.value("prompt", None), reader.value("messages", None)
    if (prompt is None) == (messages is None):
        raise ValueError("give either prompt, what a user says, or messages, a chat")
    if prompt is not None:
        messages = [{"role": "user", "content": reader.text("prompt")}]
    if not isinstance(messages, list) or not isinstance(tools, list):
        raise ValueError(f"messages are {messages!r} and tools {tools!r}; give lists")
    read = read_history(messages)
    check_chat(read, tools)
    return tuple(read)


def _has_shared(folder: Path) -> bool:
    return (folder / _SHARED).is_file()


def _read_object(text: str, where: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is no JSON: {error}; correct or remove it") from error
    if not isinstance(told, dict):
        raise ValueError(f"{where} is {told!r}; write an object")
    return told
