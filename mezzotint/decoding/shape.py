"""What a request does to the model's beliefs before anything is drawn: bias, bars, penalties, filters.

logits ─► + bias, − penalties, ends barred so far ─► (a grammar's mask) ─► ÷ temperature ─► top_k, top_p, min_p
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mezzotint.decoding.limits import Limits
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.propose import keep_likely


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a canvas's beliefs become, for a request that shapes them.

    bias: [V], added to logits; −∞ bars an id. barred_ids: those that may not stand at the first `barred` offsets.
    """

    bias: Tensor | None
    barred_ids: tuple[int, ...]
    barred: int
    top_k: int | None
    top_p: float
    min_p: float

    def adjust(self, logits: Tensor) -> Tensor:
        """Logits [C, V] with what is added to them."""
        adjusted = logits if self.bias is None else logits + self.bias.to(logits)
        if self.barred > 0:
            adjusted = adjusted.clone()
            adjusted[: self.barred, list(self.barred_ids)] = -torch.inf
        return adjusted

    def narrow(self, logits: Tensor, temperature: float) -> Tensor:
        """Adjusted logits [C, V] with −∞ where the filters, at `temperature`, let nothing stand; see keep_likely.

        What is left has a finite entropy, in which nothing counts that was taken away; so a canvas converges as if the
        vocabulary were smaller.
        """
        if self.top_k is None and self.top_p == 1 and self.min_p == 0:
            return logits
        p = (logits.double() / temperature).softmax(-1)
        return logits.masked_fill(~keep_likely(p, self.top_k, self.top_p, self.min_p), -torch.inf)


def shape_canvas(params: SamplingParams, limits: Limits, settled: int) -> Shape | None:
    """How a request shapes a canvas behind `settled` tokens of its answer; None where it leaves it alone."""
    barred = params.min_tokens - settled
    if not barred > 0 and not params.logit_bias and params.top_k is None and params.top_p == 1 and params.min_p == 0:
        return None
    return Shape(
        bias=make_bias(params, limits.vocab_size),
        barred_ids=tuple(limits.end_ids),
        barred=max(0, barred),
        top_k=params.top_k,
        top_p=params.top_p,
        min_p=params.min_p,
    )


def make_bias(params: SamplingParams, vocab_size: int) -> Tensor | None:
    """[V] float64 to add to logits; None where a request adds nothing. Raises: ValueError for an id that is none."""
    if not params.logit_bias:
        return None
    bias = torch.zeros(vocab_size, dtype=torch.float64)
    for id, value in params.logit_bias.items():
        if not 0 <= id < vocab_size:
            raise ValueError(f"logit_bias names token id {id}; ids go from 0 to {vocab_size - 1}")
        bias[id] = value
    return bias


def penalise(logits: Tensor, params: SamplingParams, prompt: Sequence[int], answer: Sequence[int]) -> Tensor:
    """Logits [V] less what tokens cost that were written before.

    Those of the answer cost presence_penalty once and frequency_penalty each time; those of prompt or answer have
    logits above 0 divided by repetition_penalty, and others multiplied with it, first.
    Source: OpenAI's formula; arXiv:1909.05858 for repetition.
    """
    penalised = logits.clone()
    if params.repetition_penalty != 1 and (seen := list({*prompt, *answer})):
        own = penalised[seen]
        penalised[seen] = torch.where(own > 0, own / params.repetition_penalty, own * params.repetition_penalty)
    for id, number in Counter(answer).items():
        penalised[id] -= params.presence_penalty + params.frequency_penalty * number
    return penalised
