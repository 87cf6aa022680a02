"""Tasks of a user's file: a line of JSON each, with messages and what says whether an answer is right."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mezzotint.bench.task import AnyText, Hop, Task, Workload
from mezzotint.types import Verifier

MakeVerifier = Callable[[Mapping[str, Any]], Verifier]
_FIELDS = "id messages verifier tools max_tokens retrieval_s response_format extra".split()


def file_workload(path: Path, make_verifier: MakeVerifier, *, seed: int, retrieval_s: float = 0.0) -> Workload:
    """The tasks of a file: {"messages": [...], "verifier": {"type": ..., ...}} a line, and more if wanted.

    id: of the line. tools, response_format, max_tokens: of the request. retrieval_s: this task's own. extra: further
    fields of the body. A line without a verifier takes every text.
    Raises: ValueError naming file, line and what is wrong with it; OSError.
    """
    text = path.read_text(encoding="utf-8")
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    tasks = [
        _read_task(f"{path}, line {number}", line, index, make_verifier, seed, retrieval_s)
        for index, (number, line) in enumerate(lines)
    ]
    if not tasks:
        raise ValueError(f'{path} has no lines; write {{"messages": [...], "verifier": {{...}}}}, one a line')
    free = sum(isinstance(task.hops[0].verifier, AnyText) for task in tasks)
    note = f"{len(tasks)} tasks of {path.name}; accepted by each line's verifier"
    return Workload(
        name=path.stem,
        make=tasks.__getitem__,
        note=f"{note}, {free} of them without one: any text is" if free else note,
        digest=f"file {hashlib.sha256(text.encode()).hexdigest()[:16]} seed {seed}",
        size=len(tasks),
    )


def _read_task(where: str, line: str, index: int, make_verifier: MakeVerifier, seed: int, retrieval_s: float) -> Task:
    try:
        told = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON: {error}") from None
    if not isinstance(told, dict) or not isinstance(told.get("messages"), list) or not told["messages"]:
        raise ValueError(f'{where} has no messages; write {{"messages": [...], "verifier": {{...}}}}')
    if unknown := told.keys() - set(_FIELDS):
        raise ValueError(f"{where} has {', '.join(sorted(unknown))}; known are {', '.join(_FIELDS)}")
    try:
        verifier = make_verifier(told["verifier"]) if "verifier" in told else AnyText()
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{where} has a verifier that cannot be had: {error}") from error
    extra = {**told.get("extra", {})}
    if "response_format" in told:
        extra["response_format"] = told["response_format"]
    hop = Hop(
        messages=tuple(told["messages"]),
        verifier=verifier,
        tools=tuple(told.get("tools", ())),
        max_tokens=told.get("max_tokens"),
        extra=extra,
    )
    return Task(
        id=str(told.get("id", index)),
        family="file",
        seed=seed * 1_000_000 + index,
        hops=(hop,),
        retrieval_s=told.get("retrieval_s", retrieval_s),
    )
