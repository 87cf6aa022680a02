"""What replaces the rejected: noise where it belongs, and routes whose law is the discrete DDIM one."""

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.noise import renoise, route_ddim
from mezzotint.decoding.random import SeededCanvas
from tests.decoding.chance import fits

CURRENT, CLEAN, FRESH = 1, 2, 3


def posterior(current: int, clean: int, before: float, after: float, vocab_size: int) -> list[float]:
    """The law of the canvas at share `after` given the one at `before` and the clean token, by Bayes' rule.

    A token is clean with probability `after` and uniform otherwise; `before` comes of it in the same way.
    """
    kept = before / after
    masses = []
    for token in range(vocab_size):
        reached = after * (token == clean) + (1 - after) / vocab_size
        left = kept * (current == token) + (1 - kept) / vocab_size
        masses.append(reached * left)
    return [mass / sum(masses) for mass in masses]


def route(
    current: int, clean: int, noise: int, uniforms: Tensor, before: float, after: float, vocab_size: int
) -> list[int]:
    """Where positions of the same three tokens go, one for each uniform [N]."""
    canvas, proposal, fresh = (torch.full((1, len(uniforms)), token) for token in (current, clean, noise))
    routed = route_ddim(canvas, proposal, fresh, uniforms[None], before=before, after=after, vocab_size=vocab_size)
    return routed[0].tolist()


def even(count: int) -> Tensor:
    """Evenly spread uniforms."""
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


def test_accepted_positions_take_their_proposal_and_others_noise() -> None:
    accepted = torch.tensor([[True, False, True]])
    proposal, noise = torch.tensor([[1, 2, 3]]), torch.tensor([[7, 8, 9]])
    assert renoise(proposal, accepted, noise).tolist() == [[1, 8, 3]]


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0), (0.1, 0.9)])
@pytest.mark.parametrize("clean", [0, 2])
def test_the_routes_add_up_to_the_posterior(clean: int, before: float, after: float) -> None:
    next_ones = [token for noise in range(5) for token in route(2, clean, noise, even(4000), before, after, 5)]
    law = [next_ones.count(token) / len(next_ones) for token in range(5)]
    expected = posterior(2, clean, before, after, 5)
    assert sum(expected) == pytest.approx(1)
    assert law == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("clean", [CURRENT, CLEAN])
def test_routes_drawn_by_seed_have_the_published_masses(clean: int) -> None:
    before, after, vocab_size = 0.3, 0.4, 4
    kept = before / after
    law = [0.0, 0.0, 0.0, (1 - kept) * (1 - after) / vocab_size]
    law[clean] += after * (1 - kept) / vocab_size + kept * after * (clean == CURRENT)
    law[CURRENT] += kept * (1 - after) / vocab_size
    uniforms = SeededCanvas(seed=9, block=0, width=40_000, vocab_size=vocab_size).routes(2)
    routed = route(CURRENT, clean, FRESH, uniforms, before, after, vocab_size)
    assert fits([routed.count(token) for token in range(4)], law)


def test_a_canvas_of_pure_noise_has_nothing_to_keep() -> None:
    assert set(route(CURRENT, CLEAN, FRESH, even(1000), 0.0, 0.5, 4)) == {CLEAN, FRESH}


def test_the_last_step_leaves_no_noise() -> None:
    uniforms = torch.cat((even(1000), torch.tensor([1 - 2.0**-53], dtype=torch.float64)))
    for budget in (1, 2, 48, 1000):
        assert set(route(CURRENT, CLEAN, FRESH, uniforms, (budget - 1) / budget, 1.0, 262_144)) == {CLEAN}


def test_every_position_takes_its_own_route() -> None:
    canvas, proposal, noise = (
        torch.tensor([[CURRENT, CLEAN, CURRENT]]),
        torch.full((1, 3), CLEAN),
        torch.full((1, 3), FRESH),
    )
    uniforms = torch.tensor([[0.0, 0.9, 0.999]], dtype=torch.float64)
    routed = route_ddim(canvas, proposal, noise, uniforms, before=0.5, after=0.75, vocab_size=4)
    alone = [route(int(canvas[0, i]), CLEAN, FRESH, uniforms[0, [i]], 0.5, 0.75, 4) for i in range(3)]
    assert [[token] for token in routed[0].tolist()] == alone == [[CLEAN], [CLEAN], [FRESH]]
