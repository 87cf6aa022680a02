"""What the numbers of a block give away, and what the causal pass's own text gives away: nothing."""

import pytest
import torch

from mezzotint.decoding.alarms import GateLimits, find_doubt, find_surprise, measure_surprise
from mezzotint.types import Alarm

BOUNDS = GateLimits()


def test_a_token_left_unsure_alarms_from_the_first_such_token_on() -> None:
    assert find_doubt([0.0, 0.4, 0.6, 2.0], BOUNDS) == [Alarm("unconverged", 2)]
    assert find_doubt([0.0, 0.5], BOUNDS) == []


def test_surprise_is_what_the_logarithm_says_beyond_the_entropy() -> None:
    logits = torch.randn(20, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tokens = [place % 7 for place in range(20)]
    p = logits.softmax(-1)
    expected = [float(-p[row, token].log() + (p[row] * p[row].log()).sum()) for row, token in enumerate(tokens)]
    assert measure_surprise(logits, tokens).tolist() == pytest.approx(expected)


def test_what_the_causal_pass_draws_itself_has_no_surprise_on_average() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(4000, 5, generator=generator, dtype=torch.float64)
    drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
    surprise = measure_surprise(logits, drawn.tolist())
    assert abs(float(surprise.mean())) < 4 * float(surprise.std()) / 4000**0.5
    assert float(measure_surprise(logits, logits.argmax(-1).tolist()).mean()) < -0.1


def test_a_window_of_three_tokens_alarms_at_its_first_and_shorter_blocks_as_they_are() -> None:
    assert find_surprise(torch.tensor([0.0, 0.0, 0.0, 4.0, 0.0, 5.5, 0.0]), BOUNDS) == [Alarm("surprise", 3)]
    assert find_surprise(torch.tensor([4.0, 0.0, 0.0, 5.5]), BOUNDS) == []
    assert find_surprise(torch.tensor([9.5]), BOUNDS) == [Alarm("surprise", 0)]


def test_more_spikes_than_are_allowed_alarm_though_no_window_does() -> None:
    spread = torch.tensor([7.0, 0.0, 0.0, 7.0, 0.0, 0.0])
    assert find_surprise(spread, BOUNDS) == [Alarm("spikes", 0)]
    assert find_surprise(spread[1:], BOUNDS) == []


def test_a_bound_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="doubt is -1; give a number from 0 up"):
        GateLimits(doubt=-1)
