"""pass@k and pass^k against counting all subsets."""

from itertools import combinations

import pytest

from mezzotint.evaluate.passes import Tally, pass_all, pass_at


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_both_are_the_shares_of_all_subsets(n: int) -> None:
    for accepted in range(n + 1):
        answers = [True] * accepted + [False] * (n - accepted)
        for k in range(1, n + 1):
            subsets = list(combinations(answers, k))
            assert pass_at(k, Tally(n, accepted)) == pytest.approx(sum(map(any, subsets)) / len(subsets))
            assert pass_all(k, Tally(n, accepted)) == pytest.approx(sum(map(all, subsets)) / len(subsets))


@pytest.mark.parametrize("k", [0, 4])
def test_more_answers_than_there_are_cannot_be_drawn(k: int) -> None:
    with pytest.raises(ValueError, match=f"k is {k}, but 3 answers were judged"):
        pass_at(k, Tally(3, 1))
    with pytest.raises(ValueError, match=f"k is {k}, but 3 answers were judged"):
        pass_all(k, Tally(3, 1))
