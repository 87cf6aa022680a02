"""What a request cost in tokens and forwards, from what its program told; times are whoever ran it's."""

from collections.abc import Sequence

from mezzotint.decoding.params import SamplingParams
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
    """The receipt of a request. sampler: the resolved one of whoever denoises, None for ar. Returns: it, times 0."""
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
        step_budget=sampler.budget if sampler is not None else 0,
        canvas_length=canvas_length if is_canvas else 0,
        entropy_bound=sampler.entropy_bound if sampler is not None and bounded else None,
    )
