import math

import pytest
import torch
from torch import Tensor

from mezzotint.model.config import LayerShape
from mezzotint.model.layers import MLP, RMSNorm, gelu, rotary_angles, rotate

FULL = LayerShape("full_attention", 16, 1, shares_kv=True, rope_theta=100.0, rotary_fraction=0.25)
SLIDING = LayerShape("sliding_attention", 8, 1, shares_kv=False, rope_theta=100.0, rotary_fraction=1.0)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_norm_divides_by_the_root_mean_square_and_then_scales() -> None:
    x, norm = normal(3, 6), RMSNorm(6, 1e-3).double()
    weight = normal(6, seed=1)
    norm.load_state_dict({"weight": weight})
    expected = x / (x.square().mean(-1, keepdim=True) + 1e-3).sqrt()
    torch.testing.assert_close(norm(x), expected * weight)
    bare = RMSNorm(6, 1e-3, scaled=False)
    torch.testing.assert_close(bare(x), expected)
    assert not bare.state_dict()


def test_a_norm_in_bfloat16_is_formed_in_float32_and_rounded_once() -> None:
    x, norm = normal(64, 256).bfloat16() * 3e4, RMSNorm(256, 1e-6).bfloat16()
    weight = normal(256, seed=1).bfloat16()
    norm.load_state_dict({"weight": weight})
    wide = x.float() / (x.float().square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight.float()
    assert norm(x).dtype == torch.bfloat16
    assert (norm(x) == wide.bfloat16()).double().mean() > 0.999  # a second rounding would move a third of them


def test_rotation_turns_dimension_j_with_its_partner_half_a_head_away() -> None:
    x, positions = normal(1, 5, 2, 8), torch.tensor([0, 1, 2, 30, 700])
    rotated = rotate(x, rotary_angles(SLIDING, positions, torch.float64))
    for pair in range(4):
        turn = torch.polar(torch.ones(5).double(), positions.double() * 100.0 ** (-pair / 4))
        expected = torch.complex(x[..., pair], x[..., pair + 4]) * turn[:, None]
        ours = torch.complex(rotated[..., pair], rotated[..., pair + 4])
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-4)


def test_full_layers_turn_a_quarter_of_the_pairs_at_frequencies_spread_over_the_whole_head() -> None:
    angles = rotary_angles(FULL, torch.tensor([3]), torch.float64)
    expected = torch.tensor([3.0, 3.0 * 100.0 ** (-2 / 16), *[0.0] * 6], dtype=torch.float64)
    torch.testing.assert_close(angles.cos[0], expected.cos().repeat(2), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(angles.sin[0, 8:], expected.sin(), rtol=1e-6, atol=1e-6)
    x = normal(1, 1, 1, 16)
    still = [*range(2, 8), *range(10, 16)]
    assert torch.equal(rotate(x, angles)[..., still], x[..., still])


@pytest.mark.parametrize("shape", [FULL, SLIDING])
def test_scores_depend_on_distance_alone(shape: LayerShape) -> None:
    q, k = normal(1, 1, 1, shape.head_dim), normal(1, 1, 1, shape.head_dim, seed=1)

    def score(at: int, key: int) -> float:
        turned = [
            rotate(x, rotary_angles(shape, torch.tensor([place]), torch.float64)) for x, place in ((q, at), (k, key))
        ]
        return float((turned[0] * turned[1]).sum())

    assert score(9, 2) == pytest.approx(score(107, 100), rel=1e-9)
    assert score(9, 2) != pytest.approx(score(10, 2), rel=1e-3)


def test_rows_may_stand_at_positions_of_their_own() -> None:
    rows = torch.tensor([[4, 5], [9, 10]])
    both = rotary_angles(SLIDING, rows, torch.float32)
    assert both.cos.shape == (2, 2, 8)
    for row, positions in enumerate(rows):
        alone = rotary_angles(SLIDING, positions, torch.float32)
        assert torch.equal(both.cos[row], alone.cos)
        assert torch.equal(both.sin[row], alone.sin)


def test_gelu_is_the_tanh_approximation() -> None:
    x = torch.linspace(-4, 4, 33, dtype=torch.float64)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    torch.testing.assert_close(gelu(x), 0.5 * x * (1 + inner.tanh()))


def test_an_mlp_gates_up_by_gelu_of_gate() -> None:
    mlp, x = MLP(4, 6).double(), normal(2, 3, 4)
    gate, up, down = (layer.weight for layer in (mlp.gate_proj, mlp.up_proj, mlp.down_proj))
    torch.testing.assert_close(mlp(x), (gelu(x @ gate.T) * (x @ up.T)) @ down.T)
