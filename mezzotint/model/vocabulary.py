"""From hidden states to tokens and soft embeddings: the plain form; the pass in chunks is in sweep."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.model.device import is_awaited
from mezzotint.model.draw import place
from mezzotint.model.steady import read_steadily, terms_of
from mezzotint.model.sweep import Sweep
from mezzotint.types import Reading

_ROWS = 512  # of one sweep at most: more would cost memory and no longer gain speed


class Head(NamedTuple):
    """The tied embedding table [V, D], the scale of input embeddings, and the logit softcap (0 = none)."""

    weight: Tensor
    scale: float
    softcap: float


def full_logits(head: Head, hidden: Tensor) -> Tensor:
    """Softcapped logits [..., V] of hidden [..., D], float32 (float64 for float64 weights).

    The product is formed in the weights' dtype, the cap in float32 or wider.
    """
    raw = F.linear(hidden, head.weight)
    raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
    return head.softcap * torch.tanh(raw / head.softcap) if head.softcap else raw


def each_row(temperature: float | Tensor, rows: int) -> Tensor:
    """A temperature of each row, [N] float64 on the host. Raises: ValueError for so many of another number of rows."""
    if not isinstance(temperature, Tensor):
        return torch.full((rows,), temperature, dtype=torch.float64)
    if temperature.shape != (rows,):
        raise ValueError(f"{rows} rows were given temperatures {list(temperature.shape)}; give one, or one a row")
    return temperature.to("cpu", torch.float64).contiguous()


def read_logits(
    head: Head,
    logits: Tensor,
    *,
    temperature: float | Tensor,
    proposal_temperature: float | Tensor,
    uniforms: Tensor,
    with_soft: bool,
) -> Reading:
    """The slow form: everything from logits [N, V], −∞ for what may not be. See read_vocabulary for the arguments."""
    warm, drawn_at = (each_row(given, len(logits)) for given in (temperature, proposal_temperature))
    log_p = (logits / warm.to(logits)[:, None]).log_softmax(-1)
    argmax = logits.argmax(-1)
    entropy = torch.special.entr(log_p.exp()).sum(-1)
    proposal, own = argmax, log_p
    if bool(drawn_at.any()):
        is_drawn = (drawn_at > 0).to(logits.device)
        own = torch.where(is_drawn[:, None], (logits / drawn_at.to(logits)[:, None]).log_softmax(-1), log_p)
        proposal = torch.where(is_drawn, place(own.double().exp(), uniforms).interval, argmax)
    log_prob = own.gather(-1, proposal[:, None])[:, 0]
    soft = log_p.exp().to(head.weight.dtype) @ head.weight * head.scale if with_soft else None
    return Reading(argmax, proposal, entropy, log_prob, soft)


@torch.no_grad()
def read_vocabulary(
    head: Head,
    hidden: Tensor,
    *,
    temperature: float | Tensor,
    proposal_temperature: float | Tensor,
    uniforms: Tensor,
    with_soft: bool,
    chunk: int | None = None,
) -> Reading:
    """Read everything off hidden [N, D] in one pass over chunks of the vocabulary, never all logits at once.

    temperature: of entropy and soft embedding, above 0. proposal_temperature: of the draw and its log_prob; 0
    proposes the argmax, whose lowest id wins ties, with the log_prob of `temperature`. Either is one for all rows, or
    [N]; a row says the same either way. uniforms: [N] float64 in [0, 1); each becomes a token by inverse CDF in id
    order, sums in float64. chunk: ids computed at once, by default so many that a few MB hold them; it moves results
    by rounding only.
    Source: contract 3, 4 (how near to read_logits), 5; online softmax, https://arxiv.org/abs/1805.02867
    """
    parts, warm, drawn_at = [], each_row(temperature, len(hidden)), each_row(proposal_temperature, len(hidden))
    pieces = (each.split(_ROWS) for each in (hidden, uniforms, warm, drawn_at))
    for rows, own, hot, sharp in zip(*pieces, strict=True):
        if is_awaited(rows):
            terms = terms_of(head.softcap, hot, sharp, rows.device)
            parts.append(read_steadily(head.weight, rows, terms, own, head.scale, with_soft=with_soft, limit=chunk))
            continue
        sweep = Sweep(head.weight, head.softcap, rows, hot, sharp, with_soft=with_soft)
        sweep.run(chunk)
        parts.append(sweep.reading(own, head.scale))
    if len(parts) == 1:
        return parts[0]
    argmax, proposal, entropy, log_prob, soft = zip(*(part[:5] for part in parts), strict=True)
    joined = torch.cat(soft) if with_soft else None
    return Reading(torch.cat(argmax), torch.cat(proposal), torch.cat(entropy), torch.cat(log_prob), joined)
