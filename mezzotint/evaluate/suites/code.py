"""HumanEval and MBPP, with the tests that they came with and those of EvalPlus."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mezzotint.evaluate.question import Question, Suite
from mezzotint.evaluate.suites.files import read_lines
from mezzotint.evaluate.suites.oracle import write_oracle
from mezzotint.evaluate.verify import make_verifier
from mezzotint.types import Verifier

_HUMANEVAL = "https://github.com/evalplus/humanevalplus_release"
_MBPP = "https://github.com/google-research/google-research/tree/master/mbpp"
_MBPP_PLUS = "https://github.com/evalplus/mbppplus_release"
_MAX_TOKENS = 768
_TIME_S = 20.0  # one of MBPP's own solutions takes five
_PLUS_TIME_S = 60.0  # hundreds of inputs, and the reference's answers to them
_FAILING = dict.fromkeys(("367", "927"), "its own solution fails its own tests under Python 3.11")
_SLOW = {"Mbpp/599": "its inputs take its own reference half a minute"}
_TESTED = range(11, 511)  # ids of MBPP's test split, as published figures take them


def read_humaneval(data: Path | None, *, walls: bool, plus: bool) -> Suite:
    """164 functions to be written by their signature and docstring.

    plus: with EvalPlus's further inputs, to which answers must be those of its reference.
    Raises: ValueError where the file is not there; SandboxError. Source: Chen et al. 2021; Liu et al. 2023.
    """
    questions = []
    for task in read_lines(data, "HumanEvalPlus", _HUMANEVAL):
        tests = f"{task['test']}\ncheck({task['entry_point']})\n"
        solution = task["prompt"] + task["canonical_solution"]
        told = "Complete this Python function. Answer with the whole function in one block of Python."
        questions.append(
            Question(
                id=task["task_id"],
                messages=_ask(f"{told}\n\n```python\n{task['prompt'].rstrip()}\n```"),
                verifier=_verifier(task, tests, solution, before=task["prompt"], plus=plus, walls=walls),
                max_tokens=_MAX_TOKENS,
                right=solution,
            )
        )
    return Suite(name="humaneval+" if plus else "humaneval", questions=tuple(questions))


def read_mbpp(data: Path | None, *, walls: bool, whole: bool) -> Suite:
    """Functions to be written by a sentence and three assertions: the test split, or all 974.

    Raises: ValueError where the file is not there; SandboxError. Source: Austin et al. 2021.
    """
    questions, skipped = [], {}
    for task in read_lines(data, "mbpp", _MBPP):
        id = str(task["task_id"])
        if not whole and task["task_id"] not in _TESTED:
            continue
        if id in _FAILING:
            skipped[id] = _FAILING[id]
            continue
        tests = "\n".join(task["test_list"])
        told = f"{task['text']} The code must pass these tests:\n\n```python\n{tests}\n```"
        spec = {"type": "python_tests", "setup": task["test_setup_code"], "tests": tests, "time_s": _TIME_S}
        questions.append(
            Question(
                id=id,
                messages=_ask(f"{told}\n\nAnswer with one block of Python."),
                verifier=make_verifier(spec, walls=walls),
                max_tokens=_MAX_TOKENS,
                right=task["code"],
            )
        )
    return Suite(name="mbpp-all" if whole else "mbpp", questions=tuple(questions), skipped=skipped)


def read_mbpp_plus(data: Path | None, *, walls: bool) -> Suite:
    """378 tasks of MBPP that EvalPlus mended, with its further inputs.

    Raises: ValueError where the file is not there; SandboxError. Source: Liu et al. 2023.
    """
    questions = []
    for task in read_lines(data, "MbppPlus", _MBPP_PLUS):
        if task["task_id"] in _SLOW:
            continue
        tests = f"import math\n{task['assertion']}"  # which some of them need and do not import
        told = "Write a Python function for this. Answer with one block of Python."
        questions.append(
            Question(
                id=task["task_id"],
                messages=_ask(f"{told}\n\n{task['prompt'].strip()}"),
                verifier=_verifier(task, tests, task["canonical_solution"], before="", plus=True, walls=walls),
                max_tokens=_MAX_TOKENS,
                right=task["canonical_solution"],
            )
        )
    return Suite(name="mbpp+", questions=tuple(questions), skipped=_SLOW)


def _verifier(task: Mapping[str, Any], tests: str, solution: str, *, before: str, plus: bool, walls: bool) -> Verifier:
    spec: dict[str, Any] = {"type": "python_tests", "tests": tests, "before": before}
    if plus:
        inputs = json.dumps([*task["base_input"], *task["plus_input"]])
        spec["tests"] += write_oracle(task["entry_point"], solution, inputs, task["atol"])
        spec |= {"time_s": _PLUS_TIME_S, "memory_mb": 4096}
    return make_verifier(spec, walls=walls)


def _ask(content: str) -> tuple[Mapping[str, Any], ...]:
    return ({"role": "user", "content": content},)
