"""AIPerf's plugin for Mezzotint: its "Acceptance Length" becomes output tokens per forward, for every decoder.

    aiperf profile --endpoint-type mezzotint_chat -m lab --url http://127.0.0.1:8000 --use-server-token-count ...

The draft acceptance rate is what it says for `verified` and `mtp`. A canvas has no drafts that are accepted or not: its
rate is told as 0 and means nothing.
"""

from typing import Any

from aiperf.common.models import ParsedResponse, SpecDecodeAcceptanceRecord
from aiperf.common.models.record_models import find_last_non_empty_usage
from aiperf.endpoints.openai_chat import ChatEndpoint

__all__ = ["MezzotintChat", "TokensPerForward"]


class MezzotintChat(ChatEndpoint):
    """OpenAI's chats, with `metrics.diffusion` kept for the adapter."""

    @staticmethod
    def extract_spec_decode_stats(json_obj: dict[str, Any]) -> dict[str, Any] | None:
        """The object that counts forwards, where a reply holds it."""
        metrics = json_obj.get("metrics")
        stats = metrics.get("diffusion") if isinstance(metrics, dict) else None
        return stats if isinstance(stats, dict) else None


class TokensPerForward:
    """Fills AIPerf's record of acceptance with forwards as its steps."""

    @classmethod
    def can_adapt(cls, responses: list[ParsedResponse]) -> bool:
        """Whether these responses are of such a server."""
        return _find(responses) is not None

    @classmethod
    def adapt(cls, responses: list[ParsedResponse]) -> SpecDecodeAcceptanceRecord | None:
        """One record a request; None for an answer without forwards or usage."""
        stats, usage = _find(responses), find_last_non_empty_usage(responses)
        tokens = None if usage is None else usage.completion_tokens
        if stats is None or not tokens or not stats["forwards"]:
            return None
        forwards = int(stats["forwards"])
        beyond = max(0, tokens - forwards)  # each forward gives one, and these are the others
        each, more = divmod(beyond, forwards)
        drafted = max(beyond, int(stats.get("drafted_tokens", 0)))
        return SpecDecodeAcceptanceRecord(
            engine="mezzotint",
            mean_acceptance_length=tokens / forwards,
            draft_acceptance_rate=stats["accepted_tokens"] / drafted if stats.get("drafted_tokens") else 0.0,
            acceptance_histogram={j: n for j, n in ((each, forwards - more), (each + 1, more)) if n},
            num_accepted_draft_tokens=beyond,
            num_draft_tokens=drafted,
            num_spec_steps=forwards,
            completion_tokens=tokens,
        )


def _find(responses: list[ParsedResponse]) -> dict[str, Any] | None:
    for response in reversed(responses):
        stats = response.spec_decode_stats
        if stats and "tokens_per_forward" in stats and "forwards" in stats:
            return stats
    return None
