"""What a request must satisfy before an engine takes it; whether memory could ever hold it, room says."""

from mezzotint.decoding.conflicts import check_conflicts
from mezzotint.decoding.limits import Limits, check_pins, required_positions
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
    is_constrained, is_stopped = request.constraint is not None, request.stopper is not None
    if is_constrained and request.pins:
        raise ValueError("pins are given together with a constraint, which pins itself; give one of the two")
    check_conflicts(
        params,
        limits,
        is_constrained=is_constrained,
        is_stopped=is_stopped,
        is_pinned=bool(request.pins),
        is_inspected=request.inspector is not None,
    )
    positions = required_positions(len(request.prompt), params, limits, is_constrained=is_constrained)
    check_pins(request.pins, blocks=(positions - len(request.prompt)) // limits.canvas_length, limits=limits)
    return positions


def find_widest(request: Request, limits: Limits) -> int:
    """The most positions behind its context that a request uses at once: a token, a canvas, drafts being verified."""
    params = request.params
    if params.decoder == "ar":
        return 1
    if params.draft_tokens is None:
        return limits.canvas_length
    return min(params.draft_tokens, params.max_tokens) + 1
