"""HumanEval-Infilling: a line, or several, of HumanEval's solutions to be written between the others."""

from pathlib import Path
from typing import Literal

from mezzotint.evaluate.question import Question, Suite
from mezzotint.evaluate.suites.files import read_lines
from mezzotint.evaluate.verify import make_verifier

_SOURCE = "https://github.com/openai/human-eval-infilling/tree/master/data"
_MAX_TOKENS = {"Single": 64, "Multi": 256}


def read_infilling(data: Path | None, *, walls: bool, lines: Literal["Single", "Multi"]) -> Suite:
    """1,033 blanks of a line, or 5,815 of several; judged by HumanEval's tests.

    Raises: ValueError where the file is not there; SandboxError. Source: Bavarian et al. 2022.
    """
    questions = []
    for task in read_lines(data, f"HumanEval-{lines}LineInfilling", _SOURCE):
        spec = {
            "type": "python_tests",
            "before": task["prompt"],
            "after": task["suffix"],
            "as_is": True,
            "tests": f"{task['test']}\ncheck({task['entry_point']})\n",
        }
        questions.append(
            Question(
                id=task["task_id"],
                around=(task["prompt"], task["suffix"]),
                verifier=make_verifier(spec, walls=walls),
                max_tokens=_MAX_TOKENS[lines],
                right=task["canonical_solution"],
            )
        )
    return Suite(name=f"infilling-{lines.lower()}", questions=tuple(questions))
