"""The plain loops: which forwards they run, what they let out, and what their randomness hangs on."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.decoding.canvas import Pins, no_pins, pin_positions
from mezzotint.decoding.generate import (
    Block,
    Draft,
    Finished,
    Prefilled,
    generate_blocks,
    generate_tokens,
    settle_canvas,
)
from mezzotint.decoding.noise import route_ddim
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.random import CanvasRandomness, SeededCanvas
from mezzotint.decoding.sampler import SAMPLERS, CanvasState
from tests.decoding.network import END, C, Scripted, V, limits, shifting, sure_of

PROMPT = [3, 1, 4, 1, 5]
ANSWER = [9, 2, 6, 5, 3, 5, 8, 9]


def blocks(network: Scripted | None = None, seed: int = 1, pins: Any = None, **options: Any) -> list[Any]:
    """All events of a diffusion request; 4 steps a block unless the test says otherwise."""
    params = SamplingParams(**{"steps": 4, **options})
    return list(generate_blocks(network or Scripted(), PROMPT, params, seed, limits(), pins=pins))


def tokens(network: Scripted | None = None, seed: int = 1, prompt: list[int] = PROMPT, **options: Any) -> list[Any]:
    """All events of an autoregressive request."""
    params = SamplingParams(decoder="ar", **options)
    return list(generate_tokens(network or Scripted(), prompt, params, seed, limits()))


def answer(events: Iterable[Any]) -> list[int]:
    return [token for event in events if isinstance(event, Block) for token in event.tokens]


def steps(events: Iterable[Any]) -> list[int]:
    return [event.steps for event in events if isinstance(event, Block)]


def sure(canvas: list[int], context: list[int], step: int) -> Tensor:
    return sure_of(ANSWER)


def ending_at(offset: int) -> Scripted:
    """A network that is sure of an answer with an end token, and sure of more behind it."""
    return Scripted(beliefs=lambda *_: sure_of([*ANSWER[:offset], END, *ANSWER[offset + 1 :]]))


def test_a_request_is_a_prefill_then_steps_and_encodes_in_turn() -> None:
    network = Scripted(beliefs=sure)
    events = blocks(network, max_tokens=3 * C)
    assert network.kinds() == "e" + "dd" + "e" + "dd" + "e" + "dd"
    assert [type(event) for event in events] == [Prefilled, *[Draft, Draft, Block] * 3, Finished]
    assert events[0] == Prefilled(len(PROMPT))
    assert events[-1] == Finished("length", encodes=2)


def test_the_last_block_is_not_encoded_and_the_others_are_encoded_as_they_came_out() -> None:
    network = Scripted()
    events = blocks(network, max_tokens=3 * C)
    encoded = [forward.ids for forward in network.forwards if forward.kind == "e"]
    assert encoded == [PROMPT, answer(events)[:C], answer(events)[C : 2 * C]]


def test_the_forwards_of_a_request_are_its_steps_and_its_encodes_after_prefill() -> None:
    network = Scripted(beliefs=sure)
    events = blocks(network, max_tokens=3 * C)
    assert sum(steps(events)) + events[-1].encodes == len(network.forwards) - 1
    causal = Scripted()
    events = tokens(causal, max_tokens=6)
    assert len(answer(events)) == events[-1].encodes == len(causal.forwards) == 6


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("max_tokens", [1, C - 1, C, C + 1, 2 * C])
def test_an_answer_has_exactly_the_tokens_that_were_asked_for(sampler: Any, max_tokens: int) -> None:
    events = blocks(sampler=sampler, max_tokens=max_tokens, ignore_eos=True)
    assert len(answer(events)) == max_tokens
    assert events[-1] == Finished("length", encodes=(max_tokens - 1) // C)
    assert answer(events) == answer(blocks(sampler=sampler, max_tokens=2 * C, ignore_eos=True))[:max_tokens]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_budget_of_one_step_makes_a_block_of_one_step(sampler: Any) -> None:
    events = blocks(sampler=sampler, max_tokens=2 * C, steps=1, ignore_eos=True)
    assert steps(events) == [1, 1]
    assert len(answer(events)) == 2 * C


@pytest.mark.parametrize("offset", [0, 3, C - 1])
def test_an_end_token_ends_the_answer_and_nothing_follows_it(offset: int) -> None:
    events = blocks(ending_at(offset), max_tokens=3 * C)
    assert answer(events) == [*ANSWER[:offset], END]
    assert events[-1] == Finished("stop", encodes=0)


def test_an_end_token_that_just_fits_is_a_stop_and_one_that_does_not_is_a_length() -> None:
    assert blocks(ending_at(3), max_tokens=4)[-1].reason == "stop"
    assert blocks(ending_at(3), max_tokens=3)[-1].reason == "length"


def test_end_tokens_end_nothing_when_they_are_ignored() -> None:
    events = blocks(ending_at(3), max_tokens=2 * C, ignore_eos=True)
    assert answer(events) == 2 * [*ANSWER[:3], END, *ANSWER[4:]]
    causal = Scripted(continuation=lambda context: sure_of([END])[0])
    assert answer(tokens(causal, max_tokens=3, ignore_eos=True)) == [END] * 3
    assert tokens(causal, max_tokens=3)[1:] == [Block(0, [END], 0), Finished("stop", encodes=1)]


@pytest.mark.parametrize(
    ("max_tokens", "fits"), [(59 // C * C, True), (59 // C * C + 1, False), (10**9, False)], ids=str
)
def test_a_prompt_whose_canvases_exceed_the_context_is_refused_before_any_work(max_tokens: int, fits: bool) -> None:
    network = Scripted()
    events = generate_blocks(network, PROMPT, SamplingParams(max_tokens=max_tokens), 1, limits())
    if fits:
        next(events)
        assert network.contexts[0].capacity == len(PROMPT) + max_tokens
        return
    with pytest.raises(ValueError, match=r"5 tokens \+ \d+ for max_tokens \d+ exceed the context of 64; shorten"):
        next(events)
    assert (network.forwards, network.contexts) == ([], [])


def test_under_ar_the_context_has_to_hold_max_tokens_and_no_canvas() -> None:
    network, params = Scripted(), SamplingParams(decoder="ar", max_tokens=59)
    next(generate_tokens(network, PROMPT, params, 1, limits()))
    assert network.contexts[0].capacity == 64
    network, params = Scripted(), SamplingParams(decoder="ar", max_tokens=60)
    with pytest.raises(ValueError, match="exceed the context of 64"):
        next(generate_tokens(network, PROMPT, params, 1, limits()))
    assert (network.forwards, network.contexts) == ([], [])


@pytest.mark.parametrize("decoder", ["diffusion", "ar"])
def test_an_empty_prompt_is_refused_before_any_work(decoder: Any) -> None:
    network, params = Scripted(), SamplingParams(decoder=decoder, max_tokens=4)
    generate = generate_tokens if decoder == "ar" else generate_blocks
    with pytest.raises(ValueError, match="the prompt has 0 tokens; give at least 1"):
        next(generate(network, [], params, 1, limits()))
    assert (network.forwards, network.contexts) == ([], [])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_same_seed_gives_the_same_events_and_another_seed_other_tokens(sampler: Any) -> None:
    options = {"sampler": sampler, "max_tokens": 2 * C, "ignore_eos": True}
    assert blocks(seed=8, **options) == blocks(seed=8, **options)
    assert len({tuple(answer(blocks(seed=seed, **options))) for seed in range(8)}) == 8


def test_under_ar_the_same_seed_gives_the_same_tokens_and_another_seed_others() -> None:
    options: dict[str, Any] = {"max_tokens": 12, "ignore_eos": True}
    assert tokens(seed=8, **options) == tokens(seed=8, **options)
    assert len({tuple(answer(tokens(seed=seed, **options))) for seed in range(8)}) == 8


def test_every_block_and_step_has_noise_of_its_own_where_nothing_was_accepted() -> None:
    network = Scripted()
    events = blocks(network, max_tokens=2 * C, ignore_eos=True)
    fed = iter(torch.tensor(forward.ids) for forward in network.forwards if forward.kind == "d")
    drafts = iter(event for event in events if isinstance(event, Draft))
    for block in range(2):
        drawn = SeededCanvas(seed=1, block=block, width=C, vocab_size=V)
        assert next(fed).equal(drawn.first_canvas())
        for step in range(3):
            canvas, rejected = next(fed), ~torch.tensor(next(drafts).accepted)
            assert rejected.any()
            assert canvas[rejected].equal(drawn.noise(step)[rejected])
        next(drafts)


def test_every_step_draws_its_proposals_from_uniforms_of_its_own() -> None:
    network = Scripted()
    blocks(network, entropy_bound=1e9, max_tokens=C, ignore_eos=True)
    fed = [forward.ids for forward in network.forwards if forward.kind == "d"]
    drawn = SeededCanvas(seed=1, block=0, width=C, vocab_size=V)
    for step in range(3):
        p = (shifting(fed[step], PROMPT, step) / (0.8 - 0.1 * step)).double().softmax(-1)
        proposed = (p.cumsum(-1) <= drawn.uniforms(step)[:, None]).sum(-1)
        assert fed[step + 1] == proposed.tolist()


def test_every_step_of_ddim_has_routes_of_its_own() -> None:
    network = Scripted()
    blocks(network, sampler="ddim", temperature=0, max_tokens=C, ignore_eos=True)
    fed = [torch.tensor([forward.ids]) for forward in network.forwards if forward.kind == "d"]
    drawn = SeededCanvas(seed=1, block=0, width=C, vocab_size=V)
    for step in range(3):
        best = shifting(fed[step][0].tolist(), PROMPT, step).argmax(-1)[None]
        noise, routes = drawn.noise(step)[None], drawn.routes(step)[None]
        routed = route_ddim(fed[step], best, noise, routes, before=step / 4, after=(step + 1) / 4, vocab_size=V)
        assert fed[step + 1].equal(routed)


def test_a_draft_shows_what_would_come_out_now_and_the_last_one_comes_out() -> None:
    events = blocks(max_tokens=C, ignore_eos=True)
    drafts = [event for event in events if isinstance(event, Draft)]
    assert [draft.step for draft in drafts] == [1, 2, 3, 4]
    assert all(any(draft.accepted) for draft in drafts)
    assert drafts[-1].tokens == answer(events)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_step_is_fed_the_last_ones_belief_and_the_first_one_none(sampler: Any) -> None:
    network = Scripted()
    blocks(network, sampler=sampler, max_tokens=2 * C, ignore_eos=True)
    denoises = [forward for forward in network.forwards if forward.kind == "d"]
    prefix, context = PROMPT, 0
    for index, forward in enumerate(denoises):
        step = index % 4
        if step == 0:
            assert forward.soft is None
            context = index // 4
            continue
        assert forward.soft is not None
        before = denoises[index - 1].ids
        encoded = prefix if context == 0 else prefix + network.forwards[5].ids
        temperature = SAMPLERS[sampler].temperature(0) if sampler in ("refine", "ddim") else 0.8 - 0.1 * (step - 1)
        belief = (shifting(before, encoded, step - 1) / temperature).softmax(-1)
        assert torch.allclose(forward.soft[0], belief, atol=1e-6)


def test_the_window_reaches_every_denoise() -> None:
    network = Scripted()
    list(generate_blocks(network, PROMPT, SamplingParams(max_tokens=C, steps=2), 1, limits(), window=9))
    assert [forward.window for forward in network.forwards if forward.kind == "d"] == [9, 9]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_pins_stand_in_every_forward_and_carry_their_embedding_from_the_second_on(sampler: Any) -> None:
    network, pins = Scripted(), {1: pin_positions({0: 11, 5: 12}, C)}
    events = blocks(network, sampler=sampler, max_tokens=2 * C, ignore_eos=True, pins=pins)
    assert (answer(events)[C], answer(events)[C + 5]) == (11, 12)
    denoises = [forward for forward in network.forwards if forward.kind == "d"]
    first, second = denoises[:4], denoises[4:]
    assert all((forward.ids[0], forward.ids[5]) == (11, 12) for forward in second)
    assert not all((forward.ids[0], forward.ids[5]) == (11, 12) for forward in first)
    assert second[0].soft is None
    for forward in second[1:]:
        assert forward.soft is not None
        assert forward.soft[0, [0, 5]].equal(F.one_hot(torch.tensor([11, 12]), V).float())
        assert float(forward.soft[0, 1].max()) < 1


class Only(NamedTuple):
    """The randomness of one position of a canvas, for a canvas of that position alone."""

    place: int
    whole: CanvasRandomness

    def first_canvas(self) -> Tensor:
        return self.whole.first_canvas()[[self.place]]

    def uniforms(self, step: int) -> Tensor:
        return self.whole.uniforms(step)[[self.place]]

    def noise(self, step: int) -> Tensor:
        return self.whole.noise(step)[[self.place]]

    def routes(self, step: int) -> Tensor:
        return self.whole.routes(step)[[self.place]]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("place", [0, 3, C - 1])
def test_one_open_position_among_pins_behaves_like_a_canvas_of_its_own(sampler: Any, place: int) -> None:
    """It sees itself only and is sure from its fourth step on, while the pinned ones never are."""

    def own(canvas: list[int], step: int) -> Tensor:
        return shifting(canvas, [], step) if step < 3 else sure_of([5])

    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        opened = own([canvas[place]], step)
        return torch.where(torch.arange(C)[:, None] == place, opened, shifting(canvas, [1], step))

    def states(network: Scripted, randomness: CanvasRandomness, pins: Pins) -> list[CanvasState]:
        kv = network.new_kv(1, C)
        return list(settle_canvas(network, kv, SAMPLERS[sampler], randomness, pins, limits()))

    whole = SeededCanvas(seed=4, block=0, width=C, vocab_size=V)
    others = pin_positions({offset: 2 for offset in range(C) if offset != place}, C)
    wide = states(Scripted(beliefs), whole, others)
    alone = states(Scripted(lambda canvas, _, step: own(canvas, step)), Only(place, whole), no_pins(1))
    assert len(wide) == len(alone)
    for ours, theirs in zip(wide, alone, strict=True):
        assert ours.canvas[:, [place]].equal(theirs.canvas)
        assert ours.output[:, [place]].equal(theirs.output)
        assert ours.accepted[:, [place]].equal(theirs.accepted)
    assert {"refine": len(alone) == 1, "ddim": len(alone) == 48}.get(sampler, 4 < len(alone) < 10)


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        ({2: no_pins(C)}, r"block 2 has pins, but max_tokens makes 2 \(from 0 on\); raise max_tokens"),
        ({-1: no_pins(C)}, "block -1 has pins"),
        ({0: no_pins(C + 1)}, "pins of block 0 span 9 tokens; a canvas has 8"),
        ({1: pin_positions({0: V}, C)}, f"block 1 pins token id {V}; ids go from 0 to {V - 1}"),
        ({1: pin_positions({0: -1}, C)}, "block 1 pins token id -1"),
    ],
)
def test_pins_that_fit_no_canvas_are_refused_before_any_work(pins: dict[int, Pins], message: str) -> None:
    network, params = Scripted(), SamplingParams(max_tokens=C + 1)
    with pytest.raises(ValueError, match=message):
        next(generate_blocks(network, 2 * PROMPT, params, 1, limits(), pins=pins))
    assert (network.forwards, network.contexts) == ([], [])


def test_a_cold_canvas_proposes_the_argmax_over_seeded_noise() -> None:
    network = Scripted()
    events = blocks(network, temperature=0, max_tokens=C, ignore_eos=True)
    assert events == blocks(temperature=0, max_tokens=C, ignore_eos=True)
    first, second, *_ = [forward for forward in network.forwards if forward.kind == "d"]
    accepted = torch.tensor(events[1].accepted)
    best = shifting(first.ids, PROMPT, 0).argmax(-1)
    assert torch.tensor(second.ids)[accepted].equal(best[accepted])
    noise = SeededCanvas(seed=1, block=0, width=C, vocab_size=V).noise(0)
    assert torch.tensor(second.ids)[~accepted].equal(noise[~accepted])


def test_a_cold_canvas_accepts_no_more_than_a_warm_one() -> None:
    first = {
        temperature: blocks(temperature=temperature, max_tokens=C, ignore_eos=True)[1].accepted
        for temperature in (0, 0.1, 1.0, 3.0)
    }
    assert sum(first[1.0]) == 1
    assert all(accepted == first[1.0] for accepted in first.values())


def test_a_warmer_request_proposes_less_likely_tokens() -> None:
    def level(canvas: list[int], context: list[int], step: int) -> Tensor:
        return 4 * F.one_hot(torch.zeros(C, dtype=torch.long), V).float()

    def likeliest(temperature: float) -> int:
        network = Scripted(level)
        for seed in range(20):
            blocks(network, seed, temperature=temperature, entropy_bound=1e9, max_tokens=C, steps=2)
        seconds = [forward for forward in network.forwards if forward.soft is not None]
        return sum(forward.ids.count(0) for forward in seconds)

    counts = [likeliest(temperature) for temperature in (0.0, 1.0, 2.0, 4.0)]
    assert counts[0] == 20 * C
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == 4


def test_greedy_ar_is_the_argmax_loop() -> None:
    context = list(PROMPT)
    for _ in range(10):
        context.append(int(Scripted().continuation(context).argmax()))
    assert answer(tokens(temperature=0, max_tokens=10, ignore_eos=True)) == context[len(PROMPT) :]


def test_a_continued_prompt_draws_the_tokens_that_it_would_have_drawn() -> None:
    whole = answer(tokens(max_tokens=12, ignore_eos=True))
    for cut in range(1, 12):
        rest = tokens(prompt=PROMPT + whole[:cut], max_tokens=12 - cut, ignore_eos=True)
        assert answer(rest) == whole[cut:]


@pytest.mark.parametrize("options", [{}, {"top_k": 4, "temperature": 1.5}, {"top_p": 0.7}, {"min_p": 0.1}], ids=str)
def test_a_shorter_answer_is_a_prefix_of_a_longer_one(options: dict[str, Any]) -> None:
    whole = answer(tokens(max_tokens=12, ignore_eos=True, **options))
    for count in range(1, 12):
        events = tokens(max_tokens=count, ignore_eos=True, **options)
        assert answer(events) == whole[:count]
        assert events[-1] == Finished("length", encodes=count)


def test_under_ar_every_token_is_a_block_and_the_last_one_is_not_encoded() -> None:
    network = Scripted()
    events = tokens(network, max_tokens=4, ignore_eos=True)
    assert [event.block for event in events if isinstance(event, Block)] == [0, 1, 2, 3]
    assert [forward.ids for forward in network.forwards] == [
        PROMPT,
        *[[token] for token in answer(events)[:3]],
    ]


def test_another_attempt_at_a_canvas_draws_other_numbers() -> None:
    def last(attempt: int) -> list[int]:
        network = Scripted()
        drawn = SeededCanvas(seed=1, block=0, width=C, vocab_size=V, attempt=attempt)
        *_, state = settle_canvas(network, network.new_kv(1, C), SAMPLERS["ddim"], drawn, no_pins(C), limits())
        return state.output[0].tolist()

    assert last(0) == last(0)
    assert last(0) != last(1)
