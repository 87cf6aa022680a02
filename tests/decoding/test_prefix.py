"""What is taken back of a canvas's settled beginning, when and how far; canvases themselves are tested beside."""

import torch
from torch import Tensor

from mezzotint.decoding.guide import Guide
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.prefix import Prefix
from mezzotint.types import Reading
from tests.decoding.machine import Machine, anything, spelling
from tests.decoding.network import C, limits


def begin(grammar: Machine) -> Prefix:
    return Prefix(Guide([1], SamplingParams(max_tokens=40), 1, limits(), grammar), C)


def settle(prefix: Prefix, *ids: int) -> None:
    prefix.settle(ids, [0.01 * id for id in ids], is_overridden=False)


def saying(tokens: list[int], entropy: float = 0.0) -> Reading:
    ids = torch.tensor(tokens)
    return Reading(ids, ids, torch.full((len(tokens),), entropy), torch.zeros(len(tokens)), None)


def before(tokens: list[int]) -> Tensor:
    return torch.tensor(tokens)


def test_dead_ends_take_back_one_choice_then_two_then_four() -> None:
    prefix = begin(anything())
    settle(prefix, 1, 2, 3, 4, 5, 6)
    same = prefix.tokens
    for offset in (5, 4, 2, 0, 0, 0, 0, 0):
        assert prefix.find_mistake(1e-4, saying(same), before(same)) == offset
    assert prefix.find_mistake(1e-4, saying(same), before(same)) is None
    assert prefix.find_mistake(0.5, saying(same), before(same)) is None


def test_only_a_choice_is_taken_back_and_never_what_is_forced() -> None:
    prefix = begin(spelling([1, 2, 3, 4, 5, 6], [1, 2, 9, 4, 5, 8]))
    assert prefix.tokens == [1, 2]
    other = [0] * C
    assert prefix.find_mistake(1e-4, saying(other), before(other)) is None
    settle(prefix, 3, 4, 5)
    assert prefix.find_mistake(0.5, saying(other), before(other)) == 2


def test_a_revision_needs_the_same_other_token_twice_and_sureness_and_comes_at_most_four_times() -> None:
    prefix = begin(anything())
    settle(prefix, 1, 2, 3)
    same, other, third = [1, 2, 3], [1, 5, 3], [1, 6, 3]
    assert prefix.find_mistake(0.5, saying(other), before(same)) is None
    assert prefix.find_mistake(0.5, saying(other), before(third)) is None
    assert prefix.find_mistake(0.5, saying(other, entropy=0.4), before(other)) is None
    for _ in range(4):
        assert prefix.find_mistake(0.5, saying(other), before(other)) == 1
    assert prefix.find_mistake(0.5, saying(other), before(other)) is None


def test_what_stood_before_a_choice_that_is_taken_back_stays_with_all_that_was_known_of_it() -> None:
    prefix = begin(anything())
    settle(prefix, 1, 2)
    prefix.settle([3, 4, 5], [0.3, 0.4, 0.5], is_overridden=True)
    prefix.take_back(3)
    assert prefix.tokens == [1, 2, 3]
    assert prefix.doubts == [0.01, 0.02, 0.3]
    assert prefix.barred == {3: {4}}
    guide = prefix._guide
    assert (guide.length, guide.overridden, guide.chosen, guide.room) == (3, 1, [0, 1, 2], 37)
    prefix.take_back(1)
    assert prefix.tokens == [1]
    assert (guide.length, guide.overridden, guide.chosen, guide.room) == (1, 0, [0], 39)
    assert prefix.barred == {3: {4}, 1: {2}}
