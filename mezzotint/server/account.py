"""What answers cost, as clients read it: `usage`, and `metrics` with what only a canvas has."""

import time
from collections.abc import Sequence
from typing import Any

from mezzotint.decoding.work import tell_work
from mezzotint.llm.events import Completion
from mezzotint.types import Receipt


class Clock:
    """When one request arrived, and when the first of its text could leave."""

    def __init__(self) -> None:
        self._arrived_s = time.perf_counter()
        self._first_s: float | None = None

    def note_first(self) -> None:
        """Some text is final; only the first time counts."""
        if self._first_s is None:
            self._first_s = time.perf_counter()

    @property
    def first_ms(self) -> float | None:
        """Milliseconds from arrival to the first text."""
        return None if self._first_s is None else _ms(self._first_s - self._arrived_s)


def count_usage(completions: Sequence[Completion], thoughts: int = 0) -> dict[str, Any]:
    """Tokens of a request with one prompt and several answers. thoughts: tokens of them that were reasoning."""
    prompt = completions[0].receipt.prompt_tokens
    written = sum(each.receipt.output_tokens for each in completions)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": completions[0].receipt.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }


def tell_metrics(receipts: Sequence[Receipt], clock: Clock, name: str) -> dict[str, Any]:
    """What the answers of one request took; of several the sums, and the times of the slowest. name: the model's.

    Source: contract 9; the first four names are vLLM's.
    """
    slowest = max(receipts, key=lambda receipt: receipt.queue_s + receipt.prefill_s + receipt.generation_s)
    written = sum(receipt.output_tokens for receipt in receipts)
    spent_s = slowest.prefill_s + slowest.generation_s
    return {
        "time_to_first_token_ms": clock.first_ms,
        "queue_time_ms": _ms(slowest.queue_s),
        "prefill_time_ms": _ms(slowest.prefill_s),
        "generation_time_ms": _ms(spent_s),
        "tokens_per_second": round(written / spent_s, 1) if spent_s > 0 else None,
        "diffusion": {**tell_work(receipts), "seeds": [each.seed for each in receipts]},
        "route": {"arm": f"{name}:{receipts[0].decoder}", "decoder": receipts[0].decoder, "attempts": 1},
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
