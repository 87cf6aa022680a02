from dataclasses import replace

import pytest
import torch

from mezzotint.engine.config import EngineConfig
from mezzotint.engine.memory import Memory, divide_memory
from tests.engine.tiny import SHAPE

# A token's keys and values: one head of 8 numbers in the full layer, two in the sliding one.
FULL, SLIDING = 2 * 8 * 8, 2 * 2 * 8 * 8
PLENTY = 2**40
CONFIG = EngineConfig(page_size=4, max_rows=3, chunk_tokens=10)


def divide(
    config: EngineConfig = CONFIG, available: int = PLENTY, dtype: torch.dtype = torch.float64, window: int = 6
) -> Memory:
    return divide_memory(config, SHAPE, dtype, available, window)


def test_with_plenty_of_memory_every_row_may_be_as_long_as_the_context() -> None:
    # 96 positions; a window of 6 with a chunk of 10 takes 4 pages, and it may begin and end within one.
    assert divide() == Memory(3 * 24, 3 * (4 + 2))


def test_what_a_drafter_reads_further_back_is_kept_too() -> None:
    assert divide(window=12).sliding == 3 * (6 + 2)


def test_a_sliding_group_holds_no_more_than_the_context() -> None:
    assert divide(replace(CONFIG, chunk_tokens=500)) == Memory(3 * 24, 3 * 24)


def test_half_of_what_is_free_is_taken_and_all_of_what_is_given() -> None:
    whole = 4 * (72 * FULL + 18 * SLIDING)
    assert divide(available=whole) == divide(replace(CONFIG, memory_bytes=whole // 2), available=0) == Memory(36, 9)
    assert divide(replace(CONFIG, memory_bytes=whole), available=1) == Memory(72, 18)


def test_numbers_of_half_the_width_give_twice_the_pages() -> None:
    config = replace(CONFIG, memory_bytes=4 * (72 * FULL + 18 * SLIDING) // 2)
    assert divide(config, dtype=torch.float32) == Memory(72, 18)


def test_memory_that_holds_no_canvas_is_refused_with_what_would_do() -> None:
    with pytest.raises(ValueError, match=r"1,000 bytes of memory hold .* a canvas alone needs 3; allow at least"):
        divide(replace(CONFIG, memory_bytes=1000))
