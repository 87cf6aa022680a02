"""Blanks of a document filled, canvas by canvas from the left; what a canvas holds lives in document beside it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import NamedTuple, get_args

import torch

from mezzotint.decoding.candidates import MOST_ROWS
from mezzotint.decoding.filling import Filling, Lengths
from mezzotint.decoding.infill import Canvas, fill_canvas
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.program import Block, Finished, Prefilled
from mezzotint.decoding.random import SeededCanvas
from mezzotint.decoding.receipt import write_receipt
from mezzotint.decoding.shape import shape_canvas
from mezzotint.llm.checkpoint import Checkpoint
from mezzotint.llm.document import Sheet, Unfinished
from mezzotint.llm.entry import Asked, accept, check_memory
from mezzotint.llm.rows import Rows
from mezzotint.text.document import Blank, Parts, take_apart
from mezzotint.types import FinishReason, Receipt

# What says something of a whole answer, of its end or of its thoughts, and nothing of a blank.
_UNUSED = (
    "gate",
    "drop_after_end",
    "thinking_budget",
    "answer_reserve",
    "min_tokens",
    "logprobs",
    "prompt_logprobs",
    "ignore_eos",
)


class Middle(NamedTuple):
    """What fills one blank. finish_reason: length where it took all the tokens that it might have.

    tokens: how many it took, with those that also hold some of the text beside it.
    """

    text: str
    tokens: int
    finish_reason: FinishReason


@dataclass(frozen=True, kw_only=True)
class Infilled:
    """A document without blanks: what was given, unchanged, with the middles between."""

    text: str
    middles: tuple[Middle, ...]
    receipt: Receipt


class _Spent(NamedTuple):
    """What the canvases so far took: their rows, causal forwards, and the seconds of those of prompts."""

    blocks: list[Block]
    encodes: int
    prefill_s: float


@torch.inference_mode()
def infill(
    document: Sequence[str | Blank], params: SamplingParams, lengths: Lengths, checkpoint: Checkpoint, *, raw: bool
) -> Infilled:
    """See LLM.infill."""
    parts = take_apart(document)
    _check(params, lengths, parts, checkpoint, raw=raw)
    width = checkpoint.limits.of(params).canvas_length
    most = _share_out(parts.blanks, params, width, lengths)
    unfinished = Unfinished(parts, most, width, checkpoint, raw=raw)
    sheet = unfinished.lay()
    asked = _accept(sheet, most, parts, params, checkpoint)
    extra = _count_rows(lengths) * width
    check_memory(asked._replace(positions=asked.positions + extra), checkpoint)
    return _run(unfinished, sheet, parts, asked, lengths, checkpoint)


def _run(
    unfinished: Unfinished, sheet: Sheet, parts: Parts, asked: Asked, lengths: Lengths, checkpoint: Checkpoint
) -> Infilled:
    """Fill one canvas after another, `sheet` the first."""
    width = checkpoint.limits.of(asked.params).canvas_length
    rows = Rows(checkpoint.model, asked.positions, _count_rows(lengths), width)
    spent = _Spent([], 0, 0.0)
    started, prompt_tokens = time.perf_counter(), len(sheet.prompt)
    for number in count():
        how = _choose_how(asked, lengths, number, checkpoint, is_last=sheet.is_last)
        canvas, spent = _fill(sheet, how, rows, spent)
        spent.blocks.append(Block(number, unfinished.take(sheet, canvas.filled), canvas.steps))
        if unfinished.is_done:
            break
        sheet = unfinished.lay()
    finished = Finished(unfinished.reasons[-1], encodes=spent.encodes - 1)  # the first is the prompt's
    receipt = write_receipt(
        prompt_tokens,
        spent.blocks,
        finished,
        asked.params,
        checkpoint.sampler(asked.params),
        asked.seed,
        width,
    )
    took = time.perf_counter() - started - spent.prefill_s
    told = zip(unfinished.middles, unfinished.tokens, unfinished.reasons, strict=True)
    return Infilled(
        text=parts.join(unfinished.middles),
        middles=tuple(Middle(*one) for one in told),
        receipt=replace(receipt, prefill_s=spent.prefill_s, generation_s=took),
    )


def _fill(sheet: Sheet, how: Filling, rows: Rows, spent: _Spent) -> tuple[Canvas, _Spent]:
    """Fill one canvas. Returns: it, and what has been spent by now; the canvas's own steps are not told there yet."""
    blocks, encodes, prefill_s = spent
    started, held = time.perf_counter(), rows.hold(sheet.prompt)
    for event in rows.run(fill_canvas(sheet.prompt, held, sheet.gaps, sheet.sizes, how)):
        match event:
            case Prefilled():
                prefill_s += time.perf_counter() - started
            case Block():
                blocks.append(event)
            case Canvas():
                return event, _Spent(blocks, encodes + 1 + event.encodes, prefill_s)
    raise AssertionError("a canvas is told at last")


def _choose_how(asked: Asked, lengths: Lengths, number: int, checkpoint: Checkpoint, *, is_last: bool) -> Filling:
    """How canvas `number` is denoised."""
    params, limits, config = asked.params, checkpoint.limits.of(asked.params), checkpoint.model.config
    assert checkpoint.tokenizer is not None
    return Filling(
        lengths=lengths,
        sampler=checkpoint.sampler(params),
        temperature=params.temperature,
        randomness=lambda attempt: SeededCanvas(
            seed=asked.seed,
            block=number,
            attempt=attempt,
            width=limits.canvas_length,
            vocab_size=limits.vocab_size,
        ),
        limits=limits,
        shape=shape_canvas(params, limits, 0),
        surplus=frozenset({config.pad_id, *limits.end_ids, *checkpoint.tokenizer.control_ids}),
        fill_id=config.eos_ids[0] if is_last else None,
    )


def _check(params: SamplingParams, lengths: Lengths, parts: Parts, checkpoint: Checkpoint, *, raw: bool) -> None:
    """Refuse what has no meaning for blanks, or not for this checkpoint. Raises: ValueError."""
    if params.decoder != "diffusion":
        told = f"decoder is {params.decoder!r}, which sees only what stands before a blank"
        raise ValueError(f"{told}: use 'diffusion', or end the text at the blank and generate")
    if lengths not in get_args(Lengths):
        raise ValueError(f"lengths is {lengths!r}; choose one of {', '.join(get_args(Lengths))}")
    for item in fields(params):
        if item.name in _UNUSED and (value := getattr(params, item.name)) != item.default:
            raise ValueError(f"{item.name} is {value!r}, which blanks do not use; leave it at {item.default!r}")
    if checkpoint.tokenizer is None:
        raise ValueError(f"{checkpoint.path} has no tokenizer.json, and a document is text; add the file")
    if raw:
        for number, blank in enumerate(parts.blanks, 1):
            if blank.hint is not None:
                told = f"blank {number} has a hint, which only a prompt can tell, and there is no chat template in use"
                raise ValueError(f"{told}; drop the hint, or use an instruct checkpoint without raw")


def _share_out(blanks: Sequence[Blank], params: SamplingParams, width: int, lengths: Lengths) -> list[int]:
    """Tokens that each blank may have. Raises: ValueError for more candidate lengths than a canvas has room for."""
    shared = sum(blank.max_tokens is None for blank in blanks)
    widest = width if lengths == "surplus" else max(1, width // 2)
    share = min(widest, max(1, width * 3 // 4 // shared)) if shared else 0
    most = [min(params.max_tokens, share) if blank.max_tokens is None else blank.max_tokens for blank in blanks]
    if lengths == "candidates" and max(most) > widest:
        told = f"a blank may have {max(most)} tokens, but lengths 'candidates' needs it in one canvas of {width}"
        raise ValueError(f"{told}: allow at most {widest}, or take 'surplus'")
    return most


def _accept(sheet: Sheet, most: Sequence[int], parts: Parts, params: SamplingParams, checkpoint: Checkpoint) -> Asked:
    """Check that the first prompt and all that follows fit, before any work. Raises: ValueError as entry.accept."""
    assert checkpoint.tokenizer is not None
    need = width = checkpoint.limits.of(params).canvas_length
    if not sheet.is_last or sheet.sizes[0] < most[0]:  # then middles and the text between them become prompt
        need += sum(most) + sum(len(checkpoint.tokenizer.encode_text(text)) for text in parts.texts[1:-1]) + width
    return accept(sheet.prompt, replace(params, max_tokens=need), checkpoint)


def _count_rows(lengths: Lengths) -> int:
    """Rows beside the context's own canvas."""
    return MOST_ROWS if lengths == "candidates" else 0
