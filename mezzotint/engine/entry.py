"""What a request must satisfy before an engine takes it; whether memory could ever hold it, room says."""

from mezzotint.decoding.generate import Limits, check_pins, required_positions
from mezzotint.engine.request import Request
from mezzotint.model.config import ModelConfig


def check_entry(request: Request, limits: Limits, model: ModelConfig, *, has_drafter: bool) -> int:
    """Refuse a request that this model cannot answer.

    Returns: the positions that it may touch. Raises: ValueError naming what is wrong, its value and the remedy.
    """
    params = request.params
    if request.deadline_s is not None and not request.deadline_s > 0:
        raise ValueError(f"deadline_s is {request.deadline_s}; give seconds above 0, or None")
    if params.decoder == "mtp" and not has_drafter:
        raise ValueError("decoder is 'mtp', but this checkpoint came without a drafter; load one or use 'verified'")
    if params.decoder in ("diffusion", "verified") and model.family != "diffusion_gemma":
        raise ValueError(f"decoder is {params.decoder!r}, but a {model.family} checkpoint has no canvas; use 'ar'")
    if request.pins and params.decoder != "diffusion":
        raise ValueError(f"pins are given, but decoder {params.decoder!r} would not keep them; use 'diffusion'")
    for token in request.prompt:  # on a device, an id without an embedding would end every request
        if not 0 <= token < limits.vocab_size:
            raise ValueError(f"the prompt has token id {token}; ids go from 0 to {limits.vocab_size - 1}")
    positions = required_positions(len(request.prompt), params, limits)
    check_pins(request.pins, blocks=(positions - len(request.prompt)) // limits.canvas_length, limits=limits)
    return positions


def verified_together(request: Request) -> int:
    """The most tokens that a verification of this request encodes at once; 0 where it names no number."""
    asked = request.params.draft_tokens
    return 0 if asked is None else min(asked, request.params.max_tokens) + 1
