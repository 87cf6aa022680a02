"""Answers under a grammar, in every decoder: whole wherever a whole one fits, and whose the choice was."""

from collections.abc import Sequence
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


def test_the_settled_prefix_is_valid_at_every_step_and_a_token_that_is_taken_back_comes_in_no_second_time() -> None:
    grown = taken_back = 0
    for seed in range(30):
        grammar = drawn(seed)
        events = write("diffusion", grammar, seed, max_tokens=30)
        written, before, barred = list[int](), list[int](), set[tuple[int, int]]()
        for event in events:
            if isinstance(event, Draft):
                kept = [id for id, is_kept in zip(event.tokens, event.accepted, strict=True) if is_kept]
                text = [id for id in [*written, *kept] if id != END]
                assert grammar.count_valid(text) == len(text)
                both = list(zip(before, kept, strict=False))
                common = next((index for index, (old, new) in enumerate(both) if old != new), len(both))
                grown += common == len(before) < len(kept)
                if common < len(before):
                    taken_back += 1
                    barred.add((common, before[common]))
                assert not barred & set(enumerate(kept))
                before = kept
            elif isinstance(event, Block):
                written, before, barred = [*written, *event.tokens], [], set()
    assert grown > 20
    assert taken_back > 2


def test_a_border_at_which_the_model_believes_nothing_that_is_allowed_takes_the_choice_before_it_back() -> None:
    """2 leads only to 3, or 5, and 4 to 6 or 8; the model first sees 2, and behind it is sure of 6."""

    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        return sure_of([2 if step == 0 else 4, 6, END, 0, 0, 0, 0, 0])

    words = spelling([2, 3], [2, 5], [4, 6], [4, 8])
    network = Scripted(beliefs=beliefs)
    assert tokens(events := write("diffusion", words, network=network)) == [4, 6, END]
    assert events[-1].overridden == 0
    assert [forward.ids[0] for forward in network.forwards if forward.kind == "d"][1] == 2


def test_a_choice_that_the_model_is_sure_against_on_two_steps_is_taken_back() -> None:
    """It settles 2 and stays unsure of what follows, but then would have had 4."""

    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        return torch.cat(
            [sure_of([2 if step == 0 else 4]), sure_of([6 if step > 4 else 0] * 7, 40.0 if step > 4 else 0)]
        )

    words = spelling([2, 6, 1], [2, 6, 3], [2, 8, 3], [4, 6], [4, 8])
    network = Scripted(beliefs=beliefs)
    assert tokens(write("diffusion", words, network=network, steps=9))[:2] == [4, 6]
    firsts = [forward.ids[0] for forward in network.forwards if forward.kind == "d"]
    assert firsts[1:3] == [2, 2]  # two steps are sure of 4, and the third begins without 2
    assert 2 not in firsts[3:]
    assert firsts[-1] == 4


def test_a_model_that_is_never_content_comes_to_a_whole_answer_all_the_same() -> None:
    """Whatever is settled, it believes in what is not allowed, and in another token at every settled place."""

    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        return sure_of([(id + 1 + step // 2) % 6 for id in canvas])

    for seed in range(10):
        grammar = drawn(seed)
        assert is_whole(tokens(write("diffusion", grammar, seed, network=Scripted(beliefs=beliefs), steps=20)), grammar)


@pytest.mark.parametrize("temperature", [0, 1])
def test_what_is_settled_is_the_likeliest_and_no_rare_draw(temperature: float) -> None:
    """Of a token of which it is 99 % sure a draw would be another one now and then; none of 600 may."""
    told = [2, 3, 5, 9, 11, END, 0, 0]
    for seed in range(100):
        network = Scripted(beliefs=lambda *_: sure_of(told, 4.8))
        events = write("diffusion", anything(), seed, network=network, temperature=temperature, entropy_bound=0.2)
        assert tokens(events) == told[:6]


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
