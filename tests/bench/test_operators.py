"""What forwards read and multiply, by hand, and what must grow with what."""

import pytest

from mezzotint.bench.accelerators import ACCELERATORS
from mezzotint.bench.footprint import PRECISIONS
from mezzotint.bench.habits import REPORT, REPORT_DRAFTER
from mezzotint.bench.operators import Forward, Operator, Setting, draft, expected_experts, operators
from mezzotint.model.config import shipped_config
from tests.bench.small import small

RELEASED = shipped_config("diffusiongemma-26b-a4b")


def setting(dtype: str = "bf16") -> Setting:
    return Setting(config=small(), precision=PRECISIONS[dtype], accelerator=ACCELERATORS["h100"])


def bytes_and_flop(forward: Forward, operator: Operator, dtype: str = "bf16") -> tuple[float, float]:
    works = operators(setting(dtype), forward)[operator]
    return sum(work.bytes for work in works), sum(work.flop for work in works)


def test_a_token_visits_its_experts_and_a_canvas_the_published_number() -> None:
    pool = REPORT.expert_pool
    assert expected_experts(RELEASED, 1, 1, pool) == pytest.approx(8)
    assert expected_experts(RELEASED, 1, 256, pool) == pytest.approx(84, rel=1e-6)
    assert expected_experts(RELEASED, 2, 256, pool) == pytest.approx(128 * (1 - (44 / 128) ** 2), rel=1e-6)
    assert expected_experts(RELEASED, 64, 256, pool) == pytest.approx(128)


def test_more_tokens_or_rows_never_read_fewer_experts() -> None:
    for rows in (1, 2, 8):
        read = [expected_experts(RELEASED, rows, tokens, 0.6) for tokens in (1, 2, 8, 64)]
        assert read == sorted(read)
        assert all(each <= expected_experts(RELEASED, rows + 1, 8, 0.6) for each in read[:3])


def test_an_autoregressive_step_is_counted_as_by_hand() -> None:
    step = Forward(1, 1, 100, sampled=1)
    assert bytes_and_flop(step, "mlp") == (2 * 2 * 384, 2 * 2 * 384)
    assert bytes_and_flop(step, "experts") == (2 * 2 * 2 * 96, 2 * 2 * 2 * 96)
    assert bytes_and_flop(step, "projections") == (2 * (128 + 64 + 192 + 128), 2 * (128 + 64 + 192 + 128))
    # Keys: 8 of the window and itself, or 100 and itself; two heads of 4, or of 8, scored and mixed.
    assert bytes_and_flop(step, "attention") == (8 * 16 + 100 * 32, 4 * 2 * (9 * 4 + 101 * 8))
    assert bytes_and_flop(step, "sampling") == (2 * 32 * 8, 2 * 32 * 8)


def test_a_denoising_step_multiplies_the_vocabulary_twice_and_sees_all_of_its_canvas() -> None:
    canvas = Forward(3, 4, 100, 4, denoises=True)
    assert bytes_and_flop(canvas, "sampling") == (2 * 2 * 32 * 8, 2 * 2 * 12 * 32 * 8)
    assert bytes_and_flop(canvas, "attention")[1] == 4 * 12 * 2 * ((8 + 4) * 4 + (100 + 4) * 8)
    logits = [work.logit_bytes for work in operators(setting(), canvas)["sampling"]]
    assert sum(logits) == 4 * 12 * 32


def test_a_commit_samples_nothing() -> None:
    assert "sampling" not in operators(setting(), Forward(1, 4, 100))


def test_quantised_weights_are_read_smaller_and_quantise_their_inputs() -> None:
    step = Forward(1, 1, 100, sampled=1)
    for name in ("mlp", "experts", "projections"):
        assert bytes_and_flop(step, name, "fp8")[0] == bytes_and_flop(step, name)[0] / 2
        kernels = [sum(work.kernels for work in operators(setting(dtype), step)[name]) for dtype in ("bf16", "fp8")]
        assert kernels[1] > kernels[0]
    assert bytes_and_flop(step, "sampling", "fp8") == bytes_and_flop(step, "sampling")


def test_a_layer_without_experts_has_no_such_operator() -> None:
    dense = small(family="gemma4", num_experts=0, top_k_experts=0, moe_intermediate_size=0)
    works = operators(
        Setting(config=dense, precision=PRECISIONS["bf16"], accelerator=ACCELERATORS["h100"]), Forward(1, 1, 9, 1)
    )
    assert "experts" not in works


def test_a_guess_reads_the_drafter_and_the_models_keys() -> None:
    target = Setting(config=RELEASED, precision=PRECISIONS["fp8"], accelerator=ACCELERATORS["h100"])
    read = sum(work.bytes for work in draft(target, REPORT_DRAFTER, 2, 4096))
    keys = 3 * 1024 * 2 * 8 * 256 * 2 + 4096 * 2 * 2 * 512 * 2
    assert read == pytest.approx(2 * 419_954_688 + 2 * keys, rel=0.01)
