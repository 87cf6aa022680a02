"""How a routed answer came about, as `metrics` tells it; nothing is decided or measured here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mezzotint.router.record import Attempt, Decision
from mezzotint.types import DecoderName


class Tried(NamedTuple):
    """An attempt, and why its answer did not leave."""

    attempt: Attempt
    reason: str


@dataclass(frozen=True, kw_only=True)
class Course:
    """The way of one request. asked: arms, those that refused too. apart_s: spent outside of attempts.

    first_s, took_s: from arrival until the first text could leave, and until the answer was accepted or whole.
    """

    decision: Decision
    decoder: DecoderName | None
    tried: tuple[Tried, ...]
    asked: int
    apart_s: float
    first_s: float
    took_s: float


def tell_metrics(course: Course, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """`metrics` of an answer: what its arm told, and `route`. Source: contract 9."""
    last = course.tried[-1].attempt
    busy_s = last.prefill_s + last.generation_s
    told = {
        "time_to_first_token_ms": _ms(course.first_s),
        "queue_time_ms": _ms(last.queue_s),
        "prefill_time_ms": _ms(last.prefill_s),
        "generation_time_ms": _ms(busy_s),
        "tokens_per_second": round(last.output_tokens / busy_s, 1) if busy_s > 0 else None,
        "diffusion": metrics.get("diffusion"),
        "route": _tell_route(course),
    }
    return {**told, **{name: metrics[name] for name in ("faults", "usage_mismatch") if name in metrics}}


def _tell_route(course: Course) -> dict[str, Any]:
    decision, attempts = course.decision, [each.attempt for each in course.tried]
    return {
        "arm": attempts[-1].arm,
        "decoder": course.decoder,
        "reason": decision.reason,
        "attempts": course.asked,
        "decision_id": decision.id,
        "predicted_ms": _ms(decision.seconds),
        "overhead_ms": _ms(course.apart_s),
        "time_to_accepted_ms": _ms(course.took_s),
        "parts_ms": _tell_parts(course, attempts),
        "cost_usd": round(sum(each.cost_usd for each in attempts), 9),
        "candidates": [
            {
                "arm": seen.arm,
                "expected_ms": _ms(seen.seconds),
                "acceptance": round(seen.acceptance, 4),
                "cost_usd": round(seen.cost_usd, 9),
                "in_flight": seen.in_flight,
                "excluded": seen.excluded,
            }
            for seen in decision.candidates
        ],
        "tried": [
            {"arm": each.arm, "outcome": each.outcome, "ms": _ms(each.seconds), "reason": tried.reason}
            for each, tried in zip(attempts, course.tried, strict=True)
        ],
    }


def _tell_parts(course: Course, attempts: list[Attempt]) -> dict[str, float]:
    """Of time to accepted, over all attempts; they add up to it. other: between us and arms. Source: contract 10."""
    parts = {
        "routing": course.apart_s,
        "queue": sum(each.queue_s for each in attempts),
        "prefill": sum(each.prefill_s for each in attempts),
        "generation": sum(each.generation_s for each in attempts),
        "verification": sum(each.verify_s for each in attempts),
    }
    return {name: _ms(seconds) for name, seconds in {**parts, "other": course.took_s - sum(parts.values())}.items()}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
