"""Answers under a grammar, in every decoder: whole wherever a whole one fits, and whose the choice was."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.constrain import generate_constrained
from mezzotint.decoding.generate import Block, Draft, Finished, generate_blocks, generate_tokens
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.verify import generate_guessed, generate_verified
from mezzotint.types import DecoderName
from tests.decoding.machine import Machine, anything, drawn, spelling
from tests.decoding.network import END, C, Scripted, V, limits, shifting, sure_of

PROMPT = [3, 1, 4, 1, 5]
DECODERS: tuple[DecoderName, ...] = ("diffusion", "ar", "verified", "mtp")


class Guesser:
    """A drafter that guesses at random."""

    def guess(self, need: Any, kv: Any) -> list[int]:
        return shifting([need.token], list(kv.ids), need.size)[0].topk(need.size).indices.tolist()


def write(
    decoder: DecoderName, grammar: Machine | None, seed: int = 1, network: Any = None, **options: Any
) -> list[Any]:
    params = SamplingParams(decoder=decoder, **{"max_tokens": 20, **options})
    network = network or Scripted()
    match decoder:
        case "diffusion":
            return list(generate_constrained(network, PROMPT, params, seed, limits(), grammar))
        case "ar":
            return list(generate_tokens(network, PROMPT, params, seed, limits(), grammar))
        case "verified":
            return list(generate_verified(network, PROMPT, params, seed, limits(), grammar))
        case "mtp":
            return list(generate_guessed(network, Guesser(), PROMPT, params, seed, limits(), grammar))


def tokens(events: Sequence[Any]) -> list[int]:
    return [token for event in events if isinstance(event, Block) for token in event.tokens]


def is_whole(answer: list[int], grammar: Machine) -> bool:
    place = grammar.copy()
    if answer[-1] != END or place.count_valid(answer[:-1]) < len(answer) - 1:
        return False
    place.consume(answer[:-1])
    return place.is_accepting


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("temperature", [0, 1])
def test_an_answer_is_whole_wherever_a_whole_one_fits_and_else_the_beginning_of_one(
    decoder: DecoderName, temperature: int
) -> None:
    reasons = set()
    for seed in range(25):
        grammar = drawn(seed)
        shortest = grammar.closure(99)
        assert shortest is not None
        for room in (1, 2, 3, 5, 9, 30):
            events = write(decoder, grammar, seed, max_tokens=room, temperature=temperature)
            answer, finished = tokens(events), events[-1]
            assert len(answer) <= room
            reasons.add((finished.reason, len(shortest) + 1 <= room))
            if len(shortest) + 1 <= room:
                assert finished.reason == "stop"
                assert is_whole(answer, grammar)
            else:
                assert finished.reason == "length"
                assert len(answer) == room
                assert grammar.count_valid(answer) == room
    assert reasons == {("stop", True), ("length", False)}


@pytest.mark.parametrize("temperature", [0, 0.7, 1])
def test_verified_and_mtp_write_what_ar_writes(temperature: float) -> None:
    for seed in range(30):
        grammar = drawn(seed)
        for room in (4, 12, 30):
            plain = write("ar", grammar, seed, temperature=temperature, max_tokens=room)
            for decoder in ("verified", "mtp"):
                for draft in ({}, {"draft_tokens": 3}):
                    events = write(decoder, grammar, seed, temperature=temperature, max_tokens=room, **draft)
                    assert tokens(events) == tokens(plain)
                    assert events[-1].reason == plain[-1].reason
                    assert (events[-1].overridden, events[-1].forced) == (plain[-1].overridden, plain[-1].forced)


def test_under_ar_a_grammar_of_everything_changes_nothing_but_that_the_answer_ends() -> None:
    for seed in range(10):
        free = list(generate_tokens(Scripted(), PROMPT, SamplingParams(decoder="ar", max_tokens=20), seed, limits()))
        expected = tokens(free)
        assert tokens(write("ar", anything(), seed)) == [*expected[:19], *[END] * (len(expected) == 20)]


def test_what_a_model_is_sure_of_and_the_grammar_allows_comes_out_in_the_steps_of_a_free_canvas() -> None:
    told = [2, 3, 5, 9, 11, END, 0, 0]
    free = list(
        generate_blocks(Scripted(beliefs=lambda *_: sure_of(told)), PROMPT, SamplingParams(max_tokens=8), 1, limits())
    )
    events = write("diffusion", anything(), network=Scripted(beliefs=lambda *_: sure_of(told)))
    assert tokens(events) == tokens(free) == told[:6]
    assert sum(event.steps for event in events if isinstance(event, Block)) <= free[1].step
    assert (events[-1].overridden, events[-1].forced) == (0, 0)


@pytest.mark.parametrize("decoder", DECODERS)
def test_an_answer_without_a_choice_takes_no_step_and_no_draw(decoder: DecoderName) -> None:
    events = write(decoder, spelling([2, 3, 5, 9]))
    assert tokens(events) == [2, 3, 5, 9, END]
    assert not any(isinstance(event, Draft) for event in events)
    assert events[-1] == Finished("stop", 0 if decoder == "diffusion" else 1, forced=5)


def test_a_forced_text_longer_than_a_canvas_is_encoded_canvas_by_canvas() -> None:
    word = [1 + index % 5 for index in range(2 * C + 3)]
    events = write("diffusion", spelling(word), max_tokens=40)
    assert [len(event.tokens) for event in events if isinstance(event, Block)] == [C, C, 4]
    assert tokens(events) == [*word, END]


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_model_that_wants_something_else_is_overridden_and_it_is_counted(decoder: DecoderName) -> None:
    """It wants 9 everywhere; of two words it may choose, and then nothing is left to choose."""
    network = Scripted(beliefs=lambda canvas, *_: sure_of([9] * len(canvas)), continuation=lambda _: sure_of([9])[0])
    events = write(decoder, spelling([2, 3], [4, 5]), network=network)
    assert tokens(events) in ([2, 3, END], [4, 5, END])
    assert events[-1].overridden == 1
    assert events[-1].forced == 2


def test_the_settled_prefix_of_a_canvas_never_changes_and_grows_only_by_what_is_valid() -> None:
    for seed in range(20):
        grammar = drawn(seed)
        events = write("diffusion", grammar, seed, max_tokens=30)
        for before, after in pairwise(events):
            if isinstance(before, Draft) and isinstance(after, Draft | Block):
                kept = [id for id, is_kept in zip(before.tokens, before.accepted, strict=True) if is_kept]
                assert after.tokens[: len(kept)] == kept


def test_pinned_tokens_stand_in_every_forward() -> None:
    network = Scripted()
    write("diffusion", spelling([2, 3, 4, 5, 6], [2, 3, 8, 5, 6]), network=network)
    canvases = [forward.ids for forward in network.forwards if forward.kind == "d"]
    assert canvases
    assert all(ids[:2] == [2, 3] for ids in canvases)


def test_when_its_steps_are_spent_a_canvas_gives_its_valid_prefix_and_the_next_starts_there() -> None:
    network = Scripted()
    events = write("diffusion", anything(), network=network, steps=1, max_tokens=6)
    blocks = [event for event in events if isinstance(event, Block)]
    assert len(blocks) > 1
    assert all(len(block.tokens) >= 1 and block.steps <= 1 for block in blocks)
    encoded = [forward.ids for forward in network.forwards if forward.kind == "e"]
    assert encoded == [PROMPT, *(block.tokens for block in blocks[:-1])]


def test_a_model_that_stays_unsure_settles_a_token_every_fourth_step() -> None:
    level = Scripted(beliefs=lambda canvas, *_: torch.zeros(len(canvas), V))
    events = write("diffusion", anything(), network=level, steps=9, max_tokens=C)
    first = next(event for event in events if isinstance(event, Block))
    assert (first.steps, len(first.tokens)) == (9, 2)


def test_a_draft_that_holds_the_forced_text_further_right_moves_to_it() -> None:
    """Forced 2 3 4 is inserted behind 9, and the canvas has drafted 9 1 2 3 4 8: what follows moves left by one."""

    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        return sure_of([9, 1, 2, 3, 4, 8, END, 0]) if step == 0 else shifting(canvas, context, step)

    network = Scripted(beliefs=beliefs)
    write("diffusion", spelling([9, 2, 3, 4, 8], [9, 2, 3, 4, 6], [5]), network=network)
    canvases = [forward.ids for forward in network.forwards if forward.kind == "d"]
    assert canvases[1][:5] == [9, 2, 3, 4, 8]
    soft = network.forwards[-1].soft
    assert soft is None or soft.shape == (1, C, V)


def test_an_end_too_early_gives_way_to_noise() -> None:
    word = [1, 2, 3, 4, 5, 6]
    network = Scripted(beliefs=lambda canvas, *_: sure_of([1, END, END, END, END, END, END, END]))
    write("diffusion", spelling(word, [9, *word]), network=network)
    assert tokens(write("diffusion", spelling(word, [9, *word]), network=network)) == [*word, END]


@pytest.mark.parametrize(
    ("options", "told"),
    [({"ignore_eos": True}, "ignore_eos is True"), ({"sampler": "ddim"}, "sampler is 'ddim'.*report, hf, jax")],
)
def test_what_a_grammar_excludes_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        write("diffusion", anything(), **options)
