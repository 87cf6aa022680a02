"""Weights, keys and values by hand for a small model, and to the last one for the released."""

from dataclasses import replace

import pytest

from mezzotint.bench.accelerators import ACCELERATORS
from mezzotint.bench.footprint import (
    PRECISIONS,
    count_parameters,
    drafter_parameters,
    find_precision,
    footprint,
    kv_bytes,
    weights_bytes,
)
from mezzotint.bench.habits import REPORT_DRAFTER
from mezzotint.model.config import shipped_config
from tests.bench.small import small

RELEASED = shipped_config("diffusiongemma-26b-a4b")


def test_every_weight_of_the_released_model_is_counted() -> None:
    parameters = count_parameters(RELEASED)
    assert parameters.experts == 22_837_985_280
    assert parameters.attention == 1_110_197_760
    assert parameters.vision == 572_792_112
    assert sum(parameters) == 25_823_778_864


def test_a_small_model_is_counted_as_by_hand() -> None:
    parameters = count_parameters(small())
    # Sliding: q 8, k 4, v 4 columns and 8 rows back; full: q 16, k 8 and 16 back; and norms of q and k.
    assert parameters.attention == 8 * 16 + 8 * 8 + 8 * 24 + 16 * 8 + 2 * 4 + 2 * 8
    assert parameters.experts == 2 * 4 * 3 * 8 * 4
    assert parameters.mlp == 2 * 3 * 8 * 16
    assert parameters.router == 2 * (8 * 4 + 8 + 4)
    assert parameters.norms == 2 * 7 * 8 + 8
    assert parameters.self_conditioning == 3 * 8 * 16 + 8
    dense = count_parameters(small(family="gemma4", num_experts=0, top_k_experts=0, moe_intermediate_size=0))
    assert (dense.experts, dense.router, dense.self_conditioning, dense.norms) == (0, 0, 0, 2 * 4 * 8 + 8)


def test_keys_and_values_of_the_released_model_are_the_published_bytes() -> None:
    assert kv_bytes(RELEASED.layers, RELEASED.sliding_window, 1) == 204_800 + 20_480
    assert kv_bytes(RELEASED.layers, RELEASED.sliding_window, 4096) == 1024 * 204_800 + 4096 * 20_480


def test_a_sliding_layer_keeps_its_window_and_a_full_one_everything() -> None:
    config = small()
    sliding, full = 2 * 1 * 4 * 2, 2 * 1 * 8 * 2
    assert kv_bytes(config.layers, config.sliding_window, 5) == 5 * (sliding + full)
    assert kv_bytes(config.layers, config.sliding_window, 100) == 8 * sliding + 100 * full


def test_only_experts_attention_and_mlps_are_quantised() -> None:
    parameters = count_parameters(RELEASED)
    assert weights_bytes(RELEASED, PRECISIONS["bf16"]) == 2 * sum(parameters)
    kept = (
        parameters.embedding + parameters.self_conditioning + parameters.router + parameters.norms + parameters.vision
    )
    assert weights_bytes(RELEASED, PRECISIONS["fp8"]) == sum(parameters) + kept
    sizes = [weights_bytes(RELEASED, PRECISIONS[name]) for name in ("bf16", "fp8", "nvfp4", "int4")]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < 18e9  # the published size of the quantised model


def test_the_released_drafter_takes_three_quarters_of_a_gibibyte() -> None:
    assert 2 * drafter_parameters(REPORT_DRAFTER) / 2**30 == pytest.approx(0.78, abs=0.01)


def test_what_fits_is_what_weights_leave_by_what_a_request_takes() -> None:
    config, device = small(), replace(ACCELERATORS["h100"], memory=100_000.0)
    kept = footprint(config, PRECISIONS["bf16"], device, 100, canvas=True)
    assert kept.kv_bytes_per_sequence == 8 * 16 + 100 * 32
    assert kept.state_bytes_per_sequence == 4 * (8 * 2 + 24)
    room = 90_000 - kept.weights_bytes
    assert kept.max_concurrency == room // (kept.kv_bytes_per_sequence + kept.state_bytes_per_sequence)
    assert footprint(config, PRECISIONS["bf16"], device, 100).state_bytes_per_sequence == 0


def test_weights_that_do_not_fit_name_the_precision_that_would() -> None:
    with pytest.raises(ValueError, match=r"51\.6 GB.*21\.6 can be used; take --dtype nvfp4 or int4"):
        footprint(RELEASED, PRECISIONS["bf16"], ACCELERATORS["rtx4090"], 5120)
    with pytest.raises(ValueError, match=r"no --dtype here is small enough, or take an accelerator"):
        footprint(RELEASED, PRECISIONS["bf16"], replace(ACCELERATORS["h100"], memory=1e9), 5120)


def test_weights_that_leave_the_cache_which_a_bandwidth_holds_for_are_refused() -> None:
    with pytest.raises(ValueError, match="choose another"):
        footprint(RELEASED, PRECISIONS["bf16"], ACCELERATORS["cpu"], 5120)


def test_an_unknown_precision_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r"--dtype is 'fp6'.*bf16, fp8, int8, nvfp4, int4"):
        find_precision("fp6")
