"""What one request asks of the decoders, checked at the edge; how it is carried out lives beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np

from mezzotint.decoding.sampler import SAMPLERS, Rule, Sampler, SamplerName
from mezzotint.types import DecoderName, DraftTail, GateName

DECODERS: tuple[DecoderName, ...] = get_args(DecoderName)
_TAILS: tuple[DraftTail, ...] = get_args(DraftTail)
_GATES: tuple[GateName, ...] = get_args(GateName)
_CANVAS: tuple[DecoderName, ...] = ("diffusion",)
_CAUSAL: tuple[DecoderName, ...] = ("ar", "verified", "mtp")
_HONOURED_BY: dict[str, tuple[DecoderName, ...]] = {  # what is missing here is honoured by all
    "sampler": _CANVAS,
    "steps": _CANVAS,
    "canvas_length": _CANVAS,
    "drop_after_end": _CANVAS,
    "gate": _CANVAS,
    "entropy_bound": _CANVAS,
    "threshold": _CANVAS,
    "editing_threshold": _CANVAS,
    "presence_penalty": _CAUSAL,
    "frequency_penalty": _CAUSAL,
    "repetition_penalty": _CAUSAL,
    "draft_tokens": ("verified", "mtp"),
    "draft_steps": ("verified",),
    "draft_tail": ("verified",),
}
_OWNERS: dict[str, Rule] = {
    "entropy_bound": "entropy_bound",
    "threshold": "refine",
    "editing_threshold": "refine",
}
_MOST_TOLD = 20  # likeliest tokens at a place
_COLDEST = 1e-6  # logits ÷ anything much smaller leave float32


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """Options of one request; None means the default of the sampler or the checkpoint.

    max_tokens: exact limit of output tokens, end of turn included.
    temperature: under diffusion a factor on the sampler's schedule (1 = as published, 0 = argmax proposals), else as
    usual. steps: budget of denoising steps a block. entropy_bound: nats, at least 0.
    canvas_length: of a canvas, at most the checkpoint's, which it is where None. drop_after_end: a canvas goes on
    without what stands behind an end of turn that was accepted and stood for two steps. Both change what tokens see.
    threshold, editing_threshold: probabilities in (0, 1], refine only.
    gate: what a block has to pass before it leaves: off; text: detectors and leftover doubt, which take no forward;
    causal: the surprise of the causal pass too, for which the last block takes an encode. See gate.
    top_k, top_p, min_p: filters of the tempered distribution; under diffusion of the sampler's, at T(step).
    thinking_budget: tokens inside thinking channels, all together, behind which the closing token is forced; None = any
    number. answer_reserve: a channel is closed while so many of max_tokens are left, one opened later at once. A
    channel that the prompt has opened is open; what stands in it there is not counted.
    min_tokens: none of so many first tokens ends the turn. logit_bias: id → number added to its logit; −∞ bars it.
    presence_penalty, frequency_penalty, repetition_penalty: see shape.penalise. Not under diffusion, whose tokens have
    no order in which they are written.
    draft_tokens: tokens that a round of verified or mtp drafts, fewer where fewer fit; draft_steps: denoising steps
    of a draft of verified, draft_tail: what a canvas keeps of the draft before it. None of them changes a token; where
    a number is None verified finds out as it goes, and mtp drafts 6.
    logprobs, prompt_logprobs: for each token of the answer, of the prompt, its log-probability under the causal pass,
    with so many of the likeliest, 0 to 20. Under diffusion the last block takes one more encode for them.
    seed: 0 to 2^64 − 1; None draws one and returns it in the receipt. ignore_eos: end tokens end nothing.
    Raises: ValueError naming option, value and remedy. Source: contract 3, 8.
    """

    decoder: DecoderName = "diffusion"
    sampler: SamplerName | None = None
    max_tokens: int = 256
    temperature: float = 1.0
    steps: int | None = None
    canvas_length: int | None = None
    drop_after_end: bool = False
    gate: GateName = "off"
    entropy_bound: float | None = None
    threshold: float | None = None
    editing_threshold: float | None = None
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    thinking_budget: int | None = None
    answer_reserve: int = 0
    min_tokens: int = 0
    logit_bias: Mapping[int, float] | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    draft_tokens: int | None = None
    draft_steps: int | None = None
    draft_tail: DraftTail = "tail+soft"
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    seed: int | None = None
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        for item in fields(self):  # numpy's numbers become Python's, which torch and JSON know
            value = getattr(self, item.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, item.name, value.item())
        require = self._require
        require("decoder", self.decoder in DECODERS, f"choose one of {', '.join(DECODERS)}")
        require("max_tokens", _is_whole(self.max_tokens, 1), "ask for a whole number from 1 up")
        fits = self.temperature == 0 or _is_number(self.temperature, _COLDEST, 100)
        require("temperature", fits, f"give 0 (argmax) or a number from {_COLDEST} to 100")
        fits = self.seed is None or _is_whole(self.seed, 0, 2**64 - 1)
        require("seed", fits, "give a whole number from 0 to 2^64 - 1")
        for name in ("ignore_eos", "drop_after_end"):
            require(name, isinstance(getattr(self, name), bool), "give True or False")
        told = "nothing is dropped behind an end that ends nothing: leave one of the two at False"
        require("drop_after_end", not (self.drop_after_end and self.ignore_eos), told)
        self._check_decoder()
        self._check_filters()
        self._check_shape()
        self._check_thinking()
        if self.decoder == "diffusion":
            self._check_owners()
            self._check_canvas()
        else:
            self._check_drafts()

    @property
    def bounds_thinking(self) -> bool:
        """Whether a thinking channel may have to be closed."""
        return self.thinking_budget is not None or self.answer_reserve > 0

    def resolve_sampler(self, defaults: Sampler = SAMPLERS["report"]) -> Sampler:
        """The sampler of this request, with its numbers; `defaults` where it names none.

        defaults: a checkpoint's own numbers; a named sampler of the same rule takes them too.
        Source: contract 9.
        """
        chosen = defaults if self.sampler is None else SAMPLERS[self.sampler]
        if chosen.rule == defaults.rule:
            chosen = chosen.with_numbers_of(defaults)
        given: dict[str, Any] = {
            "budget": self.steps,
            "entropy_bound": self.entropy_bound,
            "threshold": self.threshold,
            "editing_threshold": self.editing_threshold,
        }
        return replace(chosen, **{name: value for name, value in given.items() if value is not None})

    def _check_decoder(self) -> None:
        neutral = {item.name: item.default for item in fields(self)}
        for name, decoders in _HONOURED_BY.items():
            fits = self.decoder in decoders or getattr(self, name) == neutral[name]
            remedy = f"decoder {self.decoder!r} does not use it: leave it at {neutral[name]} or choose one of "
            self._require(name, fits, remedy + ", ".join(decoders))

    def _check_filters(self) -> None:
        fits = self.top_k is None or _is_whole(self.top_k, 1)
        self._require("top_k", fits, "give a whole number from 1 up, or None for no limit")
        self._require("top_p", _is_number(self.top_p, 0, 1) and self.top_p > 0, "it must lie in (0, 1]")
        self._require("min_p", _is_number(self.min_p, 0, 1), "it must lie in [0, 1]")

    def _check_shape(self) -> None:
        for name in ("logprobs", "prompt_logprobs"):
            fits = getattr(self, name) is None or _is_whole(getattr(self, name), 0, _MOST_TOLD)
            self._require(name, fits, f"give a whole number from 0 to {_MOST_TOLD}, or None for none at all")
        fits = _is_whole(self.min_tokens, 0) and self.min_tokens <= self.max_tokens
        self._require("min_tokens", fits, f"give a whole number from 0 to max_tokens, which is {self.max_tokens}")
        bias = {} if self.logit_bias is None else self.logit_bias
        self._require("logit_bias", isinstance(bias, Mapping), "give a mapping of token ids to numbers, or None")
        for id, value in bias.items():
            fits = _is_whole(id, 0) and (value == -inf or _is_number(value, -100, 100))
            self._require("logit_bias", fits, "map token ids to numbers from -100 to 100, or to -inf to bar them")
        for name in ("presence_penalty", "frequency_penalty"):
            self._require(name, _is_number(getattr(self, name), -2, 2), "give a number from -2 to 2")
        fits = _is_number(self.repetition_penalty, 0, 10) and self.repetition_penalty > 0
        self._require("repetition_penalty", fits, "give a number above 0, at most 10; 1 changes nothing")

    def _check_thinking(self) -> None:
        fits = self.thinking_budget is None or _is_whole(self.thinking_budget, 0)
        self._require("thinking_budget", fits, "give a whole number of tokens from 0 up, or None for no limit")
        fits = _is_whole(self.answer_reserve, 0) and self.answer_reserve < self.max_tokens
        self._require("answer_reserve", fits, f"give a whole number from 0 up, below max_tokens {self.max_tokens}")

    def _check_drafts(self) -> None:
        for name in ("draft_tokens", "draft_steps"):
            value = getattr(self, name)
            self._require(name, value is None or _is_whole(value, 1), "give a whole number from 1 up, or None")
        self._require("draft_tail", self.draft_tail in _TAILS, f"choose one of {', '.join(_TAILS)}")

    def _check_owners(self) -> None:
        known = self.sampler is None or self.sampler in SAMPLERS
        self._require("sampler", known, f"choose one of {', '.join(SAMPLERS)}")
        own = self.sampler or "report"
        for name, rule in _OWNERS.items():
            fits = getattr(self, name) is None or SAMPLERS[own].rule == rule
            users = ", ".join(sampler.name for sampler in SAMPLERS.values() if sampler.rule == rule)
            self._require(name, fits, f"sampler {own!r} does not use it: leave it at None or choose one of {users}")

    def _check_canvas(self) -> None:
        if self.sampler == "refine":
            remedy = "sampler 'refine' always proposes the argmax: leave it at 1 or choose another sampler"
            self._require("temperature", self.temperature in (0, 1), remedy)
        fits = self.steps is None or _is_whole(self.steps, 1)
        self._require("steps", fits, "a canvas needs a whole number of denoising steps from 1 up")
        fits = self.canvas_length is None or _is_whole(self.canvas_length, 1)
        self._require("canvas_length", fits, "give a whole number of tokens from 1 up, or None for the checkpoint's")
        self._require("gate", self.gate in _GATES, f"choose one of {', '.join(_GATES)}")
        fits = self.entropy_bound is None or _is_number(self.entropy_bound, 0)
        self._require("entropy_bound", fits, "give a number of nats from 0 up")
        for name in ("threshold", "editing_threshold"):
            value = getattr(self, name)
            fits = value is None or (_is_number(value, 0, 1) and value > 0)
            self._require(name, fits, "it is a probability in (0, 1]")

    def _require(self, name: str, fits: bool, remedy: str) -> None:
        if not fits:
            raise ValueError(f"{name} is {getattr(self, name)!r}; {remedy}")


def _is_whole(value: object, low: int, high: int | None = None) -> bool:
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return low <= int(value) and (high is None or int(value) <= high)


def _is_number(value: object, low: float, high: float = inf) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return isfinite(value) and low <= float(value) <= high
