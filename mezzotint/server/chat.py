"""POST /v1/chat/completions: one answer or several, streamed or whole; a whole one is its stream, folded."""

import secrets
import time
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple

from mezzotint.decoding.thoughts import open_thoughts
from mezzotint.llm.entry import Asked
from mezzotint.llm.events import BlockEvent, Completion, DraftEvent, Event
from mezzotint.server.account import Clock, count_usage, tell_metrics
from mezzotint.server.backend import Backend
from mezzotint.server.job import Job
from mezzotint.server.merge import merge
from mezzotint.server.talk import Said, Talk, name_call, spell, tell_scores
from mezzotint.text.tokenizer import Tokenizer

Chunk = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Head:
    """What every chunk of one reply repeats."""

    id: str
    created: int
    model: str
    object: str

    def chunk(self, **more: Any) -> Chunk:
        """A chunk that says `more`."""
        return {"id": self.id, "object": self.object, "created": self.created, "model": self.model, **more}


def begin(prefix: str, model: str, object: str) -> Head:
    """A reply of its own."""
    return Head(id=f"{prefix}-{secrets.token_hex(12)}", created=int(time.time()), model=model, object=object)


def spread_seeds(asked: Asked, n: int) -> list[Asked]:
    """One prompt to be answered n times, each with a seed of its own: the first has the one that was asked for."""
    return [asked._replace(seed=(asked.seed + index) % 2**64) for index in range(n)]


async def run_answers(backend: Backend, asked: Asked, job: Job) -> AsyncGenerator[tuple[int, Event], None]:
    """The events of each answer, by its index. Raises: ApiError."""
    each = [backend.answer(one, deadline_s=job.deadline_s) for one in spread_seeds(asked, job.n)]
    async with aclosing(merge(each)) as events:
        async for event in events:
            yield event


async def stream_chat(
    backend: Backend, asked: Asked, job: Job, head: Head, clock: Clock, *, usage: bool
) -> AsyncGenerator[Chunk, None]:
    """Chunks of a chat's answers, in OpenAI's form; the first is given before any work, once there is room for it.

    usage: whether a last chunk without choices tells the usage. Raises: ApiError.
    """
    tokenizer, limits = backend.tokenizer, backend.checkpoint.limits
    opened = open_thoughts(asked.ids, limits)
    judge = None if job.judge is None else backend.compile(job.judge)
    talks = [Talk(asked, tokenizer, opened, judge) for _ in range(job.n)]
    ended: dict[int, Completion] = {}
    with backend.admit(job.n):
        for index in range(job.n):
            yield head.chunk(choices=[_choice(index, {"role": "assistant", "content": ""})])
        async with aclosing(run_answers(backend, asked, job)) as events:
            async for index, event in events:
                talk = talks[index]
                match event:
                    case DraftEvent():
                        told = tell_draft(event, tokenizer) if job.drafts else {}
                        if job.peeks and event.entropy and (event.block, event.step) == (0, 1):
                            told["first_entropy"] = sum(event.entropy) / len(event.entropy)
                        if told:
                            yield head.chunk(choices=[_choice(index, {})], x_diffusion=told)
                    case BlockEvent():
                        clock.note_first()
                        before = talk.calls
                        deltas = _deltas(talk.push(event), before)
                        scores = tell_scores(event, tokenizer)
                        for delta in deltas or [{}] * bool(scores):
                            yield head.chunk(choices=[_choice(index, delta, scores=scores)])
                            scores = []
                    case Completion():
                        before = talk.calls
                        for delta in _deltas(talk.flush(), before):
                            yield head.chunk(choices=[_choice(index, delta)])
                        ended[index] = event
                        reason = "tool_calls" if talk.calls else event.finish_reason
                        last = _choice(index, {}, reason=reason, stop=event.stop_reason)
                        if len(ended) < job.n:
                            yield head.chunk(choices=[last])
    answers = [ended[index] for index in range(job.n)]
    costs = {"metrics": tell_metrics([each.receipt for each in answers], clock, backend.name)}
    if any(talk.faults for talk in talks):
        costs["metrics"]["faults"] = [fault for talk in talks for fault in talk.faults]
    yield head.chunk(choices=[last], **({} if usage else costs))
    if usage:
        thoughts = sum(talk.thoughts for talk in talks)
        yield head.chunk(choices=[], usage=count_usage(answers, thoughts), **costs)


def tell_draft(event: DraftEvent, tokenizer: Tokenizer) -> dict[str, Any]:
    """What a canvas would say now, for whoever watches it; it is no content and may change.

    pieces: the text of each token, control tokens by name; bytes that are no character alone read as U+FFFD.
    """
    return {
        "block": event.block,
        "step": event.step,
        "step_budget": event.step_budget,
        "progress": f"denoising {event.step} of {event.step_budget}",
        "text": tokenizer.decode(event.token_ids, keep_control=True),
        "tokens": event.token_ids,
        "pieces": [spell(id, tokenizer).decode(errors="replace") for id in event.token_ids],
        "accepted": event.accepted,
        "entropy": event.entropy and [round(nats, 3) for nats in event.entropy],
    }


def _choice(
    index: int,
    delta: dict[str, Any],
    *,
    scores: Sequence[dict[str, Any]] = (),
    reason: str | None = None,
    stop: str | None = None,
) -> dict[str, Any]:
    told = {"index": index, "delta": delta, "logprobs": {"content": list(scores)} if scores else None}
    return {**told, "finish_reason": reason, **({} if stop is None else {"stop_reason": stop})}


def _deltas(said: Said, calls: int) -> list[dict[str, Any]]:
    """What was said, as deltas: thoughts, content, and calls, of which `calls` have been told."""
    deltas: list[dict[str, Any]] = []
    if said.reasoning:
        deltas.append({"reasoning_content": said.reasoning})
    if said.content:
        deltas.append({"content": said.content})
    if said.calls:
        told = [{"index": calls + at, **name_call(call)} for at, call in enumerate(said.calls)]
        deltas.append({"tool_calls": told})
    return deltas


class _Folded(NamedTuple):
    message: dict[str, Any]
    scores: list[dict[str, Any]]
    ended: dict[str, Any]


async def fold_chat(chunks: AsyncIterable[Chunk]) -> dict[str, Any]:
    """The whole reply of a stream: its pieces joined, and nothing that the stream does not say."""
    whole: dict[str, Any] = {}
    choices: dict[int, _Folded] = {}
    async for chunk in chunks:
        for choice in chunk["choices"]:
            empty = _Folded({"role": "assistant", "content": ""}, [], {})
            folded = choices.setdefault(choice["index"], empty)
            _fold_delta(folded.message, choice["delta"])
            folded.scores.extend((choice["logprobs"] or {}).get("content", ()))
            if choice["finish_reason"]:
                folded.ended.update({key: choice[key] for key in ("finish_reason", "stop_reason") if key in choice})
        whole.update({key: value for key, value in chunk.items() if key not in ("choices", "x_diffusion")})
    whole["object"] = "chat.completion"
    whole["choices"] = [_fold_choice(index, choices[index]) for index in sorted(choices)]
    return whole


def _fold_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for key in ("content", "reasoning_content"):
        if delta.get(key):
            message[key] = message.get(key, "") + delta[key]
    for call in delta.get("tool_calls", ()):
        told = {key: value for key, value in call.items() if key != "index"}
        message.setdefault("tool_calls", []).append(told)


def _fold_choice(index: int, folded: _Folded) -> dict[str, Any]:
    message = folded.message
    if "tool_calls" in message and not message["content"]:
        message["content"] = None
    scores = {"content": folded.scores, "refusal": None} if folded.scores else None
    return {"index": index, "message": {**message, "refusal": None}, "logprobs": scores, **folded.ended}


def head_of(asked_model: str) -> Head:
    """The head of a chat's chunks."""
    return begin("chatcmpl", asked_model, "chat.completion.chunk")
