"""Another server's chunks in our own form: calls whole, usage held against what came; no connection lives here."""

import json
import math
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any

from mezzotint.types import ArmError

Chunk = dict[str, Any]
_BYTES = 4  # of text in a token, about; what a server tells passes within a factor of _DOUBT, and _SLACK tokens
_DOUBT, _SLACK = 4, 16


class Foreign:
    """One answer of another server as it comes."""

    def __init__(self, arm: str, body: Mapping[str, Any]) -> None:
        """body: the chat that is answered."""
        self._arm = arm
        self._head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": arm,
        }
        self._prompt = count_text(json.dumps([body.get("messages"), body.get("tools")], ensure_ascii=False))
        self._calls: dict[int, dict[str, str]] = {}
        self._usage: Mapping[str, Any] = {}
        self._metrics: Mapping[str, Any] = {}
        self._written = 0  # bytes
        self._has_begun = False
        self._reason: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the answer has ended, though the stream may not have."""
        return self._reason is not None

    def push(self, raw: Any) -> Iterator[Chunk]:
        """Take a chunk. Yields: what of it can be told now. Raises: ArmError garbage for what is none."""
        choices = raw.get("choices") if isinstance(raw, Mapping) else None
        if not isinstance(choices, list):
            raise self._garbage(raw)
        if not self._has_begun:
            self._has_begun = True
            yield self._chunk({"role": "assistant", "content": ""})
        if isinstance(raw.get("usage"), Mapping):
            self._usage = raw["usage"]
        if isinstance(raw.get("metrics"), Mapping) and _is_finite(raw["metrics"]):
            self._metrics = raw["metrics"]
        for choice in choices:
            delta = choice.get("delta") if isinstance(choice, Mapping) else None
            if not isinstance(delta, Mapping) or choice.get("index", 0) != 0:
                raise self._garbage(raw)
            yield from self._read(delta, choice.get("logprobs"), raw)
            self._reason = choice.get("finish_reason") or self._reason

    def end(self) -> Iterator[Chunk]:
        """Calls, the end, and what it took. Raises: ArmError for an answer that has no end, or calls that are none."""
        if not self._has_begun:
            raise ArmError("garbage", f"{self._arm} answered with no chunk")
        if self._reason is None:
            raise ArmError("broken", f"{self._arm} stopped in the middle of an answer")
        if self._calls:
            yield self._chunk({"tool_calls": [self._call(at) for at in sorted(self._calls)]})
        yield self._chunk({}, reason=self._reason)
        usage, told = self._account()
        yield {**self._head, "choices": [], "usage": usage, "metrics": {**self._metrics, **told}}

    def _read(self, delta: Mapping[str, Any], scores: Any, raw: Any) -> Iterator[Chunk]:
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        content, calls = delta.get("content"), delta.get("tool_calls") or ()
        if not isinstance(thought or "", str) or not isinstance(content or "", str):
            raise self._garbage(raw)
        for name, text in (("reasoning_content", thought), ("content", content)):
            if text:
                self._written += len(text.encode(errors="replace"))
                yield self._chunk({name: text}, scores=scores if name == "content" else None)
        try:
            for call in calls:
                self._gather(call)
        except (AttributeError, KeyError, TypeError) as error:
            raise self._garbage(raw) from error

    def _gather(self, call: Mapping[str, Any]) -> None:
        at = call.get("index", len(self._calls))
        if not isinstance(at, int):
            raise ArmError("garbage", f"{self._arm} called tools by index {at!r}")
        kept = self._calls.setdefault(at, {"id": "", "name": "", "arguments": ""})
        function = call.get("function") or {}
        pieces = {"id": call.get("id"), "name": function.get("name"), "arguments": function.get("arguments")}
        for name, piece in pieces.items():
            kept[name] += piece or ""
        self._written += len(((pieces["arguments"] or "") + (pieces["name"] or "")).encode(errors="replace"))

    def _call(self, at: int) -> dict[str, Any]:
        kept = self._calls[at]
        try:
            json.loads(kept["arguments"] or "{}")
        except (ValueError, RecursionError) as error:
            raise ArmError("garbage", f"{self._arm} called {kept['name']!r} with arguments that are no JSON") from error
        function = {"name": kept["name"], "arguments": kept["arguments"] or "{}"}
        id = kept["id"] or f"call_{secrets.token_hex(12)}"
        return {"index": at, "id": id, "type": "function", "function": function}

    def _account(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Usage in full, and a note where what was told cannot be true of what came."""
        hidden = _read(self._usage, "completion_tokens_details", "reasoning_tokens") or 0
        cached = _read(self._usage, "prompt_tokens_details", "cached_tokens") or 0
        told = {name: _read(self._usage, name) for name in ("prompt_tokens", "completion_tokens")}
        counted = {"prompt_tokens": self._prompt, "completion_tokens": math.ceil(self._written / _BYTES)}
        usage: dict[str, Any] = {}
        for name, number in told.items():
            visible = (number, number - hidden) if number is not None and name == "completion_tokens" else (number,)
            usage[name] = number if any(_is_credible(each, counted[name]) for each in visible) else counted[name]
        wrong = {
            name: {"told": told[name], "counted": counted[name]}
            for name in told
            if told[name] is not None and told[name] != usage[name]
        }
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        usage["prompt_tokens_details"] = {"cached_tokens": min(cached, usage["prompt_tokens"])}
        usage["completion_tokens_details"] = {"reasoning_tokens": min(hidden, usage["completion_tokens"])}
        return usage, {"usage_mismatch": wrong} if wrong else {}

    def _chunk(self, delta: Chunk, *, scores: Any = None, reason: str | None = None) -> Chunk:
        is_told = isinstance(scores, dict) and scores.get("content") and _is_finite(scores["content"])
        logprobs = {"content": scores["content"]} if is_told else None
        return {
            **self._head,
            "choices": [{"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}],
        }

    def _garbage(self, raw: Any) -> ArmError:
        return ArmError("garbage", f"{self._arm} sent {str(raw)[:80]!r}, which is no chunk of a chat")


def count_text(text: str) -> int:
    """Tokens that a text has, about."""
    return math.ceil(len(text.encode(errors="replace")) / _BYTES)


def _is_finite(told: Any) -> bool:
    """Whether it can be told on: what cannot be is NaN or infinite, which JSON knows not, though some write it."""
    try:
        json.dumps(told, allow_nan=False)
    except ValueError:
        return False
    return True


def _is_credible(told: int | None, counted: int) -> bool:
    return told is not None and counted / _DOUBT - _SLACK <= told <= counted * _DOUBT + _SLACK


def _read(told: Any, *path: str) -> int | None:
    """A number of tokens that stands somewhere in what was told, if one does."""
    for name in path:
        told = told.get(name) if isinstance(told, Mapping) else None
    return told if isinstance(told, int) and not isinstance(told, bool) and told >= 0 else None
