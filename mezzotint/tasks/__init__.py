"""Seeded task families with exact verifiers: what train learns and evaluate scores by; no tensors.

Each example is a pure function of (family, split, seed), and what test holds out never occurs in train:
`values` and `extract` say which names, values and sentences, `rule` which truth tables.
"""

from mezzotint.tasks.extract import EXTRACT
from mezzotint.tasks.family import Example, Family, Split
from mezzotint.tasks.repeat import REPEAT
from mezzotint.tasks.rule import PARALLEL_RULE, SEQUENTIAL_RULE

FAMILIES: dict[str, Family] = {
    "extract": EXTRACT,
    "parallel_rule": PARALLEL_RULE,
    "sequential_rule": SEQUENTIAL_RULE,
    "repeat": REPEAT,
}

__all__ = ["FAMILIES", "Example", "Family", "Split"]
