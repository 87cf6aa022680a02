"""A causal decoder's program that goes on behind a context which is encoded already; what it is for lives in gate."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from mezzotint.decoding.program import Block, Denoise, Encode, Encoded, Need, Program
from mezzotint.types import Score


class Written(NamedTuple):
    """What a program wrote, with the scores of it where they were asked for, and the forwards that it took.

    known: how many of its tokens are encoded for good, at most all but the last.
    """

    tokens: list[int]
    scores: tuple[Score, ...]
    steps: int
    encodes: int
    known: int


def resume(
    program: Program, before: Encoded, at: int, is_enough: Callable[[Sequence[int]], bool]
) -> Generator[Need, Any, Written]:
    """Run a program that would begin with encoding `at` tokens, which is done, until what it wrote is enough.

    before: what the last of those tokens says. Nothing is told on the way.
    """
    tokens, scores, held, steps, encodes = list[int](), list[Score](), list[int](), 0, 0
    is_begun, answer = False, None
    while not (tokens and is_enough(tokens)):
        try:
            item = program.send(answer)
        except StopIteration:
            break
        answer = None
        match item:
            case Encode() if not is_begun:
                is_begun, answer = True, before
            case Encode():
                held[item.at - at :] = item.tokens
                encodes += 1
                answer = yield item
            case Denoise():
                steps += 1
                answer = yield item
            case Block():
                tokens += item.tokens
                scores += item.scores or ()
    program.close()
    return Written(tokens, tuple(scores), steps, encodes, _count_common(held, tokens[:-1]))


def _count_common(one: Sequence[int], other: Sequence[int]) -> int:
    """With how many equal items both begin."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
