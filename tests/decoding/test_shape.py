"""Bias, bars, penalties and filters: what they do to logits, and that every decoder honours those it takes."""

from collections.abc import Sequence
from math import inf
from typing import Any

import pytest
import torch

from mezzotint.decoding.generate import Block, Draft, generate_blocks, generate_tokens
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.propose import keep_likely
from mezzotint.decoding.shape import Shape, penalise, shape_canvas
from mezzotint.decoding.verify import generate_verified
from tests.decoding.network import END, C, Scripted, V, limits, sure_of

PROMPT = [3, 1, 4, 1, 5]


def write(decoder: Any, seed: int = 1, network: Any = None, **options: Any) -> list[Any]:
    params = SamplingParams(decoder=decoder, **{"max_tokens": 12, **options})
    run = {"diffusion": generate_blocks, "ar": generate_tokens, "verified": generate_verified}[decoder]
    return list(run(network or Scripted(), PROMPT, params, seed, limits()))  # type: ignore[operator]


def tokens(events: Sequence[Any]) -> list[int]:
    return [token for event in events if isinstance(event, Block) for token in event.tokens]


@pytest.mark.parametrize("decoder", ["diffusion", "ar", "verified"])
def test_a_barred_token_is_never_written_and_a_favoured_one_is(decoder: str) -> None:
    usual = {token for seed in range(8) for token in tokens(write(decoder, seed))}
    barred = dict.fromkeys(list(usual - {END})[:8], -inf)
    assert not {token for seed in range(8) for token in tokens(write(decoder, seed, logit_bias=barred))} & {*barred}
    assert set(tokens(write(decoder, logit_bias={9: 100}))) == {9}


@pytest.mark.parametrize("decoder", ["diffusion", "ar", "verified"])
def test_no_turn_ends_before_min_tokens_and_one_that_would_ends_right_behind(decoder: str) -> None:
    ends = Scripted(beliefs=lambda canvas, *_: sure_of([END] * len(canvas)), continuation=lambda _: sure_of([END])[0])
    for least in (0, 1, 5, 11):
        answer = tokens(write(decoder, network=ends, min_tokens=least))
        assert len(answer) == least + 1
        assert answer.index(END) == least


def test_min_tokens_is_counted_over_blocks() -> None:
    ends = Scripted(beliefs=lambda canvas, *_: sure_of([END] * len(canvas)))
    answer = tokens(write("diffusion", network=ends, min_tokens=C + 2, max_tokens=2 * C))
    assert answer.index(END) == C + 2


@pytest.mark.parametrize("filters", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}])
def test_a_canvas_whose_filters_leave_one_token_is_sure_of_it(filters: dict[str, Any]) -> None:
    """Wide beliefs have large entropies; what the filters take away must not keep a canvas from ending."""
    frozen = torch.randn(C, V, generator=torch.Generator().manual_seed(3))
    events = write("diffusion", network=Scripted(beliefs=lambda *_: frozen), ignore_eos=True, max_tokens=C, **filters)
    assert tokens(events) == frozen.argmax(-1).tolist()
    assert sum(isinstance(event, Draft) for event in events) == 2, "one step to propose, one to be stable"


def test_a_shaped_canvas_that_shapes_nothing_is_the_plain_one() -> None:
    for seed in range(5):
        plain = write("diffusion", seed)
        shaped = write("diffusion", seed, logit_bias={2: 0.0})
        assert tokens(shaped) == tokens(plain)
    assert shape_canvas(SamplingParams(), limits(), 0) is None
    assert shape_canvas(SamplingParams(min_tokens=4), limits(), 4) is None


def test_filters_of_many_rows_are_those_of_each() -> None:
    p = torch.rand(6, V, generator=torch.Generator().manual_seed(1), dtype=torch.float64).softmax(-1)
    for filters in [(3, 1.0, 0.0), (None, 0.4, 0.0), (None, 1.0, 0.9), (5, 0.5, 0.8)]:
        assert torch.equal(keep_likely(p, *filters), torch.stack([keep_likely(row, *filters) for row in p]))


def test_narrowed_logits_keep_the_likeliest_at_the_temperature_given() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0, 3.0]])
    shape = Shape(bias=None, barred_ids=(), barred=0, top_k=None, top_p=0.7, min_p=0.0)
    assert shape.narrow(logits, 1.0).isinf().tolist() == [[True, True, False, False]]
    assert shape.narrow(logits, 0.1).isinf().tolist() == [[True, True, True, False]]


def test_penalties_are_openais_and_repetition_is_divided_or_multiplied() -> None:
    logits = torch.tensor([1.0, -1.0, 2.0, 3.0])
    params = SamplingParams(decoder="ar", presence_penalty=0.5, frequency_penalty=0.25)
    assert penalise(logits, params, [3], [0, 0, 1]).tolist() == [1 - 0.5 - 0.5, -1 - 0.5 - 0.25, 2, 3]
    params = SamplingParams(decoder="ar", repetition_penalty=2.0)
    assert penalise(logits, params, [3], [0, 1]).tolist() == [0.5, -2, 2, 1.5]
    assert logits.tolist() == [1, -1, 2, 3]


@pytest.mark.parametrize(
    "options",
    [{"frequency_penalty": 2.0}, {"presence_penalty": -2.0}, {"repetition_penalty": 3.0}],
)
@pytest.mark.parametrize("temperature", [0, 1])
def test_verified_equals_ar_however_logits_are_shaped(options: dict[str, Any], temperature: float) -> None:
    changed = 0
    for seed in range(6):
        plain = tokens(write("ar", seed, temperature=temperature, **options))
        assert tokens(write("verified", seed, temperature=temperature, **options)) == plain
        changed += plain != tokens(write("ar", seed, temperature=temperature))
    assert changed, "an option that changes nothing proves nothing"


def test_an_id_outside_the_vocabulary_is_refused() -> None:
    for decoder in ("diffusion", "ar"):
        with pytest.raises(ValueError, match=f"logit_bias names token id {V}; ids go from 0 to {V - 1}"):
            write(decoder, logit_bias={V: 1.0})
