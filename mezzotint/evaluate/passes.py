"""What epochs say of a task: pass@k and pass^k; what tasks add up to is said elsewhere."""

from math import comb
from typing import NamedTuple


class Tally(NamedTuple):
    """Of one task: answers that were judged, and those of them that were accepted."""

    judged: int
    accepted: int


def pass_at(k: int, tally: Tally) -> float:
    """How likely at least one of k answers is accepted, without bias from the answers that there are.

    Raises: ValueError unless 1 ≤ k ≤ tally.judged. Source: Chen et al. 2021, equation 1.
    """
    _check(k, tally)
    return 1 - comb(tally.judged - tally.accepted, k) / comb(tally.judged, k)


def pass_all(k: int, tally: Tally) -> float:
    """pass^k: how likely all of k answers are accepted, without bias.

    Raises: ValueError unless 1 ≤ k ≤ tally.judged. Source: Yao et al. 2024 (tau-bench), section 3.
    """
    _check(k, tally)
    return comb(tally.accepted, k) / comb(tally.judged, k)


def _check(k: int, tally: Tally) -> None:
    if not 1 <= k <= tally.judged:
        raise ValueError(f"k is {k}, but {tally.judged} answers were judged; take 1 to that many")
