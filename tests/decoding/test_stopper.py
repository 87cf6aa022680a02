"""Stop strings under every decoder: an answer is its beginning without them, up to the token that completes one."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from mezzotint.decoding.generate import Block, Finished, generate_blocks, generate_tokens
from mezzotint.decoding.guide import Guide
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.verify import generate_guessed, generate_verified
from mezzotint.types import Stopper
from tests.decoding.letters import Letters, keep, spell
from tests.decoding.machine import anything
from tests.decoding.network import C, Scripted, limits

PROMPT = [3, 1, 4, 1, 5]
ASKED: dict[str, dict[str, Any]] = {
    "ar": {"decoder": "ar"},
    "ar, scored": {"decoder": "ar", "logprobs": 2},
    "verified": {"decoder": "verified"},
    "verified, long drafts": {"decoder": "verified", "draft_tokens": 6, "draft_steps": 1},
    "mtp": {"decoder": "mtp"},
    "diffusion": {"steps": 3},
    "diffusion, scored": {"steps": 3, "logprobs": 2},
    "diffusion, narrow": {"steps": 2, "canvas_length": 3, "sampler": "jax"},
}


class Guesser:
    """A drafter that knows an answer and is now and then wrong."""

    def __init__(self, answer: Sequence[int]) -> None:
        self.answer = [*answer, *[0] * 40]

    @property
    def reach(self) -> int:
        return 0

    def guess(self, need: Any, kv: Any) -> list[int]:
        first = need.at + 1 - len(PROMPT)
        told = self.answer[first : first + need.size]
        return [token if (first + index) % 4 else 0 for index, token in enumerate(told)]


def write(
    name: str, seed: int, stopper: Stopper | None = None, answer: Sequence[int] = (), **options: Any
) -> list[Any]:
    """The events of a request. answer: what a drafter expects."""
    params = SamplingParams(**{"max_tokens": 20, "ignore_eos": True, **ASKED[name], **options})
    given = (PROMPT, params, seed, limits())
    if params.decoder == "ar":
        return list(generate_tokens(Scripted(), *given, stopper=stopper))
    if params.decoder == "verified":
        return list(generate_verified(Scripted(), *given, stopper=stopper))
    if params.decoder == "mtp":
        return list(generate_guessed(Scripted(), Guesser(answer), *given, stopper=stopper))
    return list(generate_blocks(Scripted(), *given, stopper=stopper))


def tokens(events: Sequence[Any]) -> list[int]:
    return [token for event in events if isinstance(event, Block) for token in event.tokens]


def reason(events: Sequence[Any]) -> str:
    finished = events[-1]
    assert isinstance(finished, Finished)
    return finished.reason


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("seed", range(3))
def test_an_answer_ends_with_the_token_that_completes_a_stop_string(name: str, seed: int) -> None:
    rng = Random(seed)
    whole = tokens(write(name, seed, answer=tokens(write("ar", seed))))
    text = spell(whole)
    assert len(whole) == 20
    for _ in range(4):
        first = rng.randrange(len(text) - 1)
        stops = [text[first : first + rng.randint(1, 5)], "".join(rng.choices("abc", k=3))]
        stopper = Letters(*stops)
        for _ in range(2):  # a stopper is the request's: it is not used up
            events = write(name, seed, stopper, whole)
            assert tokens(events) == keep(whole, stops)
            assert reason(events) == "stop"


@pytest.mark.parametrize("name", ASKED)
def test_a_string_may_end_with_the_first_token_and_with_the_last_that_is_allowed(name: str) -> None:
    seed = next(seed for seed in range(20) if spell(tokens(write(name, seed, max_tokens=1))))
    [first] = tokens(write(name, seed, Letters(spell(tokens(write(name, seed, max_tokens=1))))))
    whole = tokens(write(name, seed))
    assert first == whole[0]
    for size in range(1, len(whole) + 1):
        stop = spell(whole[:size])
        if spell(whole[: size - 1]) != stop:  # its last token spells the string's end
            events = write(name, seed, Letters(stop), max_tokens=size)
            assert (tokens(events), reason(events)) == (whole[:size], "stop")
            short = write(name, seed, Letters(stop + "a"), max_tokens=size)
            assert (tokens(short), reason(short)) == (whole[:size], "length")


@pytest.mark.parametrize("name", ASKED)
def test_strings_that_are_never_written_change_nothing(name: str) -> None:
    assert write(name, 1, Letters("abcabcabcabc")) == write(name, 1)


def test_a_string_crosses_canvases() -> None:
    whole = tokens(write("diffusion", 1))
    stop = next(
        spell(whole[first : first + size])
        for size in range(2, 9)
        for first in range(C - size + 1, C)
        if len(keep(whole, [spell(whole[first : first + size])])) > C and spell(whole[first:C])
    )
    blocks = [event.tokens for event in write("diffusion", 1, Letters(stop)) if isinstance(event, Block)]
    assert blocks[0] == whole[:C]
    assert [token for block in blocks for token in block] == keep(whole, [stop])


@pytest.mark.parametrize("options", [{}, {"draft_tokens": 6, "draft_steps": 2}], ids=str)
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_verified_and_mtp_end_where_ar_ends(temperature: float, options: dict[str, Any]) -> None:
    for seed in range(3):
        for stop in ("ab", "caa", "bb"):
            law: dict[str, Any] = {"temperature": temperature, "ignore_eos": False}
            expected = write("ar", seed, Letters(stop), **law)
            verified = write("verified", seed, Letters(stop), **law, **options)
            guessed = write("mtp", seed, Letters(stop), tokens(expected), **law)
            assert tokens(verified) == tokens(guessed) == tokens(expected)
            assert reason(verified) == reason(guessed) == reason(expected)


@pytest.mark.parametrize("decoder", ["ar", "verified", "mtp", "diffusion"])
def test_a_stop_string_together_with_a_grammar_is_refused(decoder: Any) -> None:
    params = SamplingParams(decoder=decoder, max_tokens=8)
    with pytest.raises(ValueError, match="stop strings are given, but a grammar's answer has to be whole"):
        Guide(PROMPT, params, 1, limits(), anything(), Letters("a"))


@pytest.mark.parametrize("name", ASKED)
def test_a_stop_string_that_may_come_before_min_tokens_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="min_tokens is 3, but a stop string may come before so many"):
        write(name, 1, Letters("a"), min_tokens=3)
