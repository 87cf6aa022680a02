"""Experts add what a token's slots say, weighted and in slot order."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.model.experts import Experts, Routing
from mezzotint.model.layers import gelu

TOKENS, WIDTH, INNER, EXPERTS, TOP_K = 9, 16, 6, 5, 3


def case(dtype: torch.dtype) -> tuple[Experts, Tensor, Routing]:
    """Experts, tokens, and three different experts a token in no sorted order; one expert is never chosen."""
    generator = torch.Generator().manual_seed(3)
    stacks = (
        torch.randn(*shape, generator=generator) for shape in ((EXPERTS, 2 * INNER, WIDTH), (EXPERTS, WIDTH, INNER))
    )
    chosen = torch.rand(TOKENS, EXPERTS - 1, generator=generator).topk(TOP_K).indices
    weights = torch.rand(TOKENS, TOP_K, generator=generator)
    x = torch.randn(TOKENS, WIDTH, generator=generator)
    return Experts.of(*(stack.to(dtype) for stack in stacks)), x.to(dtype), Routing(chosen, weights)


def slot_by_slot(experts: Experts, x: Tensor, routing: Routing) -> Tensor:
    """The definition, one token and one slot at a time."""
    rows = []
    for token, chosen, weights in zip(x, routing.chosen.tolist(), routing.weights, strict=True):
        said = []
        for expert, weight in zip(chosen, weights, strict=True):
            gate, up = F.linear(token, experts.gate_up_proj[expert]).chunk(2)
            said.append(weight * F.linear(gelu(gate) * up, experts.down_proj[expert]))
        rows.append(torch.stack(said).sum(0))
    return torch.stack(rows)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)]
)
def test_sorting_tokens_by_expert_changes_no_sum(dtype: torch.dtype, tolerance: float) -> None:
    experts, x, routing = case(dtype)
    mixed, expected = experts(x, routing), slot_by_slot(experts, x, routing)
    assert mixed.dtype == dtype
    assert (mixed - expected).abs().max() <= tolerance * expected.abs().max()


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)]
)
def test_a_token_alone_gets_what_it_gets_among_others(dtype: torch.dtype, tolerance: float) -> None:
    experts, x, routing = case(dtype)
    among = experts(x, routing)
    for index in range(TOKENS):
        one = slice(index, index + 1)
        alone = experts(x[one], Routing(routing.chosen[one], routing.weights[one]))
        assert alone.shape == (1, WIDTH)
        assert (alone - among[one]).abs().max() <= tolerance * among.abs().max()


def test_gradients_reach_experts_tokens_and_weights() -> None:
    experts, x, routing = case(torch.float64)
    leaves = [x, routing.weights.double(), experts.gate_up_proj.data, experts.down_proj.data]
    plain, sorting = ([leaf.clone().requires_grad_() for leaf in leaves] for _ in range(2))
    for mix, (tokens, weights, gate_up, down) in ((slot_by_slot, plain), (Experts.forward, sorting)):
        experts = Experts(0, 0, 0)
        del experts.gate_up_proj, experts.down_proj
        experts.__dict__.update(gate_up_proj=gate_up, down_proj=down)
        mix(experts, tokens, Routing(routing.chosen, weights)).square().sum().backward()
    for ours, expected in zip(sorting, plain, strict=True):
        torch.testing.assert_close(ours.grad, expected.grad)
