"""What one request asks of the decoders, checked at the edge; how it is carried out lives beside it."""

from dataclasses import dataclass, fields, replace
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np

from mezzotint.decoding.sampler import SAMPLERS, Rule, Sampler, SamplerName
from mezzotint.types import DecoderName

_DECODERS: tuple[DecoderName, ...] = ("diffusion", "ar")
_CANVAS_ONLY = ("sampler", "steps", "entropy_bound", "threshold", "editing_threshold")
_AR_ONLY = {"top_k": None, "top_p": 1.0, "min_p": 0.0}
_OWNERS: dict[str, Rule] = {
    "entropy_bound": "entropy_bound",
    "threshold": "refine",
    "editing_threshold": "refine",
}
_COLDEST = 1e-6  # logits ÷ anything much smaller leave float32


@dataclass(frozen=True, kw_only=True)
class SamplingParams:
    """Options of one request; None means the default of the sampler or the checkpoint.

    max_tokens: exact limit of output tokens, end of turn included.
    temperature: a factor on the sampler's schedule (1 = as published, 0 = argmax proposals); ar's own.
    steps: budget of denoising steps a block. entropy_bound: nats, at least 0.
    threshold, editing_threshold: probabilities in (0, 1], refine only. top_k, top_p, min_p: ar only.
    seed: 0 to 2^64 − 1; None draws one and returns it in the receipt. ignore_eos: end tokens end nothing.
    Raises: ValueError naming option, value and remedy. Source: contract 3, 8.
    """

    decoder: DecoderName = "diffusion"
    sampler: SamplerName | None = None
    max_tokens: int = 256
    temperature: float = 1.0
    steps: int | None = None
    entropy_bound: float | None = None
    threshold: float | None = None
    editing_threshold: float | None = None
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int | None = None
    ignore_eos: bool = False

    def __post_init__(self) -> None:
        for item in fields(self):  # numpy's numbers become Python's, which torch and JSON know
            value = getattr(self, item.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, item.name, value.item())
        require = self._require
        require("decoder", self.decoder in _DECODERS, f"choose one of {', '.join(_DECODERS)}")
        require("max_tokens", _is_whole(self.max_tokens, 1), "ask for a whole number from 1 up")
        fits = self.temperature == 0 or _is_number(self.temperature, _COLDEST, 100)
        require("temperature", fits, f"give 0 (argmax) or a number from {_COLDEST} to 100")
        fits = self.seed is None or _is_whole(self.seed, 0, 2**64 - 1)
        require("seed", fits, "give a whole number from 0 to 2^64 - 1")
        require("ignore_eos", isinstance(self.ignore_eos, bool), "give True or False")
        if self.decoder == "ar":
            self._check_ar()
        else:
            self._check_owners()
            self._check_canvas()

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

    def _check_ar(self) -> None:
        for name in _CANVAS_ONLY:
            remedy = "decoder 'ar' has no canvas: leave it at None or use 'diffusion'"
            self._require(name, getattr(self, name) is None, remedy)
        fits = self.top_k is None or _is_whole(self.top_k, 1)
        self._require("top_k", fits, "give a whole number from 1 up, or None for no limit")
        self._require("top_p", _is_number(self.top_p, 0, 1) and self.top_p > 0, "it must lie in (0, 1]")
        self._require("min_p", _is_number(self.min_p, 0, 1), "it must lie in [0, 1]")

    def _check_owners(self) -> None:
        for name, neutral in _AR_ONLY.items():
            remedy = f"it means nothing on a canvas: leave it at {neutral} or use decoder 'ar'"
            self._require(name, getattr(self, name) == neutral, remedy)
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
