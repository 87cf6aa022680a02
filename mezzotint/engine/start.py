"""The program of a request, by its decoder; programs themselves live in decoding."""

from collections.abc import Callable

from mezzotint.decoding.constrain import constrain_blocks
from mezzotint.decoding.gate import gate_blocks
from mezzotint.decoding.generate import denoise_blocks, draw_tokens, seeded_blocks
from mezzotint.decoding.guide import Guide
from mezzotint.decoding.limits import Limits
from mezzotint.decoding.policy import Costs
from mezzotint.decoding.program import Program
from mezzotint.decoding.sampler import Sampler
from mezzotint.decoding.verify import guess_blocks, verify_blocks
from mezzotint.engine.request import Request


def start_program(
    request: Request, seed: int, limits: Limits, defaults: Sampler, weigh: Callable[[], Costs]
) -> Program:
    """Begin the program that answers a request. weigh: see verify_blocks. Returns: it, before its first need."""
    prompt, params, limits = list(request.prompt), request.params, limits.of(request.params)
    if params.gate != "off":
        assert request.inspector is not None  # entry saw to it
        return gate_blocks(
            prompt,
            params,
            seed,
            limits,
            request.inspector,
            defaults=defaults,
            stopper=request.stopper,
            weigh=weigh,
            bounds=request.bounds,
        )
    if params.decoder == "diffusion" and request.constraint is None:
        randomness = seeded_blocks(seed, limits)
        return denoise_blocks(
            prompt, params, randomness, limits, defaults=defaults, pins=request.pins, stopper=request.stopper
        )
    guide = Guide(prompt, params, seed, limits, request.constraint, request.stopper)
    if params.decoder == "diffusion":
        return constrain_blocks(prompt, params, seeded_blocks(seed, limits), limits, guide, defaults=defaults)
    if params.decoder == "verified":
        return verify_blocks(prompt, params, seed, limits, guide, defaults=defaults, weigh=weigh)
    if params.decoder == "mtp":
        return guess_blocks(prompt, params, guide, limits)
    return draw_tokens(prompt, params, guide, limits)
