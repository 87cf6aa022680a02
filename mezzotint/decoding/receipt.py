"""What a request cost in tokens and forwards, from what its program told; times are whoever ran it's."""

from collections.abc import Sequence

from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.policy import MOST_STEPS
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
) -> Receipt:
    """The receipt of a request. sampler: the resolved one of whoever denoises, else None. Returns: it, times 0."""
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
        denoise_steps=tuple(block.steps for block in blocks) if is_canvas else (),
        block_tokens=tuple(len(block.tokens) for block in blocks) if is_canvas else (),
        step_budget=step_budget(params, sampler),
        canvas_length=canvas_length if is_canvas else 0,
        entropy_bound=sampler.entropy_bound if sampler is not None and bounded else None,
    )


def step_budget(params: SamplingParams, sampler: Sampler | None) -> int:
    """Denoising steps that a block, or a draft of verified, may take; 0 where nothing denoises (sampler is None)."""
    if sampler is None:
        return 0
    return params.draft_steps or MOST_STEPS if params.decoder == "verified" else sampler.budget
