"""A receipt as objects, `usage` and `metrics`, and as one line; what is counted is said in types."""

from typing import Any

from mezzotint.decoding.work import tell_work
from mezzotint.types import Receipt


def usage(receipt: Receipt) -> dict[str, int]:
    """OpenAI's `usage`, in tokens."""
    prompt, output = receipt.prompt_tokens, receipt.output_tokens
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


def metrics(receipt: Receipt, first_text_s: float) -> dict[str, Any]:
    """The object `metrics`: milliseconds, and under `diffusion` the work, present for every decoder.

    first_text_s: seconds from the request to its first final tokens, prefill included. Nothing queues.
    generation_time_ms begins behind prefill; tokens_per_second is output ÷ (prefill + generation).
    Source: contract 1, 9.
    """
    total_s = receipt.prefill_s + receipt.generation_s
    return {
        "time_to_first_token_ms": _ms(first_text_s),
        "queue_time_ms": 0.0,
        "prefill_time_ms": _ms(receipt.prefill_s),
        "generation_time_ms": _ms(receipt.generation_s),
        "tokens_per_second": round(receipt.output_tokens / total_s, 1) if total_s else 0.0,
        "seed": receipt.seed,
        "diffusion": tell_work([receipt]),
    }


def receipt_line(receipt: Receipt) -> str:
    """The receipt on one line: blocks with their steps and budget, or drafts; tokens per forward, times and seed."""
    counts = f"{_count(receipt.output_tokens, 'token')}, {_count(receipt.forwards, 'forward')}"
    known = f" ({receipt.cached_tokens} of {receipt.prompt_tokens} tokens known)" if receipt.cached_tokens else ""
    times = f"prefill {_ms(receipt.prefill_s):.0f} ms{known} · generation {_ms(receipt.generation_s):.0f} ms"
    work = f"{receipt.decoder}{_means(receipt)} · {receipt.tokens_per_forward:.2f} tokens per forward"
    return f"— {work} ({counts}) · {times} · seed {receipt.seed}"


def _means(receipt: Receipt) -> str:
    """What only some decoders have: a canvas, or drafts."""
    if receipt.decoder == "diffusion":
        steps = " + ".join(map(str, receipt.denoise_steps))
        blocks = _count(len(receipt.denoise_steps), "block")
        return f" {receipt.sampler} · {blocks} · {steps} of {receipt.step_budget} steps{_mended(receipt)}"
    if receipt.decoder == "ar":
        return ""
    guesses = f" ({_count(receipt.draft_forwards, 'drafting forward')})" if receipt.draft_forwards else ""
    pays = "" if receipt.break_even is None else f", break-even {receipt.break_even:.0%}"
    return f" · {receipt.accepted_tokens} of {_count(receipt.drafted_tokens, 'draft')} accepted{pays}{guesses}"


def _mended(receipt: Receipt) -> str:
    """What a gate did, in the order in which it happened."""
    told = [f"block {each.block} {each.action} ({', '.join(each.kinds)})" for each in receipt.interventions]
    return f" · mended: {'; '.join(told)}" if told else ""


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
