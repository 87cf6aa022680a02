"""POST /v1/completions: text behind text, streamed or whole; a whole reply is its stream, folded."""

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import aclosing
from typing import Any

from mezzotint.llm.entry import Asked
from mezzotint.llm.events import BlockEvent, Completion, DraftEvent, Event
from mezzotint.server.account import Clock, tell_metrics
from mezzotint.server.backend import Backend
from mezzotint.server.chat import Chunk, Head, begin, spread_seeds, tell_draft
from mezzotint.server.job import Job
from mezzotint.server.merge import merge
from mezzotint.server.talk import spell
from mezzotint.text.document import Blank
from mezzotint.text.tokenizer import Tokenizer
from mezzotint.types import Receipt, Score


def head_of(model: str) -> Head:
    """The head of a completion's chunks."""
    return begin("cmpl", model, "text_completion")


async def stream_completions(
    backend: Backend, asked: Sequence[Asked], job: Job, head: Head, clock: Clock, *, usage: bool, echo: bool
) -> AsyncGenerator[Chunk, None]:
    """Chunks of the answers to several prompts, n to each; the choice's index counts prompts, then answers.

    echo: whether each answer begins with its prompt. usage: whether a last chunk without choices tells the usage.
    Raises: ApiError.
    """
    tokenizer, each = backend.tokenizer, [one for prompt in asked for one in spread_seeds(prompt, job.n)]
    offsets = [0] * len(each)
    ended: dict[int, Completion] = {}
    with backend.admit(len(each)):
        yield head.chunk(choices=[])
        streams: list[AsyncGenerator[Event, None]] = [backend.answer(one, deadline_s=job.deadline_s) for one in each]
        async with aclosing(merge(streams)) as events:
            async for index, event in events:
                match event:
                    case DraftEvent():
                        if job.drafts:
                            yield head.chunk(choices=[_choice(index, "")], x_diffusion=tell_draft(event, tokenizer))
                    case BlockEvent():
                        clock.note_first()
                        scores = _tell(event.token_ids, event.scores, tokenizer, offsets[index])
                        offsets[index] += len(event.text)
                        if event.text or scores:
                            yield head.chunk(choices=[_choice(index, event.text, scores)])
                    case Completion():
                        ended[index] = event
                        last = _choice(index, "", reason=event.finish_reason, stop=event.stop_reason)
                        if echo:
                            yield head.chunk(choices=[_echo(index, each[index].ids, event, tokenizer)], x_echo=True)
                        if len(ended) < len(each):
                            yield head.chunk(choices=[last])
    answers = [ended[index] for index in range(len(each))]
    costs = {"metrics": tell_metrics([each.receipt for each in answers], clock, backend.name)}
    yield head.chunk(choices=[last], **({} if usage else costs))
    if usage:
        yield head.chunk(choices=[], usage=_usage([each.receipt for each in answers], job.n), **costs)


async def stream_suffix(
    backend: Backend, prompt: str, suffix: str, job: Job, head: Head, clock: Clock, *, usage: bool
) -> AsyncGenerator[Chunk, None]:
    """Chunks of what fills the blank between prompt and suffix, which comes in one piece. Raises: ApiError."""
    with backend.admit():
        yield head.chunk(choices=[])
        filled = await backend.infill([prompt, Blank(), suffix], job, "surplus", raw=True)
    clock.note_first()
    [middle] = filled.middles
    yield head.chunk(choices=[_choice(0, middle.text)])
    costs = {"metrics": tell_metrics([filled.receipt], clock, backend.name)}
    yield head.chunk(choices=[_choice(0, "", reason=middle.finish_reason)], **({} if usage else costs))
    if usage:
        yield head.chunk(choices=[], usage=_usage([filled.receipt], 1), **costs)


async def fold_completions(chunks: AsyncIterable[Chunk]) -> dict[str, Any]:
    """The whole reply of a stream."""
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    async for chunk in chunks:
        is_echo = chunk.pop("x_echo", False)
        for choice in chunk["choices"]:
            folded = choices.setdefault(choice["index"], _choice(choice["index"], ""))
            pieces = (choice["text"], folded["text"]) if is_echo else (folded["text"], choice["text"])
            folded["text"] = "".join(pieces)
            folded["logprobs"] = _join(folded["logprobs"], choice["logprobs"], is_echo=is_echo)
            folded.update({key: choice[key] for key in ("finish_reason", "stop_reason") if choice.get(key)})
        whole.update({key: value for key, value in chunk.items() if key not in ("choices", "x_diffusion")})
    whole["choices"] = [choices[index] for index in sorted(choices)]
    return whole


def _choice(
    index: int, text: str, scores: dict[str, Any] | None = None, *, reason: str | None = None, stop: str | None = None
) -> dict[str, Any]:
    told = {"index": index, "text": text, "logprobs": scores, "finish_reason": reason}
    return told if stop is None else {**told, "stop_reason": stop}


def _echo(index: int, ids: Sequence[int], event: Completion, tokenizer: Tokenizer) -> dict[str, Any]:
    """The prompt as text, behind its <bos>, with its scores where they were asked for."""
    shown = [id for id in ids if id not in tokenizer.control_ids]
    kept = None
    if event.prompt_scores is not None:
        pairs = zip(ids, event.prompt_scores, strict=True)
        kept = [score for id, score in pairs if id not in tokenizer.control_ids]
    return _choice(index, tokenizer.decode(shown), None if kept is None else _tell(shown, kept, tokenizer, 0))


def _tell(
    ids: Sequence[int], scores: Sequence[Score | None] | None, tokenizer: Tokenizer, offset: int
) -> dict[str, Any] | None:
    """Log-probabilities in the older form; of a prompt's first token there are none."""
    if scores is None:
        return None
    told: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    for id, score in zip(ids, scores, strict=True):
        if id in tokenizer.control_ids:
            continue
        text = spell(id, tokenizer).decode(errors="replace")
        told["tokens"].append(text)
        told["token_logprobs"].append(None if score is None else max(score.logprob, -9999.0))
        told["top_logprobs"].append(None if score is None else _top(score, tokenizer))
        told["text_offset"].append(offset)
        offset += len(text)
    return told


def _top(score: Score, tokenizer: Tokenizer) -> dict[str, float]:
    told: dict[str, float] = {}
    for id, logprob in score.top:  # the likeliest first: of two that read alike it stays
        told.setdefault(spell(id, tokenizer).decode(errors="replace"), max(logprob, -9999.0))
    return told


def _join(first: dict[str, Any] | None, second: dict[str, Any] | None, *, is_echo: bool) -> dict[str, Any] | None:
    if first is None or second is None:
        return first or second
    if is_echo:
        shift = sum(map(len, second["tokens"]))
        first = {**first, "text_offset": [offset + shift for offset in first["text_offset"]]}
        first, second = second, first
    return {key: [*first[key], *second[key]] for key in first}


def _usage(receipts: Sequence[Receipt], n: int) -> dict[str, Any]:
    prompt = sum(each.prompt_tokens for each in receipts[::n])
    written = sum(each.output_tokens for each in receipts)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {"cached_tokens": sum(each.cached_tokens for each in receipts[::n])},
    }
