"""Work counted from a config, against the tensors of the network and counts made by hand."""

from dataclasses import replace

import pytest

from benchmarks.bound import Cost, denoise_cost, token_cost, working_set_bytes
from benchmarks.ceilings import Ceilings, Shape
from mezzotint.model.memory import outline
from tests.benchmarks.tiny import CONFIG

CEILINGS = Ceilings({Shape(1, 1, 1): 1e9, Shape(2, 2, 2): 2e9}, 1e6, {"exp": 1e3, "gelu": 1e2})


@pytest.mark.parametrize(
    ("cost", "seconds"),
    [
        (Cost(flop=4_000_000_000, bytes=1), 2.0),
        (Cost(flop=1, bytes=3_000_000), 3.0),
        (Cost(bytes=1_000_000, elements={"exp": 1_000, "gelu": 50}), 1.5),
    ],
)
def test_a_part_takes_as_long_as_what_limits_it(cost: Cost, seconds: float) -> None:
    assert cost.bound_s(CEILINGS) == pytest.approx(seconds)


def test_a_denoising_step_reads_every_matrix_once() -> None:
    matrices = sum(tensor.numel() for tensor in outline(CONFIG).state_dict().values() if tensor.ndim > 1)
    keys = denoise_cost(CONFIG, 20, 2)["attention"].bytes
    assert working_set_bytes(denoise_cost(CONFIG, 20, 2)) - keys == 2 * matrices


def test_a_token_reads_only_the_experts_it_visits_and_no_self_conditioning() -> None:
    step, token = denoise_cost(CONFIG, 20, 4), token_cost(CONFIG, 20, 4)
    expert = 4 * 3 * CONFIG.hidden_size * CONFIG.moe_intermediate_size
    unvisited = CONFIG.num_experts - CONFIG.top_k_experts
    assert step["experts"].bytes - token["experts"].bytes == len(CONFIG.layers) * unvisited * expert
    conditioning = 4 * 3 * CONFIG.hidden_size * CONFIG.intermediate_size
    assert step["projections"].bytes - token["projections"].bytes == conditioning


def test_sliding_layers_see_a_window_and_full_layers_everything() -> None:
    sliding, full = CONFIG.layers
    seen = token_cost(CONFIG, 1000, 1)["attention"].flop
    near = CONFIG.sliding_window * sliding.head_dim
    assert seen == 4 * CONFIG.num_heads * (near + 1001 * full.head_dim)


def test_the_vocabulary_is_multiplied_twice_in_a_step_and_once_for_a_token() -> None:
    step, token = denoise_cost(CONFIG, 1, 2), token_cost(CONFIG, 1, 2)
    ratio = 2 * CONFIG.canvas_length
    assert step["vocabulary products"].flop == ratio * token["vocabulary products"].flop
    assert step["vocabulary products"].bytes == token["vocabulary products"].bytes
    assert not denoise_cost(replace(CONFIG, softcap=0.0), 1, 2)["vocabulary element-wise"].elements.get("sigmoid")
