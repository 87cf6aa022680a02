"""Drafts of any quality, verified: the tokens are ar's own, and what is drafted, encoded, kept and told."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.agree import agree
from mezzotint.decoding.draft import keep_tail
from mezzotint.decoding.generate import Block, Draft, Finished, Prefilled, generate_tokens
from mezzotint.decoding.guide import Guide
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.policy import Costs, Plan, Policy
from mezzotint.decoding.program import Guess
from mezzotint.decoding.random import SeededCanvas, position_uniform
from mezzotint.decoding.verify import generate_guessed, generate_verified
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.train.lab import initialise, lab_config
from tests.decoding.network import END, C, Scripted, V, following, limits, sure_of

PROMPT = [3, 1, 4, 1, 5]
LAWS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0},
    "cool": {"temperature": 0.7},
    "as it is": {},
    "narrowed": {"top_k": 5, "top_p": 0.9, "min_p": 0.05, "temperature": 0.7},
    "top_p": {"top_p": 0.6},
    "min_p": {"min_p": 0.3, "temperature": 1.5},
}
ENDS: dict[str, dict[str, Any]] = {"any end": {}, "no end": {"ignore_eos": True}}
DRAFTS: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "one step": {"draft_steps": 1, "draft_tokens": 7},
    "narrow": {"draft_steps": 2, "draft_tokens": 2, "draft_tail": "tail"},
    "three steps": {"draft_steps": 3, "draft_tail": "tail+soft"},
    "fresh": {"draft_tokens": 5, "draft_tail": "fresh"},
    "wider than a canvas": {"draft_tokens": 99, "draft_steps": 1, "draft_tail": "tail"},
}
SEEDS = range(2)


def ar(law: dict[str, Any], seed: int = 1, network: Any = None, prompt: Sequence[int] = PROMPT) -> list[Any]:
    params = SamplingParams(decoder="ar", **{"max_tokens": 20, **law})
    return list(generate_tokens(network or Scripted(), list(prompt), params, seed, limits()))


def verified(network: Any, options: dict[str, Any], seed: int = 1, **given: Any) -> list[Any]:
    params = SamplingParams(decoder="verified", **{"max_tokens": 20, **options})
    return list(generate_verified(network, PROMPT, params, seed, limits(), **given))


def guessed(network: Any, drafter: Any, options: dict[str, Any], seed: int = 1) -> list[Any]:
    params = SamplingParams(decoder="mtp", **{"max_tokens": 20, **options})
    return list(generate_guessed(network, drafter, PROMPT, params, seed, limits()))


def tokens(events: Sequence[Any]) -> list[int]:
    return [token for event in events if isinstance(event, Block) for token in event.tokens]


# What somebody expects at positions from `first` on, given what ar writes from position len(PROMPT) on.
Expect = Callable[[Sequence[int], int, int], list[int]]


def right(answer: Sequence[int], first: int, count: int) -> list[int]:
    told = [*answer, *[0] * (first + count)]
    return list(told[first - len(PROMPT) : first - len(PROMPT) + count])


def wrong(answer: Sequence[int], first: int, count: int) -> list[int]:
    return [(token + 1) % V for token in right(answer, first, count)]


def ending(answer: Sequence[int], first: int, count: int) -> list[int]:
    return [END] * count


def sometimes(answer: Sequence[int], first: int, count: int) -> list[int]:
    told = zip(range(first, first + count), right(answer, first, count), strict=True)
    return [token if position % 3 else (token + 1) % V for position, token in told]


EXPECTED: dict[str, Expect] = {"right": right, "wrong": wrong, "ending": ending, "sometimes": sometimes}


def drafting(expect: Expect, answer: Sequence[int]) -> Scripted:
    """A network whose canvases are sure of what somebody expects of them."""
    return Scripted(beliefs=lambda canvas, context, _: sure_of(expect(answer, len(context), len(canvas))))


def level(canvas: list[int], context: list[int], step: int) -> Tensor:
    """A network that knows what follows and nothing of what follows that; its canvas believes as ar would."""
    return torch.stack([following([*context, *canvas[:offset]]) for offset in range(len(canvas))])


class Guesser:
    """A drafter of the tests: guesses what somebody expects, and notes what it was asked."""

    def __init__(self, expect: Expect, answer: Sequence[int]) -> None:
        self.expect, self.answer = expect, answer
        self.asked: list[tuple[Guess, list[int]]] = []

    def guess(self, need: Guess, kv: Any) -> list[int]:
        self.asked.append((need, list(kv.ids)))
        return self.expect(self.answer, need.at + 1, need.size)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_verified_writes_ars_tokens_whatever_the_canvases_draft(law: dict[str, Any], ends: dict[str, Any]) -> None:
    for seed in SEEDS:
        plain = ar({**law, **ends}, seed)
        networks = [drafting(expect, tokens(plain)) for expect in EXPECTED.values()]
        for network, drafts in product([*networks, Scripted(), Scripted(beliefs=level)], DRAFTS.values()):
            events = verified(network, {**law, **ends, **drafts}, seed)
            assert tokens(events) == tokens(plain)
            assert events[-1].reason == plain[-1].reason


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_mtp_writes_ars_tokens_whatever_the_drafter_guesses(law: dict[str, Any], ends: dict[str, Any]) -> None:
    for seed in SEEDS:
        plain = ar({**law, **ends}, seed)
        for expect, size in product(EXPECTED.values(), (None, 1, 3, 99)):
            options = {**law, **ends, "draft_tokens": size}
            events = guessed(Scripted(), Guesser(expect, tokens(plain)), options, seed)
            assert tokens(events) == tokens(plain)
            assert events[-1].reason == plain[-1].reason


@pytest.fixture(scope="module")
def tiny() -> DiffusionGemma:
    """Two layers of lab in float64, with a window that answers outgrow."""
    shape = lab_config(64)
    sizes: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "moe_intermediate_size": 8}
    layers = tuple(layer._replace(head_dim=8) for layer in shape.layers[1:3])
    limited: dict[str, Any] = {"canvas_length": 8, "max_positions": 64, "sliding_window": 12}
    model = initialise(DiffusionGemma(replace(shape, layers=layers, **sizes, **limited)), 3).double()
    generator = torch.Generator().manual_seed(3)
    for tensor in model.state_dict().values():
        if tensor.ndim == 1:
            tensor.mul_(1 + 0.3 * torch.randn(tensor.shape, generator=generator))
    return model


@torch.inference_mode()
@pytest.mark.parametrize("law", [LAWS["greedy"], LAWS["cool"], LAWS["as it is"]], ids=str)
def test_a_real_network_in_float64_writes_the_same_tokens(tiny: DiffusionGemma, law: dict[str, Any]) -> None:
    seen, kept = set[int](), 0
    own = limits(vocab_size=64, max_positions=64, end_ids=())
    for seed in SEEDS:
        prompt = [*PROMPT, seed]
        plain = SamplingParams(decoder="ar", max_tokens=24, **law)
        expected = tokens(list(generate_tokens(tiny, prompt, plain, seed, own)))
        for drafts in DRAFTS.values():
            canvas = SamplingParams(decoder="verified", max_tokens=24, **law, **drafts)
            events: list[Any] = list(generate_verified(tiny, prompt, canvas, seed, own))
            assert tokens(events) == expected
            kept += events[-1].accepted
        seen.update(expected)
    assert len(seen) > 4, "a model that repeats itself proves little"
    assert kept > 0, "nor do drafts of which none is right"


def test_agreement_is_the_longest_prefix_that_ar_would_have_drawn_and_its_next_draw() -> None:
    params = SamplingParams(decoder="ar", temperature=0)
    rows = sure_of([4, 5, 6, 7])
    assert agree(rows, [4, 5, 6], Guide([], params, 1, limits()), 9) == (3, [4, 5, 6, 7])
    assert agree(rows, [4, 9, 6], Guide([], params, 1, limits()), 9) == (1, [4, 5])
    assert agree(rows, [9, 5, 6], Guide([], params, 1, limits()), 9) == (0, [4])
    assert agree(rows[:1], [], Guide([], params, 1, limits()), 9) == (0, [4])


def test_agreement_draws_with_the_uniform_of_each_position() -> None:
    params, flat = SamplingParams(decoder="ar"), torch.zeros(4, V)
    drawn = [int(position_uniform(8, position) * V) for position in range(20, 24)]
    assert agree(flat, drawn[:3], Guide([], params, 8, limits(end_ids=())), 20) == (3, drawn)
    assert agree(flat, drawn[:3], Guide([], params, 8, limits(end_ids=())), 21).tokens[0] == drawn[1]


def test_drafts_are_drawn_with_ars_numbers_so_that_equal_beliefs_agree_though_nobody_is_sure() -> None:
    """At every temperature: all tokens are equally likely to both, and seven of seven drafts are accepted."""
    flat = Scripted(beliefs=lambda canvas, *_: torch.zeros(len(canvas), V), continuation=lambda context: torch.zeros(V))
    for temperature in (0.7, 1.0, 2.0):
        options = {"draft_tokens": 7, "draft_steps": 1, "temperature": temperature, "max_tokens": 17}
        events = verified(flat, {**options, "ignore_eos": True})
        assert events[-1] == Finished("length", encodes=3, drafted=14, accepted=14)


def test_a_round_drafts_behind_the_last_token_and_encodes_it_with_its_drafts() -> None:
    answer = tokens(ar({"ignore_eos": True, "max_tokens": 17}))
    network = drafting(right, answer)
    options = {"ignore_eos": True, "max_tokens": 17, "draft_tokens": 7, "draft_steps": 1}
    events = verified(network, options)
    assert network.kinds() == "e" + "de" + "de"
    assert [forward.ids for forward in network.forwards if forward.kind == "e"] == [PROMPT, answer[:8], answer[8:16]]
    assert [forward.ids[0] for forward in network.forwards if forward.kind == "d"] == [answer[0], answer[8]]
    assert [type(event) for event in events] == [Prefilled, Block, Draft, Block, Draft, Block, Finished]
    assert [event for event in events if isinstance(event, Block)] == [
        Block(0, answer[:1], 0),
        Block(1, answer[1:9], 1),
        Block(2, answer[9:], 1),
    ]
    assert [event.tokens for event in events if isinstance(event, Draft)] == [answer[1:8], answer[9:16]]
    assert events[-1] == Finished("length", encodes=3, drafted=14, accepted=14)


def test_a_draft_that_is_wrong_at_once_yields_the_token_that_ar_would_have_drawn() -> None:
    answer = tokens(ar({"ignore_eos": True, "max_tokens": 6}))
    network = drafting(wrong, answer)
    options = {"ignore_eos": True, "max_tokens": 6, "draft_tokens": 3, "draft_steps": 2}
    events = verified(network, options)
    assert network.kinds() == "e" + "dde" * 4 + "e", "the last token is not worth a draft"
    assert [len(event.tokens) for event in events if isinstance(event, Block)] == [1] * 6
    assert events[-1] == Finished("length", encodes=6, drafted=3 + 3 + 2 + 1, accepted=0)


@pytest.mark.parametrize("drafts", DRAFTS.values(), ids=DRAFTS)
@pytest.mark.parametrize("expect", EXPECTED.values(), ids=EXPECTED)
def test_the_forwards_of_a_request_are_steps_and_encodes_with_the_prompts_and_no_draft_outgrows_it(
    expect: Expect, drafts: dict[str, Any]
) -> None:
    network = drafting(expect, tokens(ar({})))
    events = verified(network, drafts)
    steps = sum(event.steps for event in events if isinstance(event, Block))
    assert steps + events[-1].encodes == len(network.forwards)
    assert network.contexts[0].capacity == len(PROMPT) + 20, "as much as ar would need"
    assert events[-1].accepted <= events[-1].drafted


def test_a_request_fits_wherever_it_would_fit_under_ar() -> None:
    options = {"max_tokens": 59, "ignore_eos": True}
    plain = ar(options)
    assert tokens(verified(Scripted(), options)) == tokens(plain)
    assert tokens(guessed(Scripted(), Guesser(right, tokens(plain)), options)) == tokens(plain)
    for decoder in (verified, lambda network, options: guessed(network, Guesser(wrong, []), options)):
        network = Scripted()
        with pytest.raises(ValueError, match=r"5 tokens \+ 60 for max_tokens 60 exceed the context of 64; shorten"):
            decoder(network, {**options, "max_tokens": 60})
        assert (network.forwards, network.contexts) == ([], [])


def test_drafts_see_and_continue_accepted_tokens_only() -> None:
    answer = tokens(ar({"ignore_eos": True}))
    contexts: list[list[int]] = []

    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        contexts.append([*context, canvas[0]])
        return sure_of(sometimes(answer, len(context), len(canvas)))

    verified(Scripted(beliefs=beliefs), {"ignore_eos": True, "draft_tokens": 7, "draft_steps": 1})
    drafter = Guesser(sometimes, answer)
    guessed(Scripted(), drafter, {"ignore_eos": True})
    contexts += [[*context, need.token] for need, context in drafter.asked]
    assert len(contexts) > 8
    for context in contexts:
        assert context == (PROMPT + answer)[: len(context)]


def test_a_drafter_is_asked_with_the_state_that_its_token_was_drawn_from() -> None:
    answer = tokens(ar({"ignore_eos": True}))
    drafter = Guesser(sometimes, answer)
    events = guessed(Scripted(), drafter, {"ignore_eos": True, "draft_tokens": 4})
    for need, context in drafter.asked:
        assert need.at == len(context)
        assert need.hidden.equal(following(context))
    assert [need.size for need, _ in drafter.asked] == [4] * (len(drafter.asked) - 1) + [2], "no more than may come"
    assert events[-1].guesses == sum(need.size for need, _ in drafter.asked) == events[-1].drafted
    assert 0 < events[-1].accepted < events[-1].drafted


def test_mtp_drafts_six_tokens_a_round_and_none_for_the_last() -> None:
    answer = tokens(ar({"ignore_eos": True, "max_tokens": 9}))
    network, drafter = Scripted(), Guesser(right, answer)
    events = guessed(network, drafter, {"ignore_eos": True, "max_tokens": 9})
    assert [forward.ids for forward in network.forwards] == [PROMPT, answer[:7], answer[7:8]]
    assert events[1:] == [
        Block(0, answer[:1], 0),
        Block(1, answer[1:8], 0),
        Block(2, answer[8:], 0),
        Finished("length", encodes=3, drafted=6, accepted=6, guesses=6),
    ]


def test_nothing_behind_the_first_end_of_a_draft_is_verified_unless_ends_are_ignored() -> None:
    options = {"draft_tokens": 7, "draft_steps": 1, "max_tokens": 17}
    for ends, length in (({}, 2), ({"ignore_eos": True}, 8)):
        network = drafting(ending, [])
        verified(network, {**options, **ends})
        assert len(network.forwards[2].ids) == length
        drafter = Guesser(ending, [])
        network = Scripted()
        guessed(network, drafter, {"max_tokens": 17, "draft_tokens": 7, **ends})
        assert len(network.forwards[1].ids) == length


def test_an_accepted_end_of_turn_ends_the_answer_and_what_follows_it_is_dropped() -> None:
    causal = Scripted(continuation=lambda context: sure_of([END if len(context) == 8 else 2])[0])
    plain = ar({}, network=causal)
    assert plain[-1] == Finished("stop", encodes=4)
    network = Scripted(drafting(right, tokens(plain)).beliefs, causal.continuation)
    events = verified(network, {"draft_tokens": 7, "draft_steps": 1})
    assert events[-2:] == [Block(1, [2, 2, END], 1), Finished("stop", encodes=2, drafted=3, accepted=3)]


def test_the_numbers_of_a_draft_change_no_token_but_the_forwards() -> None:
    forwards = []
    for costs in (Costs(), Costs(denoise=0, denoise_token=0), Costs(denoise=40)):
        network = Scripted()
        assert tokens(verified(network, {}, costs=costs)) == tokens(ar({}))
        forwards.append(network.kinds())
    usual, free, dear = (kinds.count("d") for kinds in forwards)
    assert free > usual > dear == 0, "a step that costs forty tokens is never taken"


def test_where_nothing_is_drafted_a_plan_is_made_every_sixteen_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plan = Policy.plan

    def ask(self: Policy, room: int) -> Plan:
        asked.append(room)
        return plan(self, room)

    monkeypatch.setattr(Policy, "plan", ask)
    law = {"max_tokens": 40, "ignore_eos": True}
    assert tokens(verified(Scripted(), law, costs=Costs(denoise=40))) == tokens(ar(law))
    assert asked == [39, 23, 7], "the room that is left when it is asked"


def test_the_window_reaches_every_denoise() -> None:
    network = Scripted()
    verified(network, {"draft_steps": 2, "draft_tokens": 7}, window=9)
    assert {forward.window for forward in network.forwards if forward.kind == "d"} == {9}


def canvases(tail: str, expect: Expect, answer: Sequence[int]) -> list[Any]:
    """The denoise forwards of a greedy request of one step a draft."""

    def continuation(context: list[int]) -> Tensor:
        place = len(context) - len(PROMPT)
        return sure_of([answer[place] if place < len(answer) else 0], 3.0)[0]

    network = Scripted(drafting(expect, answer).beliefs, continuation)
    options = {"temperature": 0, "ignore_eos": True, "draft_tokens": 7, "draft_steps": 1, "draft_tail": tail}
    verified(network, options)
    return [forward for forward in network.forwards if forward.kind == "d"]


ANSWER = [9, 2, 6, 5, 3, 5, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22]


def stumbling(answer: Sequence[int], first: int, count: int) -> list[int]:
    """Right but for the third token of a canvas: c, d1, then a wrong d2, then right ones."""
    told = right(answer, first, count)
    return [*told[:2], (told[2] + 1) % V, *told[3:]] if count > 2 else told


def test_a_fresh_canvas_is_noise_behind_its_pin_and_without_belief() -> None:
    for block, forward in enumerate(canvases("fresh", stumbling, ANSWER), start=1):
        noise = SeededCanvas(seed=1, block=block, width=len(forward.ids), vocab_size=V).first_canvas()
        assert forward.ids[1:] == noise[1:].tolist()
        assert forward.soft is None


def test_a_tail_keeps_what_the_causal_pass_did_not_find_surprising_where_it_stood() -> None:
    """Two tokens came of the first round, so c is the third, and d3 … d7 stand at offsets 1 to 5 of the next canvas."""
    first, second, *_ = canvases("tail", stumbling, ANSWER)
    assert (first.ids[0], second.ids[0]) == (ANSWER[0], ANSWER[2])
    assert second.ids[1:6] == ANSWER[3:8]
    noise = SeededCanvas(seed=1, block=2, width=8, vocab_size=V).first_canvas()
    assert second.ids[6:] == noise[6:].tolist()
    assert second.soft is None


def test_a_tail_with_its_beliefs_brings_them_where_tokens_stand_and_nothing_elsewhere() -> None:
    _, second, *_ = canvases("tail+soft", stumbling, ANSWER)
    assert second.ids[1:6] == ANSWER[3:8]
    assert second.soft[0].argmax(-1)[1:6].tolist() == ANSWER[3:8]
    assert second.soft[0, 1:6].sum(-1).tolist() == pytest.approx([1.0] * 5)
    assert second.soft[0, 0].nonzero().flatten().tolist() == [ANSWER[2]], "a pin carries its own"
    assert not second.soft[0, [6, 7]].any()


def test_after_two_rounds_without_an_accepted_draft_the_next_canvas_is_fresh() -> None:
    """A draft that errs at its first token only: its tail is right, and is offered once."""

    def slow(answer: Sequence[int], first: int, count: int) -> list[int]:
        told = right(answer, first, count)
        return [told[0], *[(token + 1) % V for token in told[1:2]], *told[2:]]

    kept = [forward.ids[1:3] == ANSWER[at + 1 : at + 3] for at, forward in enumerate(canvases("tail", slow, ANSWER))]
    assert kept[:6] == [False, True, False, False, False, False]


def test_what_the_causal_pass_finds_surprising_is_not_kept() -> None:
    told = torch.zeros(4, V)
    told[[0, 1, 2], [5, 6, 7]] = torch.tensor([5.0, 1.4, 1.1])  # probabilities of .87, .15 and .12: below e^-2 is out
    assert keep_tail([4, 6, 7], 0, told, None, C).tokens == {1: 6}
    assert keep_tail([4, 6, 8], 0, told, None, C).tokens == {1: 6}
    assert keep_tail([5, 4, 7], 1, told, None, C).tokens == {}


def test_a_request_repeats_itself_forward_by_forward() -> None:
    for drafts in DRAFTS.values():
        first, second = Scripted(), Scripted()
        assert verified(first, drafts) == verified(second, drafts)
        assert [forward.ids for forward in first.forwards] == [forward.ids for forward in second.forwards]
