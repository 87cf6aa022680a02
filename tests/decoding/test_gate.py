"""A block leaves only once it has passed; what is tried, and what it costs, is told and adds up."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.alarms import GateLimits
from mezzotint.decoding.gate import generate_gated
from mezzotint.decoding.generate import Block, Draft, Finished, generate_blocks, generate_tokens
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.program import Event
from mezzotint.types import Alarm, Channel, Inspector
from tests.decoding.letters import Letters
from tests.decoding.network import END, C, Scripted, V, following, limits, sure_of

PROMPT = [3, 1, 4, 1, 5]
LOOSE = GateLimits(doubt=1e9, surprise=1e9, spike=1e9)
CHANNEL = Channel(20, 21)
Look = Callable[[list[int], list[int]], list[Alarm]]


class Watcher:
    """An inspector that says what a test has it say, and notes what it was shown."""

    def __init__(self, look: Look = lambda settled, block: []) -> None:
        self.look = look
        self.shown: list[tuple[list[int], list[int], list[int], bool]] = []

    def inspect(
        self, settled: Sequence[int], borders: Sequence[int], block: Sequence[int], *, is_whole: bool
    ) -> list[Alarm]:
        self.shown.append((list(settled), list(borders), list(block), is_whole))
        return self.look(list(settled), list(block))


def first_blocks(count: int, offset: int = 0, settled: int = 0) -> Look:
    """Alarm `count` times at `offset` of whatever stands behind `settled` tokens, then never."""
    left = [count]

    def look(tokens: list[int], block: list[int]) -> list[Alarm]:
        if len(tokens) != settled or not left[0] or offset >= len(block):
            return []
        left[0] -= 1
        return [Alarm("stutter", offset)]

    return look


def write(inspector: Inspector, network: Scripted | None = None, **options: Any) -> list[Event]:
    bounds, stopper = options.pop("bounds", LOOSE), options.pop("stopper", None)
    params = SamplingParams(**{"max_tokens": 20, "ignore_eos": True, "steps": 3, "gate": "text", **options})
    given = (PROMPT, params, 0, limits(channel=CHANNEL), inspector)
    return list(generate_gated(network or Scripted(), *given, stopper=stopper, bounds=bounds))


def plain(network: Scripted | None = None, **options: Any) -> list[Event]:
    stopper = options.pop("stopper", None)
    params = SamplingParams(**{"max_tokens": 20, "ignore_eos": True, "steps": 3, **options})
    return list(generate_blocks(network or Scripted(), PROMPT, params, 0, limits(channel=CHANNEL), stopper=stopper))


def blocks(events: Sequence[Event]) -> list[Block]:
    return [event for event in events if isinstance(event, Block)]


def tokens(events: Sequence[Event]) -> list[int]:
    return [token for block in blocks(events) for token in block.tokens]


def finished(events: Sequence[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "cold": {"temperature": 0.0, "sampler": "jax"},
    "narrow": {"canvas_length": 5, "min_tokens": 3, "ignore_eos": False},
    "scored": {"logprobs": 2, "prompt_logprobs": 0},
    "thoughtful": {"thinking_budget": 2, "answer_reserve": 4},
    "stopped": {"stopper": Letters("ab", "cc")},
    "biased": {"logit_bias": {4: 3.0}, "top_k": 6},
    "dropped": {"drop_after_end": True, "ignore_eos": False, "steps": 6},
}


@pytest.mark.parametrize("gate", ["text", "causal"])
@pytest.mark.parametrize("way", WAYS)
def test_what_nobody_alarms_about_is_the_answer_without_a_gate(way: str, gate: str) -> None:
    gated, free = write(Watcher(), gate=gate, **WAYS[way]), plain(**WAYS[way])
    assert [b._replace(scores=None) for b in blocks(gated)] == [b._replace(scores=None) for b in blocks(free)]
    for one, other in zip(blocks(gated), blocks(free), strict=True):
        assert [score.logprob for score in one.scores or ()] == pytest.approx(
            [score.logprob for score in other.scores or ()]
        )
    assert finished(gated).reason == finished(free).reason
    assert finished(gated).forced == finished(free).forced
    assert finished(gated).interventions == ()


@pytest.mark.parametrize("gate", ["text", "causal"])
@pytest.mark.parametrize("way", WAYS)
def test_whatever_alarms_nothing_leaves_that_has_not_passed_and_the_forwards_add_up(way: str, gate: str) -> None:
    def suspicious(settled: list[int], block: list[int]) -> list[Alarm]:
        return [Alarm("stutter", place) for place, id in enumerate(block) if id % 3 == 0][:1]

    network, watcher = Scripted(), Watcher(suspicious)
    events = write(watcher, network, gate=gate, **WAYS[way])
    done = finished(events)
    ran = network.kinds()
    prefills = 1 if WAYS[way].get("prompt_logprobs") is None else -(-len(PROMPT) // C)
    assert ran.count("d") == sum(block.steps for block in blocks(events))
    assert ran.count("e") - prefills == done.encodes
    assert len(tokens(events)) <= 20
    actions = {each.block: each.action for each in done.interventions}
    by_cause = [block for block in blocks(events) if actions.get(block.block) not in ("ar", "verified")]
    assert actions, "something was mended"
    assert all(not suspicious([], block.tokens) for block in by_cause)
    assert {"ar", "verified"} & {*actions.values()} <= {"ar" if gate == "text" else "verified"}


def test_a_clean_head_of_half_a_block_stays_and_the_next_canvas_starts_there() -> None:
    network = Scripted()
    watcher = Watcher(first_blocks(1, offset=5))
    events = write(watcher, network)
    free = plain()
    assert blocks(events)[0].tokens == blocks(free)[0].tokens[:5]
    assert network.contexts[0].ids[: len(PROMPT) + 5] == PROMPT + tokens(events)[:5]
    assert watcher.shown[1][:2] == (tokens(events)[:5], [0])
    [told] = finished(events).interventions
    assert told == (0, ("stutter",), "trim", 0)


def test_a_block_that_is_bad_early_is_rolled_again_on_half_the_canvas_with_other_noise() -> None:
    network = Scripted()
    events = write(Watcher(first_blocks(1, offset=2)), network)
    widths = [len(forward.ids) for forward in network.forwards if forward.kind == "d"]
    assert widths[:6] == [C] * 3 + [C // 2] * 3
    canvases = [forward.ids for forward in network.forwards if forward.kind == "d"]
    assert canvases[3] != canvases[0][: C // 2]
    assert len(blocks(events)[0].tokens) == C // 2
    assert blocks(events)[0].steps == 6
    assert finished(events).interventions == ((0, ("stutter",), "reroll", 3),)


@pytest.mark.parametrize("gate", ["text", "causal"])
@pytest.mark.parametrize("way", ["plain", "scored", "biased", "narrow"])
def test_what_the_causal_pass_writes_at_last_is_greedy_ar_behind_what_is_settled(way: str, gate: str) -> None:
    options = WAYS[way]
    network = Scripted()
    events = write(Watcher(first_blocks(2, settled=options.get("canvas_length", C))), network, gate=gate, **options)
    fallen = [each.block for each in finished(events).interventions if each.action in ("ar", "verified")]
    [number] = fallen
    written = next(block for block in blocks(events) if block.block == number)
    before = [token for block in blocks(events)[:number] for token in block.tokens]
    kept = {name: options[name] for name in ("logit_bias", "logprobs") if name in options}
    kept["ignore_eos"] = options.get("ignore_eos", True)
    asked = SamplingParams(decoder="ar", temperature=0.0, max_tokens=20 - len(before), **kept)
    own = list(generate_tokens(Scripted(), PROMPT + before, asked, 0, limits(channel=CHANNEL)))
    assert written.tokens == tokens(own)[: len(written.tokens)]
    assert written is blocks(events)[-1] or len(written.tokens) >= options.get("canvas_length", C) // 2
    if written.scores is not None:
        told = [score for block in blocks(own) for score in block.scores or ()]
        assert [s.logprob for s in written.scores] == pytest.approx([s.logprob for s in told[: len(written.scores)]])
    held = network.contexts[0].ids
    assert held == (PROMPT + tokens(events))[: len(held)]


@pytest.mark.parametrize("gate", ["text", "causal"])
def test_bounds_on_thinking_hold_whoever_writes(gate: str) -> None:
    opening, closing = CHANNEL.opening, CHANNEL.closing

    def thinking(canvas: list[int], context: list[int], step: int) -> Tensor:
        return sure_of([opening, *[2] * (len(canvas) - 1)])

    def next_thought(context: list[int]) -> Tensor:
        return sure_of([2])[0]

    alarmed = Watcher(lambda settled, block: [Alarm("stutter", 0)])
    network = Scripted(thinking, next_thought)
    events = write(alarmed, network, gate=gate, thinking_budget=3, answer_reserve=2)
    assert {each.action for each in finished(events).interventions} == {
        "reroll",
        "ar" if gate == "text" else "verified",
    }
    said = tokens(events)
    assert opening not in said or closing in said[said.index(opening) : said.index(opening) + 5]


def test_a_spent_budget_alarms_only_while_a_token_is_unsure() -> None:
    strict = GateLimits(doubt=0.5, surprise=1e9, spike=1e9)
    kinds = {kind for each in finished(write(Watcher(), bounds=strict)).interventions for kind in each.kinds}
    assert kinds == {"unconverged"}
    sure = Scripted(lambda canvas, context, step: sure_of([2, 4, 6, 9, 2, 4, 6, 9][: len(canvas)]))
    assert finished(write(Watcher(), sure, bounds=strict)).interventions == ()


def test_a_pair_that_does_not_follow_is_seen_by_the_causal_pass_and_its_block_is_taken_back() -> None:
    """The canvas is sure of 5 5; behind 5 the causal pass is sure of 6."""
    wanted = [1, 2, 3, 4, 5, 6, 8, 9]

    def follow(context: list[int]) -> Tensor:
        is_prompt = len(context) == len(PROMPT) or context[-1] not in wanted
        return sure_of([wanted[0] if is_prompt else wanted[(wanted.index(context[-1]) + 1) % C]], 20.0)[0]

    def pair(canvas: list[int], context: list[int], step: int) -> Tensor:
        return sure_of([1, 2, 3, 4, 5, 5, 8, 9][: len(canvas)])

    network = Scripted(pair, follow)
    events = write(Watcher(), network, gate="causal", bounds=GateLimits(), max_tokens=C)
    assert tokens(events)[:3] == [1, 2, 3]
    assert [5, 5] not in [tokens(events)[place : place + 2] for place in range(C)]
    first = finished(events).interventions[0]
    assert (first.kinds[0], first.action) == ("surprise", "reroll")
    text = write(Watcher(), Scripted(pair, follow), max_tokens=C)
    assert tokens(text) == [1, 2, 3, 4, 5, 5, 8, 9], "nobody else sees it"


def test_an_answer_is_whole_only_where_an_end_token_ends_it() -> None:
    ending = Scripted(lambda canvas, context, step: sure_of([2, 4, END, 9, 9, 9, 9, 9][: len(canvas)]))
    watcher = Watcher()
    write(watcher, ending, ignore_eos=False)
    assert watcher.shown == [([], [], [2, 4, END], True)]
    cut = Watcher()
    write(cut, max_tokens=C)
    assert [is_whole for *_, is_whole in cut.shown] == [False]
    stopped = Watcher()
    sure = Scripted(lambda canvas, context, step: sure_of([0, 1, 9, 9, 9, 9, 9, 9][: len(canvas)]))
    write(stopped, sure, stopper=Letters("ab"))
    assert stopped.shown == [([], [], [0, 1], False)]


def test_what_is_tried_is_shown_as_a_draft_and_never_told() -> None:
    events = write(Watcher(first_blocks(1, offset=2)))
    first = next(place for place, event in enumerate(events) if isinstance(event, Block))
    drafts = [event for event in events[:first] if isinstance(event, Draft)]
    assert [len(draft.tokens) for draft in drafts] == [C] * 3 + [C // 2] * 3


def test_nothing_but_padding_fails_the_request_whoever_writes_it() -> None:
    void = Watcher(lambda settled, block: [Alarm("void", 0)])
    with pytest.raises(
        ValueError, match="block 0 came out as nothing but padding, from ar too; look whether the prompt"
    ):
        write(void)


@pytest.mark.parametrize("kind", ["e", "d"])
@pytest.mark.parametrize("gate", ["off", "causal"])
def test_what_is_no_number_fails_the_request_before_any_block(kind: str, gate: str) -> None:
    def nothing(canvas: list[int], context: list[int], step: int) -> Tensor:
        return torch.full((len(canvas), V), torch.nan)

    good = Scripted()
    network = Scripted(
        nothing if kind == "d" else good.beliefs, (lambda c: nothing([0], c, 0)[0]) if kind == "e" else following
    )
    if kind == "e" and gate == "off":
        params = SamplingParams(decoder="ar", max_tokens=3)
        events = generate_tokens(network, PROMPT, params, 0, limits())
    else:
        params = SamplingParams(max_tokens=20, steps=2, gate=gate)  # type: ignore[arg-type]
        given = (network, PROMPT, params, 0, limits())
        events = generate_blocks(*given) if gate == "off" else generate_gated(*given, Watcher())
    told = []
    with pytest.raises(FloatingPointError, match="not finite"):
        told.extend(events)
    assert not blocks(told)


def test_a_decoder_without_a_canvas_has_no_gate() -> None:
    with pytest.raises(ValueError, match="gate is 'text'; decoder 'ar' does not use it"):
        SamplingParams(decoder="ar", gate="text")


def test_the_oracle_has_no_gate_and_says_so() -> None:
    with pytest.raises(ValueError, match="gate is 'text', but nobody inspects the text"):
        plain(gate="text")
