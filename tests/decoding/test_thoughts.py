"""Bounded thinking: a channel closes when its budget is spent or the answer's reserve is reached, in every decoder."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from torch import Tensor

from mezzotint.decoding.canvas import pin_positions
from mezzotint.decoding.conflicts import check_conflicts
from mezzotint.decoding.generate import Block, Finished, generate_blocks, generate_tokens
from mezzotint.decoding.limits import Limits, required_positions
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.thoughts import Thoughts, open_thoughts
from mezzotint.decoding.verify import generate_guessed, generate_verified
from mezzotint.types import Channel
from tests.decoding.letters import Letters
from tests.decoding.network import END, C, Scripted, limits, shifting, sure_of

OPEN, CLOSE, CALL = 20, 21, 22
THINKING: Limits = replace(limits(), channel=Channel(OPEN, CLOSE, (CALL,)))
PROMPT = [3, 1, 4, 1, 5]
DECODERS = ("ar", "verified", "mtp", "diffusion")


class Guesser:
    """A drafter that expects one token again and again."""

    def __init__(self, token: int) -> None:
        self.token = token

    @property
    def reach(self) -> int:
        return 0

    def guess(self, need: Any, kv: Any) -> list[int]:
        return [self.token] * need.size


def write(
    decoder: Any,
    network: Scripted,
    seed: int = 1,
    prompt: Sequence[int] = PROMPT,
    stopper: Any = None,
    guess: int = 0,
    given: Limits = THINKING,
    **options: Any,
) -> list[Any]:
    """The events of a request; 3 steps a block under diffusion."""
    steps = {"steps": 3} if decoder == "diffusion" else {}
    params = SamplingParams(decoder=decoder, **{"max_tokens": 20, **steps, **options})
    asked = (list(prompt), params, seed, given)
    if decoder == "ar":
        return list(generate_tokens(network, *asked, stopper=stopper))
    if decoder == "verified":
        return list(generate_verified(network, *asked, stopper=stopper))
    if decoder == "mtp":
        return list(generate_guessed(network, Guesser(guess), *asked, stopper=stopper))
    return list(generate_blocks(network, *asked, stopper=stopper))


def telling(story: Callable[[int], int], length: int = len(PROMPT)) -> Scripted:
    """A network that is sure of a token by its place in the answer."""

    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        first = len(context) - length
        return sure_of([story(first + offset) for offset in range(len(canvas))])

    return Scripted(beliefs, lambda context: sure_of([story(len(context) - length)])[0])


def pondering(close: int) -> Scripted:
    """It thinks from the first token on, closes its channel at one, and ends its turn four tokens later."""
    return telling(lambda at: OPEN if at == 0 else CLOSE if at == close else END if at >= close + 4 else 9 + at % 9)


def tokens(events: Sequence[Any]) -> list[int]:
    return [token for event in events if isinstance(event, Block) for token in event.tokens]


def finish(events: Sequence[Any]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def inside(answer: Sequence[int], prompt: Sequence[int] = PROMPT) -> list[int]:
    """The tokens inside channels, by their place in the answer; a test's own reading of the syntax."""
    is_open = bool(open_thoughts(prompt, THINKING))
    found = []
    for place, token in enumerate(answer):
        if token in (CLOSE, CALL, END):
            is_open = False
        elif is_open:
            found.append(place)
        is_open = is_open or token == OPEN
    return found


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("budget", [0, 1, 5, 6, 7, 8, 9, 13])
def test_a_spent_budget_closes_the_channel_and_the_answer_goes_on(decoder: str, budget: int) -> None:
    events = write(decoder, pondering(close=30), thinking_budget=budget)
    answer = tokens(events)
    assert answer[: budget + 2] == [OPEN, *(9 + at % 9 for at in range(1, budget + 1)), CLOSE]
    assert inside(answer) == list(range(1, budget + 1))
    assert (len(answer), finish(events).reason, finish(events).forced) == (20, "length", 1)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("reserve", [1, 2, 7, 11, 12, 17])
def test_a_reserve_closes_the_channel_while_so_many_tokens_are_left(decoder: str, reserve: int) -> None:
    answer = tokens(write(decoder, pondering(close=30), answer_reserve=reserve))
    assert len(answer) == 20
    assert answer.index(CLOSE) == 20 - reserve - 1
    assert inside(answer) == list(range(1, answer.index(CLOSE)))


@pytest.mark.parametrize("decoder", DECODERS)
def test_whichever_of_the_two_comes_first_counts(decoder: str) -> None:
    for budget, reserve, closed in ((3, 5, 4), (15, 5, 14), (13, 5, 14), (12, 5, 13)):
        answer = tokens(write(decoder, pondering(close=30), thinking_budget=budget, answer_reserve=reserve))
        assert answer.index(CLOSE) == closed


@pytest.mark.parametrize("decoder", DECODERS)
def test_thoughts_that_close_in_time_are_left_alone(decoder: str) -> None:
    enough: list[dict[str, Any]] = [
        {"thinking_budget": 6},
        {"answer_reserve": 4},
        {"thinking_budget": 5, "answer_reserve": 12},
    ]
    for bounds in enough:
        assert tokens(write(decoder, pondering(close=6), **bounds)) == tokens(write(decoder, pondering(close=6)))


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_channel_that_the_prompt_has_opened_is_open_and_its_tokens_there_are_free(decoder: str) -> None:
    for prompt, budget in (([3, OPEN], 0), ([3, OPEN, 5, 5, 5], 2), ([3, OPEN, 5, 5, 5], 0)):
        network = telling(lambda at: 9 + at % 9, len(prompt))
        answer = tokens(write(decoder, network, prompt=prompt, thinking_budget=budget))
        assert answer[: budget + 2] == [*(9 + at % 9 for at in range(budget)), CLOSE, answer[budget + 1]]
        assert CLOSE not in answer[budget + 1 :]
        assert finish(write(decoder, network, prompt=prompt, thinking_budget=budget)).forced == 1


@pytest.mark.parametrize(
    ("prompt", "opened"),
    [
        ([3, OPEN, 5], [OPEN, 5]),
        ([OPEN], [OPEN]),
        ([OPEN, 5, CLOSE, 4], []),
        ([OPEN, 5, CALL, 4], []),
        ([OPEN, 5, END, 4], []),
        ([OPEN, 5, CLOSE, OPEN, 6, 6], [OPEN, 6, 6]),
        ([3, 4], []),
        ([], []),
    ],
)
def test_a_prompt_has_opened_what_nothing_behind_it_closes(prompt: list[int], opened: list[int]) -> None:
    assert open_thoughts(prompt, THINKING) == opened
    assert open_thoughts(prompt, limits()) == []


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_channel_that_opens_again_has_what_the_first_one_left_and_then_nothing(decoder: str) -> None:
    def story(at: int) -> int:
        return OPEN if at in (0, 5, 12) else CLOSE if at == 3 else 9

    answer = tokens(write(decoder, telling(story), thinking_budget=4))
    assert answer == [OPEN, 9, 9, CLOSE, 9, OPEN, 9, 9, CLOSE, 9, 9, 9, OPEN, CLOSE, *[9] * 6]


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_call_within_thoughts_leaves_them(decoder: str) -> None:
    answer = tokens(write(decoder, telling(lambda at: {0: OPEN, 2: CALL}.get(at, 9)), thinking_budget=3))
    assert answer == [OPEN, 9, CALL, *[9] * 17]


@pytest.mark.parametrize("decoder", DECODERS)
def test_an_answer_may_end_within_a_thought(decoder: str) -> None:
    ended = write(decoder, telling(lambda at: OPEN if at == 0 else END if at == 3 else 9), thinking_budget=10)
    assert (tokens(ended), finish(ended).reason) == ([OPEN, 9, 9, END], "stop")
    cut = write(decoder, pondering(close=30), thinking_budget=10, max_tokens=6)
    assert (len(tokens(cut)), finish(cut).reason, finish(cut).forced) == (6, "length", 0)
    last = write(decoder, pondering(close=30), thinking_budget=4, max_tokens=6)
    assert (tokens(last)[-1], finish(last).reason, finish(last).forced) == (CLOSE, "length", 1)


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_stop_string_within_a_thought_ends_the_answer_there(decoder: str) -> None:
    network = telling(lambda at: {0: OPEN, 1: 0, 2: 1}.get(at, 9))
    events = write(decoder, network, stopper=Letters("ab"), thinking_budget=4)
    assert (tokens(events), finish(events).reason, finish(events).forced) == ([OPEN, 0, 1], "stop", 0)
    closing = write(decoder, network, stopper=Letters("ab"), thinking_budget=1)
    assert tokens(closing)[:3] == [OPEN, 0, CLOSE]
    assert finish(closing).forced == 1


def leaning(canvas: list[int], context: list[int], step: int) -> Tensor:
    """Unsure of everything, but fond of channels."""
    logits = shifting(canvas, context, step)
    logits[:, OPEN] += 3
    logits[:, CLOSE] += 1
    return logits


def fond() -> Scripted:
    return Scripted(leaning, lambda context: leaning([0], context, 0)[0])


BOUNDS: list[dict[str, Any]] = [
    {"thinking_budget": 0},
    {"thinking_budget": 3},
    {"answer_reserve": 9},
    {"thinking_budget": 5, "answer_reserve": 12},
]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("law", [{}, {"temperature": 0}, {"logprobs": 1}, {"ignore_eos": True}], ids=str)
def test_verified_and_mtp_write_what_ar_writes(bounds: dict[str, Any], law: dict[str, Any]) -> None:
    for seed in range(4):
        expected = write("ar", fond(), seed, **bounds, **law)
        verified = write("verified", fond(), seed, draft_tokens=5, draft_steps=1, **bounds, **law)
        guessed = write("mtp", fond(), seed, guess=OPEN, **bounds, **law)
        closing = write("mtp", fond(), seed, guess=CLOSE, **bounds, **law)
        assert tokens(verified) == tokens(guessed) == tokens(closing) == tokens(expected)
        assert finish(verified).forced == finish(guessed).forced == finish(closing).forced == finish(expected).forced


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_whatever_is_believed_the_bounds_hold(decoder: str, bounds: dict[str, Any]) -> None:
    forced = 0
    for seed in range(6):
        events = write(decoder, fond(), seed, ignore_eos=True, **bounds)
        answer, thoughts = tokens(events), inside(tokens(events))
        assert len(answer) == 20
        assert len(thoughts) <= bounds.get("thinking_budget", inf)
        reserve = bounds.get("answer_reserve", 0)
        assert not any(place > 20 - reserve - 2 for place in thoughts if reserve)
        forced += finish(events).forced
    assert forced


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_under_ar_the_answer_is_what_it_would_have_been_up_to_the_first_forced_token(bounds: dict[str, Any]) -> None:
    for seed in range(4):
        free, bound = tokens(write("ar", fond(), seed)), tokens(write("ar", fond(), seed, **bounds))
        first = next((index for index, (a, b) in enumerate(zip(free, bound, strict=False)) if a != b), None)
        assert first is None or bound[first] == CLOSE


def test_a_canvas_is_cut_where_it_has_to_close_and_the_next_one_starts_behind_it() -> None:
    network = pondering(close=30)
    blocks = [event.tokens for event in write("diffusion", network, thinking_budget=3) if isinstance(event, Block)]
    assert [len(block) for block in blocks] == [5, 8, 7]
    assert blocks[0][-1] == CLOSE
    assert [forward.ids for forward in network.forwards if forward.kind == "e"] == [PROMPT, blocks[0], blocks[1]]


def test_a_canvas_that_has_to_begin_with_the_closing_token_has_it_pinned_from_its_first_step_on() -> None:
    network = pondering(close=30)
    blocks = [event.tokens for event in write("diffusion", network, thinking_budget=C - 1) if isinstance(event, Block)]
    assert [len(block) for block in blocks] == [8, 8, 4]
    second = [forward.ids for forward in network.forwards if forward.kind == "d" and forward.ids[0] == CLOSE]
    assert len(second) >= 1
    assert blocks[1][0] == CLOSE


def test_under_ar_a_closing_token_takes_no_forward_of_its_own() -> None:
    network = pondering(close=30)
    events = write("ar", network, thinking_budget=3)
    assert network.kinds() == "e" * 19, "nineteen of twenty tokens were drawn"
    assert finish(events).encodes == 19


def test_the_uncertainty_of_a_forced_token_is_none_and_its_score_is_the_models() -> None:
    free = write("diffusion", fond(), 3, logprobs=1)
    events = write("diffusion", fond(), 3, logprobs=1, thinking_budget=0)
    first = next(event for event in events if isinstance(event, Block))
    before = next(event for event in free if isinstance(event, Block))
    place = first.tokens.index(CLOSE)
    assert len(first.tokens) == place + 1 < len(before.tokens), "the test needs a cut canvas"
    assert first.uncertainty is not None
    assert before.uncertainty is not None
    assert first.scores is not None
    assert first.uncertainty == (*before.uncertainty[:place], 0.0)
    logits = leaning([0], [*PROMPT, *first.tokens[:place]], 0)[0].double().log_softmax(-1)
    assert first.scores[place].logprob == pytest.approx(float(logits[CLOSE]))


def test_a_bounded_request_may_touch_a_canvas_behind_any_of_its_tokens() -> None:
    plain, bounded = SamplingParams(max_tokens=20), SamplingParams(max_tokens=20, thinking_budget=1)
    assert required_positions(5, plain, THINKING) == 5 + 24
    assert required_positions(5, bounded, THINKING) == 5 + 20 + C - 1
    assert required_positions(5, replace(bounded, decoder="ar"), THINKING) == 5 + 20
    tight = replace(THINKING, max_positions=5 + 20 + C - 1)
    for budget in range(12):
        assert len(tokens(write("diffusion", pondering(close=30), given=tight, thinking_budget=budget))) == 20


def test_drafts_behind_a_token_that_has_to_close_are_none() -> None:
    thoughts = Thoughts([OPEN], SamplingParams(thinking_budget=2), THINKING)
    assert thoughts.count_free([9, 9, 9, 9], 20) == 2
    assert thoughts.count_free([9, 9, CLOSE, 9], 20) == 4
    assert thoughts.count_free([9, CLOSE, 9, 9], 20) == 4
    assert thoughts.count_free([9, END, OPEN, 9, 9, 9], 20) == 4
    assert not thoughts.must_close(20)


@pytest.mark.parametrize(
    ("options", "given", "told"),
    [
        ({"thinking_budget": 3}, limits(), "thinking_budget is 3, but this checkpoint has no thinking channel"),
        ({"answer_reserve": 3}, limits(), "answer_reserve is 3, but this checkpoint has no thinking channel"),
        (
            {"thinking_budget": 3, "logit_bias": {CLOSE: -inf}},
            THINKING,
            f"thinking_budget is 3, but logit_bias bars token id {CLOSE}, which closes thoughts",
        ),
    ],
)
@pytest.mark.parametrize("decoder", DECODERS)
def test_a_bound_that_cannot_be_kept_is_refused_before_any_work(
    decoder: str, options: dict[str, Any], given: Limits, told: str
) -> None:
    network = fond()
    with pytest.raises(ValueError, match=told):
        write(decoder, network, given=given, **options)
    assert not network.forwards


def test_a_bound_is_refused_together_with_a_grammar_and_with_pins() -> None:
    params = SamplingParams(thinking_budget=3)
    with pytest.raises(ValueError, match="thinking_budget is 3, but a grammar decides how long thoughts are"):
        check_conflicts(params, THINKING, is_constrained=True)
    with pytest.raises(ValueError, match="thinking_budget is 3, but pins are given, which a canvas that is cut"):
        list(generate_blocks(fond(), PROMPT, params, 1, THINKING, pins={0: pin_positions({1: 4}, C)}))
    check_conflicts(SamplingParams(), limits(), is_constrained=True, is_pinned=True)
