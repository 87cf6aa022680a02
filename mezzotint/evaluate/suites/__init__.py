"""The suites by name, and folders of tasks; where their questions come from is said in the files beside this one."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mezzotint.evaluate.question import Suite
from mezzotint.evaluate.sandbox import check_sandbox
from mezzotint.evaluate.suites.code import read_humaneval, read_mbpp, read_mbpp_plus
from mezzotint.evaluate.suites.families import CHATS, draw_family
from mezzotint.evaluate.suites.folder import TASKS, read_folder
from mezzotint.evaluate.suites.gsm8k import read_gsm8k
from mezzotint.evaluate.suites.infilling import read_infilling
from mezzotint.evaluate.verify import Judge
from mezzotint.evaluate.verify_code import CommandVerifier, TestsVerifier

_READERS: Mapping[str, Callable[[Path | None, bool], Suite]] = {
    "humaneval": lambda data, walls: read_humaneval(data, walls=walls, plus=False),
    "humaneval+": lambda data, walls: read_humaneval(data, walls=walls, plus=True),
    "mbpp": lambda data, walls: read_mbpp(data, walls=walls, whole=False),
    "mbpp-all": lambda data, walls: read_mbpp(data, walls=walls, whole=True),
    "mbpp+": lambda data, walls: read_mbpp_plus(data, walls=walls),
    "infilling-single": lambda data, walls: read_infilling(data, walls=walls, lines="Single"),
    "infilling-multi": lambda data, walls: read_infilling(data, walls=walls, lines="Multi"),
    "gsm8k": lambda data, walls: read_gsm8k(data, split="test"),
    "gsm8k-train": lambda data, walls: read_gsm8k(data, split="train"),
}
SUITES = (*_READERS, *CHATS)
_USUAL = 200  # questions of a family, which has no end of them


def read_suite(
    name: str,
    *,
    data: Path | None,
    n: int | None = None,
    seed: int = 0,
    max_tokens: int | None = None,
    commands: Mapping[str, Sequence[str]] | None = None,
    judge: Judge | None = None,
    walls: bool = True,
) -> Suite:
    """Read a suite by its name, or a folder of tasks by its path.

    data: the folder with the files of benchmarks. n: so many questions, drawn by `seed`, the more the same ones first;
    None takes all, of a family 200. max_tokens: of each answer instead of the suite's own. commands, judge, walls: as
    for make_verifier.
    Raises: ValueError naming option, value and remedy; SandboxError.
    """
    if n is not None and n < 1:
        raise ValueError(f"n is {n}; ask for at least 1 question")
    if name in CHATS:
        suite = draw_family(name, n or _USUAL, seed)
    elif name in _READERS:
        suite = _draw(_READERS[name](data, walls), n, seed)
    elif Path(name, TASKS).is_file():
        suite = _draw(read_folder(Path(name), commands=commands or {}, judge=judge, walls=walls), n, seed)
    else:
        raise ValueError(f"suite is {name!r}; choose from {', '.join(SUITES)}, or name a folder with a {TASKS}")
    if walls and any(isinstance(question.verifier, TestsVerifier | CommandVerifier) for question in suite.questions):
        check_sandbox()
    if max_tokens is None:
        return suite
    if max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}; give at least 1")
    return replace(suite, questions=tuple(replace(each, max_tokens=max_tokens) for each in suite.questions))


def _draw(suite: Suite, n: int | None, seed: int) -> Suite:
    if n is None or n >= len(suite.questions):
        return suite
    order = list(range(len(suite.questions)))
    random.Random(f"{suite.name}/{seed}").shuffle(order)
    return replace(suite, questions=tuple(suite.questions[at] for at in sorted(order[:n])))
