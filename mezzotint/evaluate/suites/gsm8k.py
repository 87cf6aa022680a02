"""GSM8K: school sums in words, judged by their number."""

from pathlib import Path
from typing import Literal

from mezzotint.evaluate.question import Question, Suite
from mezzotint.evaluate.suites.files import read_lines
from mezzotint.evaluate.verify import make_verifier

_SOURCE = "https://github.com/openai/grade-school-math/tree/master/grade_school_math/data"
_MAX_TOKENS = 512
_TRAINED = "these are the questions that the benchmark gives for training; a model may have learnt them"


def read_gsm8k(data: Path | None, *, split: Literal["train", "test"]) -> Suite:
    """7,473 questions for training or 1,319 for tests, in gsm8k_train.jsonl or gsm8k_test.jsonl.

    Raises: ValueError where the file is not there. Source: Cobbe et al. 2021.
    """
    questions = []
    for number, task in enumerate(read_lines(data, f"gsm8k_{split}", f"{_SOURCE}/{split}.jsonl")):
        value = task["answer"].rpartition("####")[2].strip()
        told = "Think step by step, and end with the number alone on a line behind ####."
        questions.append(
            Question(
                id=str(number),
                messages=({"role": "user", "content": f"{task['question']}\n\n{told}"},),
                verifier=make_verifier({"type": "number", "value": value}),
                max_tokens=_MAX_TOKENS,
                right=task["answer"],
            )
        )
    name, note = ("gsm8k", "") if split == "test" else ("gsm8k-train", _TRAINED)
    return Suite(name=name, questions=tuple(questions), note=note)
