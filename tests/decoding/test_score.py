"""Log-probabilities: of the causal pass in every decoder, and what they cost."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from mezzotint.decoding.generate import Block, Finished, Prefilled, generate_blocks
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.score import score
from mezzotint.types import DecoderName, Score
from tests.decoding.machine import drawn
from tests.decoding.network import C, Scripted, V, following, limits
from tests.decoding.test_constrain import DECODERS, PROMPT, tokens, write


def scores(events: Sequence[Any]) -> list[Score]:
    return [one for event in events if isinstance(event, Block) for one in event.scores or ()]


def expected(answer: list[int], top: int) -> list[Score]:
    """What the causal pass says of an answer, token by token."""
    logits = torch.stack([following([*PROMPT, *answer[:index]]) for index in range(len(answer))])
    return score(logits, answer, top)


def near(told: Sequence[Score], right: Sequence[Score]) -> bool:
    return [one.logprob for one in told] == pytest.approx([one.logprob for one in right]) and [
        [id for id, _ in one.top] for one in told
    ] == [[id for id, _ in one.top] for one in right]


def test_a_score_is_the_log_softmax_with_the_likeliest_first() -> None:
    [one] = score(torch.tensor([[0.0, 2.0, 1.0]]), [0], 2)
    total = torch.tensor([0.0, 2.0, 1.0]).logsumexp(0).item()
    assert one.logprob == pytest.approx(-total)
    assert [id for id, _ in one.top] == [1, 2]
    assert [value for _, value in one.top] == pytest.approx([2 - total, 1 - total])
    assert score(torch.zeros(1, 3), [0], 9)[0].top[2][0] in (0, 1, 2), "more than there are is all of them"
    assert score(torch.zeros(1, 3), [0], 0)[0].top == ()


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("top", [0, 3])
def test_under_a_grammar_every_token_has_the_score_of_the_causal_pass(decoder: DecoderName, top: int) -> None:
    for seed in range(8):
        plain = write(decoder, drawn(seed), seed, max_tokens=24)
        events = write(decoder, drawn(seed), seed, max_tokens=24, logprobs=top)
        assert tokens(events) == tokens(plain), "to ask changes nothing"
        assert scores(plain) == []
        assert near(scores(events), expected(tokens(events), top))
        for event in events:
            assert not isinstance(event, Block) or len(event.scores) == len(event.tokens)


@pytest.mark.parametrize("options", [{}, {"temperature": 0}, {"top_k": 3, "logit_bias": {4: 5.0}}])
def test_scores_know_nothing_of_temperature_bias_or_filters(options: dict[str, Any]) -> None:
    for decoder in ("ar", "verified", "mtp"):
        events = write(decoder, None, 2, logprobs=2, **options)
        assert near(scores(events), expected(tokens(events), 2))


def test_a_canvas_is_scored_by_its_encode_and_the_last_one_takes_one_more() -> None:
    for room in (5, C, 2 * C + 3):
        network, plain = Scripted(), Scripted()
        params = SamplingParams(max_tokens=room, ignore_eos=True, logprobs=1)
        events = list(generate_blocks(network, PROMPT, params, 3, limits()))
        free = list(generate_blocks(plain, PROMPT, SamplingParams(max_tokens=room, ignore_eos=True), 3, limits()))
        assert tokens(events) == tokens(free)
        assert near(scores(events), expected(tokens(events), 1))
        assert events[-1].encodes == free[-1].encodes + 1
        assert network.kinds() == plain.kinds() + "e"
        for event in events:
            if isinstance(event, Block):
                assert len(event.uncertainty or ()) == len(event.tokens)
                assert all(0 <= doubt < 4 for doubt in event.uncertainty or ())
        assert all(event.uncertainty is None for event in free if isinstance(event, Block))


@pytest.mark.parametrize("decoder", ["ar", "verified", "mtp"])
def test_where_tokens_are_drawn_scores_take_no_forward_of_their_own(decoder: DecoderName) -> None:
    plain, scored = write(decoder, None, 4), write(decoder, None, 4, logprobs=0)
    assert isinstance(plain[-1], Finished)
    assert scored[-1] == plain[-1]


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_prompts_own_scores_come_with_its_prefill(decoder: DecoderName) -> None:
    plain = write(decoder, drawn(3), 1)
    for top in (0, 2):
        events = write(decoder, drawn(3), 1, prompt_logprobs=top)
        assert tokens(events) == tokens(plain)
        [prefilled] = [event for event in events if isinstance(event, Prefilled)]
        first, *rest = prefilled.scores or ()
        logits = torch.stack([following(PROMPT[:index]) for index in range(1, len(PROMPT))])
        assert first is None
        assert near(rest, score(logits, PROMPT[1:], top))


def test_a_prompt_longer_than_a_canvas_is_scored_piece_by_piece() -> None:
    prompt = [1 + index % 5 for index in range(2 * C + 3)]
    network = Scripted()
    params = SamplingParams(max_tokens=C, prompt_logprobs=0)
    first, *_ = generate_blocks(network, prompt, params, 1, limits())
    logits = torch.stack([following(prompt[:index]) for index in range(1, len(prompt))])
    assert near(first.scores[1:], score(logits, prompt[1:], 0))
    assert [len(forward.ids) for forward in network.forwards if forward.kind == "e"] == [C, C, 3]
    assert len(first.scores) == len(prompt)
    assert V > C
