"""Random numbers depend on what they are for: the golden values, the prefixes, the streams."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.decoding.random import SeededCanvas, canvas_uniforms, fresh_seed, position_uniform, position_uniforms
from tests.decoding.chance import fits

WORD = st.integers(0, 2**64 - 1)
SMALL = st.integers(0, 10**6)
STREAMS = {"propose": 1, "noise": 2, "route": 3, "ar": 4}


def philox(key: tuple[int, int], counter: list[int]) -> list[int]:
    """Philox 4x64 with ten rounds, from its paper (Salmon et al. 2011), in whole numbers."""
    first, second = key
    a, b, c, d = counter
    for _ in range(10):
        left, right = a * 0xD2E7470EE14C6C93, c * 0xCA5A826395121157
        a, b, c, d = right >> 64 ^ b ^ first, right, left >> 64 ^ d ^ second, left
        a, b, c, d = (word % 2**64 for word in (a, b, c, d))
        first, second = (first + 0x9E3779B97F4A7C15) % 2**64, (second + 0xBB67AE8584CAA73B) % 2**64
    return [a, b, c, d]


def philox_uniforms(seed: int, stream: str, counter: tuple[int, int, int, int], count: int) -> list[float]:
    """The uniforms of a counter, by the plain form; numpy steps the counter before it draws."""
    low, *rest = counter
    words: list[int] = []
    while len(words) < count:
        low += 1
        words += philox((seed, STREAMS[stream]), [low, *rest])
    return [(word >> 11) / 2**53 for word in words[:count]]


def canvas(**changes: int) -> SeededCanvas:
    return SeededCanvas(**{"seed": 5, "block": 1, "width": 16, "vocab_size": 1000, **changes})


def test_uniforms_have_their_golden_values() -> None:
    first = canvas_uniforms(0, "propose", block=0, attempt=0, step=0, width=5)
    assert first.tolist() == [
        0.8133540609793564,
        0.7513314251083365,
        0.6716490436969984,
        0.48312397997727397,
        0.7051952190012039,
    ]
    later = canvas_uniforms(2**64 - 1, "route", block=3, attempt=2, step=47, width=3)
    assert later.tolist() == [0.13368242706390787, 0.7647628437670173, 0.654959847475683]
    assert position_uniform(7, 0) == 0.551791328987202
    assert position_uniform(7, 1) == 0.0208967681298744
    assert position_uniform(7, 4) == 0.6015307977510179
    assert position_uniform(7, 4095) == 0.8269018181701352


def test_token_ids_have_their_golden_values() -> None:
    drawn = SeededCanvas(seed=0, block=0, width=8, vocab_size=262_144)
    assert drawn.first_canvas().tolist() == [213498, 115259, 78569, 160333, 214879, 171233, 1628, 74599]
    assert drawn.noise(0).tolist() == [104343, 18163, 141959, 187993, 98754, 239164, 108434, 236000]


@given(seed=WORD, stream=st.sampled_from(["propose", "noise", "route"]), block=SMALL, attempt=SMALL, step=SMALL)
def test_a_canvas_draws_from_philox(seed: int, stream: Any, block: int, attempt: int, step: int) -> None:
    ours = canvas_uniforms(seed, stream, block=block, attempt=attempt, step=step, width=9)
    assert ours.dtype == torch.float64
    assert ours.tolist() == philox_uniforms(seed, stream, (0, step, block, attempt), 9)


@given(seed=WORD, position=st.integers(0, 2**20))
def test_a_position_draws_from_philox(seed: int, position: int) -> None:
    word = philox_uniforms(seed, "ar", (position // 4, 0, 0, 0), 4)[position % 4]
    assert position_uniform(seed, position) == word


@given(seed=WORD, first=st.integers(0, 2**20), count=st.integers(1, 12))
def test_positions_in_a_row_draw_what_each_draws_alone(seed: int, first: int, count: int) -> None:
    alone = [position_uniform(seed, position) for position in range(first, first + count)]
    assert position_uniforms(seed, first, count).tolist() == alone


@given(narrow=st.integers(1, 64), step=st.integers(0, 48))
def test_a_narrower_canvas_is_a_prefix(narrow: int, step: int) -> None:
    wide, cut = canvas(width=64), canvas(width=narrow)
    assert cut.first_canvas().equal(wide.first_canvas()[:narrow])
    assert cut.uniforms(step).equal(wide.uniforms(step)[:narrow])
    assert cut.noise(step).equal(wide.noise(step)[:narrow])
    assert cut.routes(step).equal(wide.routes(step)[:narrow])


def test_the_order_of_asking_changes_nothing() -> None:
    drawn = canvas()
    forwards = [drawn.uniforms(step) for step in range(5)]
    backwards = [drawn.uniforms(step) for step in reversed(range(5))]
    assert all(one.equal(other) for one, other in zip(forwards, reversed(backwards), strict=True))


def test_seed_block_attempt_and_step_each_give_other_numbers() -> None:
    drawn = [canvas(), canvas(seed=6), canvas(block=2), canvas(attempt=1)]
    tables = [table for each in drawn for table in (each.uniforms(0), each.uniforms(1), each.routes(0))]
    assert len({tuple(table.tolist()) for table in tables}) == 12
    ids = [table for each in drawn for table in (each.first_canvas(), each.noise(0), each.noise(1))]
    assert len({tuple(table.tolist()) for table in ids}) == 12


def test_the_streams_have_nothing_in_common() -> None:
    count = 20_000
    tables = [
        canvas_uniforms(3, stream, block=0, attempt=0, step=0, width=count).numpy()
        for stream in ("propose", "noise", "route")
    ]
    tables.append(np.array([position_uniform(3, position) for position in range(count)]))
    correlations = np.corrcoef(tables)[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 4 / count**0.5


@pytest.mark.parametrize("vocab_size", [7, 64, 2048, 262_144])
def test_noise_is_uniform_over_the_whole_vocabulary(vocab_size: int) -> None:
    drawn = SeededCanvas(seed=1, block=0, width=60_000, vocab_size=vocab_size).noise(0)
    assert drawn.dtype == torch.int64
    assert int(drawn.min()) >= 0
    assert int(drawn.max()) < vocab_size
    cells = min(vocab_size, 64)
    assert fits((drawn * cells // vocab_size).bincount(minlength=cells).tolist(), [1] * cells)


def test_a_vocabulary_of_one_token_has_one_noise() -> None:
    assert not canvas(vocab_size=1).first_canvas().any()


def test_the_largest_uniform_still_falls_inside_the_vocabulary() -> None:
    largest = 1 - 2.0**-53
    assert all(int(largest * vocab_size) == vocab_size - 1 for vocab_size in range(1, 5000))


def test_a_fresh_seed_is_exact_in_json_and_new_each_time() -> None:
    seeds = {fresh_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert max(seeds) < 2**53
