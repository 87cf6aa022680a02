"""What a request cost in tokens and forwards, from what its program told; times are whoever ran it's."""

from collections.abc import Sequence

from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.policy import MOST_STEPS, Costs, Policy
from mezzotint.decoding.program import Block, Finished
from mezzotint.decoding.sampler import Sampler
from mezzotint.types import Receipt


def write_receipt(
    prompt_tokens: int,
    blocks: Sequence[Block],
    finished: Finished,
    params: SamplingParams,
    sampler: Sampler | None,
    seed: int,
    canvas_length: int,
    costs: Costs | None = None,
) -> Receipt:
    """The receipt of a request. Returns: it, times 0.

    sampler: the resolved one of whoever denoises, else None. costs: what `verified` weighed, else None.
    """
    is_canvas = sampler is not None
    bounded = sampler is not None and sampler.rule == "entropy_bound"
    return Receipt(
        decoder=params.decoder,
        sampler=sampler.name if sampler is not None else None,
        seed=seed,
        prompt_tokens=prompt_tokens,
        output_tokens=sum(len(block.tokens) for block in blocks),
        encodes=finished.encodes,
        drafted_tokens=finished.drafted,
        accepted_tokens=finished.accepted,
        draft_forwards=finished.guesses,
        overridden_tokens=finished.overridden,
        forced_tokens=finished.forced,
        interventions=finished.interventions,
        denoise_steps=tuple(block.steps for block in blocks) if is_canvas else (),
        block_tokens=tuple(len(block.tokens) for block in blocks) if is_canvas else (),
        step_budget=step_budget(params, sampler),
        canvas_length=canvas_length if is_canvas else 0,
        break_even=None if costs is None else _break_even(params, costs, canvas_length),
        entropy_bound=sampler.entropy_bound if sampler is not None and bounded else None,
    )


def step_budget(params: SamplingParams, sampler: Sampler | None) -> int:
    """Denoising steps that a block, or a draft of verified, may take; 0 where nothing denoises (sampler is None)."""
    if sampler is None:
        return 0
    return params.draft_steps or MOST_STEPS if params.decoder == "verified" else sampler.budget


def _break_even(params: SamplingParams, costs: Costs, canvas_length: int) -> float:
    return Policy(
        costs=costs,
        longest=canvas_length,
        fixed_width=params.draft_tokens and params.draft_tokens + 1,
        fixed_steps=params.draft_steps,
    ).break_even
