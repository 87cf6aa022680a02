"""Seeded task families with exact verifiers: what train learns and evaluate scores by; no tensors.

Each example is a pure function of (family, split, seed), and what test holds out never occurs in train: each
family's module says which names, values, wordings, functions, tools or grids.
"""

from mezzotint.tasks.call import CALL
from mezzotint.tasks.chat import CHAT
from mezzotint.tasks.choose import CHOOSE
from mezzotint.tasks.extract import EXTRACT
from mezzotint.tasks.family import Example, Family, Split
from mezzotint.tasks.infill import INFILL
from mezzotint.tasks.repair import REPAIR
from mezzotint.tasks.repeat import REPEAT
from mezzotint.tasks.rule import PARALLEL_RULE, SEQUENTIAL_RULE
from mezzotint.tasks.sudoku import SUDOKU

FAMILIES: dict[str, Family] = {
    "extract": EXTRACT,
    "call": CALL,
    "repair": REPAIR,
    "infill": INFILL,
    "choose": CHOOSE,
    "chat": CHAT,
    "sudoku": SUDOKU,
    "parallel_rule": PARALLEL_RULE,
    "sequential_rule": SEQUENTIAL_RULE,
    "repeat": REPEAT,
}

__all__ = ["FAMILIES", "Example", "Family", "Split"]
