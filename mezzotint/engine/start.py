"""The program of a request, by its decoder; programs themselves live in decoding."""

from mezzotint.decoding.generate import Limits, denoise_blocks, draw_tokens, seeded_blocks
from mezzotint.decoding.policy import SMALL_MODEL
from mezzotint.decoding.program import Program
from mezzotint.decoding.sampler import Sampler
from mezzotint.decoding.verify import guess_blocks, verify_blocks
from mezzotint.engine.request import Request


def start_program(request: Request, seed: int, limits: Limits, defaults: Sampler) -> Program:
    """Begin the program that answers a request. Returns: it, before its first need."""
    prompt, params = list(request.prompt), request.params
    if params.decoder == "ar":
        return draw_tokens(prompt, params, seed, limits)
    if params.decoder == "verified":
        return verify_blocks(prompt, params, seed, limits, defaults=defaults, costs=SMALL_MODEL)
    if params.decoder == "mtp":
        return guess_blocks(prompt, params, seed, limits)
    randomness = seeded_blocks(seed, limits)
    return denoise_blocks(prompt, params, randomness, limits, defaults=defaults, pins=request.pins)
