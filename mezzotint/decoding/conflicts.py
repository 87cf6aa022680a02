"""What a request may not ask together, or not of this checkpoint; what SamplingParams sees alone is checked there."""

from math import inf

from mezzotint.decoding.limits import Limits
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.sampler import SAMPLERS
from mezzotint.decoding.shape import make_bias


def check_conflicts(
    params: SamplingParams,
    limits: Limits,
    *,
    is_constrained: bool = False,
    is_stopped: bool = False,
    is_pinned: bool = False,
    is_inspected: bool = False,
) -> None:
    """Refuse options that exclude each other, and what this vocabulary does not have.

    is_constrained: by a grammar. is_stopped: by a stopper, such as stop strings. is_pinned: canvases have given tokens.
    is_inspected: by an inspector, without which there is no gate.
    Raises: ValueError naming option, value and remedy.
    """
    make_bias(params, limits.vocab_size)
    if is_constrained:
        _check_constrained(params, is_stopped=is_stopped)
    if params.gate != "off":
        _check_gate(params, is_pinned=is_pinned, is_inspected=is_inspected)
    if is_stopped and params.min_tokens:
        told = f"min_tokens is {params.min_tokens}, but a stop string may come before so many"
        raise ValueError(f"{told}; leave min_tokens at 0, or the stop strings out")
    if params.bounds_thinking:
        _check_thinking(params, limits, is_pinned=is_pinned)


def _check_constrained(params: SamplingParams, *, is_stopped: bool) -> None:
    if is_stopped:
        raise ValueError("stop strings are given, but a grammar's answer has to be whole; leave one of the two out")
    if params.gate != "off":
        told = "but under a grammar each token is held to it before it leaves"
        raise ValueError(f"gate is {params.gate!r}, {told}; leave it at 'off'")
    if params.bounds_thinking:
        told = "but a grammar decides how long thoughts are"
        raise ValueError(f"{_name_bound(params)}, {told}; leave it out, or let the grammar ask for less")
    if params.ignore_eos:
        raise ValueError("ignore_eos is True, but a grammar decides where the answer ends; leave it at False")
    if params.drop_after_end:
        raise ValueError("drop_after_end is True, but under a grammar nothing is written behind an end; leave it out")
    if params.min_tokens:
        told = f"min_tokens is {params.min_tokens}, but a grammar decides where the answer ends"
        raise ValueError(f"{told}; leave it at 0, or let the grammar ask for more")
    if params.sampler is not None and SAMPLERS[params.sampler].rule != "entropy_bound":
        own = ", ".join(sampler.name for sampler in SAMPLERS.values() if sampler.rule == "entropy_bound")
        raise ValueError(f"sampler is {params.sampler!r}, which cannot follow a grammar; choose one of {own}")


def _check_gate(params: SamplingParams, *, is_pinned: bool, is_inspected: bool) -> None:
    if is_pinned:
        told = "but tokens are given, which a block that is trimmed would lose"
        raise ValueError(f"gate is {params.gate!r}, {told}; leave it at 'off', or the pins or ends out")
    if not is_inspected:
        told = "but nobody inspects the text, for which a checkpoint needs its tokenizer.json"
        raise ValueError(f"gate is {params.gate!r}, {told}; add it, or leave the gate at 'off'")


def _check_thinking(params: SamplingParams, limits: Limits, *, is_pinned: bool) -> None:
    bound, channel = _name_bound(params), limits.channel
    if channel is None:
        raise ValueError(f"{bound}, but this checkpoint has no thinking channel; leave it out")
    if (params.logit_bias or {}).get(channel.closing) == -inf:
        raise ValueError(f"{bound}, but logit_bias bars token id {channel.closing}, which closes thoughts; allow it")
    if is_pinned:
        raise ValueError(
            f"{bound}, but pins are given, which a canvas that is cut would lose; leave one of the two out"
        )


def _name_bound(params: SamplingParams) -> str:
    name = "answer_reserve" if params.thinking_budget is None else "thinking_budget"
    return f"{name} is {getattr(params, name)}"
