"""What answers took, as `metrics.diffusion` tells it, on the wire and on the command line; types say what counts."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from mezzotint.types import Receipt, tokens_per_forward


def tell_work(receipts: Sequence[Receipt]) -> dict[str, Any]:
    """The work of answers to one request, by one decoder: of several their sums. The fields are there for each decoder.

    break_even: the acceptance from which a draft of `verified` pays, see Receipt; None for other decoders.
    An entropy bound that bounds nothing is None: JSON knows no infinity.
    Source: contract 1, 9.
    """
    first, bound = receipts[0], receipts[0].entropy_bound
    forwards, written = sum(each.forwards for each in receipts), sum(each.output_tokens for each in receipts)
    mended = [told for each in receipts for told in each.interventions]
    return {
        "semantics": "canvas" if first.decoder == "diffusion" else "token",
        "canvas": first.canvas_length,
        "blocks": sum(len(each.denoise_steps) for each in receipts),
        "denoise_steps": [steps for each in receipts for steps in each.denoise_steps],
        "block_tokens": [tokens for each in receipts for tokens in each.block_tokens],
        "forwards": forwards,
        "tokens_per_forward": round(tokens_per_forward(written, forwards), 3),
        "step_budget": first.step_budget,
        "budget_hits": sum(each.budget_hits for each in receipts),
        "sampler": first.sampler,
        "entropy_bound": bound if bound is not None and isfinite(bound) else None,
        "drafted_tokens": sum(each.drafted_tokens for each in receipts),
        "accepted_tokens": sum(each.accepted_tokens for each in receipts),
        "draft_forwards": sum(each.draft_forwards for each in receipts),
        "break_even": None if first.break_even is None else round(first.break_even, 3),
        "overridden_tokens": sum(each.overridden_tokens for each in receipts),
        "forced_tokens": sum(each.forced_tokens for each in receipts),
        "interventions": [{**told._asdict(), "kinds": list(told.kinds)} for told in mended],
    }
