"""The way through the vocabulary for a device that is not waited for: fixed shapes, and no number brought to the host.

It says what `sweep` says, which spares what a look at the numbers shows to be needless.
"""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from mezzotint.model.device import send
from mezzotint.model.draw import Bins, bins_of, place
from mezzotint.model.grouped import group, multiply
from mezzotint.types import Reading

_BLOCK = 1 << 24  # scores that are computed at once: 64 MB in float32


class Terms(NamedTuple):
    """How N rows are read. rate, ratio: [N] float64 on the device, as in sweep; drawn: [N] whether by proposal.

    is_sharpened, is_drawn: whether any row is, as the host knows it.
    """

    softcap: float
    rate: Tensor
    ratio: Tensor
    drawn: Tensor
    is_sharpened: bool
    is_drawn: bool


class _Sums(NamedTuple):
    """What was met so far, [N] each but masses [N, bins] and soft [N, D]; see Sweep."""

    peak: Tensor
    argmax: Tensor
    total: Tensor
    energy: Tensor
    masses: Tensor
    soft: Tensor | None


def terms_of(softcap: float, temperature: Tensor, proposal_temperature: Tensor, device: torch.device) -> Terms:
    """Terms of rows from their temperatures, [N] float64 on the host; see read_vocabulary."""
    drawn = proposal_temperature > 0
    ratio = torch.where(drawn, temperature / proposal_temperature, 1.0)
    rate = (2 * softcap or 1.0) / temperature / log(2)
    return Terms(
        softcap=softcap,
        rate=send(rate, device),
        ratio=send(ratio, device),
        drawn=send(drawn, device),
        is_sharpened=bool((ratio != 1).any()),
        is_drawn=bool(drawn.any()),
    )


def read_steadily(
    table: Tensor,
    hidden: Tensor,
    terms: Terms,
    uniforms: Tensor,
    scale: float,
    *,
    with_soft: bool,
    limit: int | None = None,
) -> Reading:
    """What the whole vocabulary says of hidden [N, D] before table [V, D]; uniforms [N] decide the proposals.

    limit: ids at once. Returns: a reading on the device.
    """
    bins, rows = bins_of(len(table)), len(hidden)
    sums = _begin(hidden, bins, with_soft=with_soft)
    for ids in bins.chunks(limit or max(1, _BLOCK // max(1, rows))):
        sums = _meet(sums, table[ids], ids.start, hidden, terms, bins)
    wide, log_total = sums.peak.dtype, sums.total.log()
    entropy = (log_total - sums.energy / sums.total * log(2)).clamp(min=0).to(wide)
    soft = None if sums.soft is None else (sums.soft * (scale / sums.total)[:, None]).to(hidden.dtype)
    if not terms.is_drawn:
        return Reading(sums.argmax, sums.argmax, entropy, -log_total.to(wide), soft)
    token, exponent = _draw(sums, table, hidden, terms, uniforms, bins)
    log_prob = exponent * log(2) - sums.masses.sum(-1).log()
    proposal = torch.where(terms.drawn, token, sums.argmax)
    return Reading(sums.argmax, proposal, entropy, torch.where(terms.drawn, log_prob, -log_total).to(wide), soft)


def _begin(hidden: Tensor, bins: Bins, *, with_soft: bool) -> _Sums:
    rows, wide = len(hidden), torch.promote_types(hidden.dtype, torch.float32)
    return _Sums(
        peak=hidden.new_full((rows,), -torch.inf, dtype=wide),
        argmax=hidden.new_zeros(rows, dtype=torch.long),
        total=hidden.new_zeros(rows, dtype=torch.float64),
        energy=hidden.new_zeros(rows, dtype=torch.float64),
        masses=hidden.new_zeros(rows, bins.number, dtype=torch.float64),
        soft=hidden.new_zeros(hidden.shape, dtype=wide) if with_soft else None,
    )


def _score(products: Tensor, softcap: float) -> Tensor:
    """Scores of products z, in float32 or wider: as sweep forms them."""
    scores = products.to(torch.promote_types(products.dtype, torch.float32))
    return (scores * (2 / softcap)).sigmoid() if softcap else scores


def _meet(sums: _Sums, table: Tensor, first: int, hidden: Tensor, terms: Terms, bins: Bins) -> _Sums:
    """Go on with the ids from `first` on, whose embeddings are `table`."""
    scores = _score(hidden @ table.T, terms.softcap)
    top, at = scores.max(-1)
    peak = sums.peak.maximum(top)
    drop = (sums.peak - peak).double() * terms.rate  # −inf on the first chunk, 0 where the peak stands
    fade = drop.exp2()
    # entr(fade), −fade · ln(fade), is 0 where fade · drop would be 0 · −inf
    energy = fade * sums.energy - torch.special.entr(fade) / log(2) * sums.total
    total, masses, soft = sums.total * fade, sums.masses, sums.soft
    exponents = (scores - peak[:, None]) * terms.rate.to(peak.dtype)[:, None]
    powers = exponents.exp2()
    if terms.is_drawn:
        sharp = (exponents * terms.ratio.to(peak.dtype)[:, None]).exp2() if terms.is_sharpened else powers
        own = sharp.unflatten(-1, (-1, min(bins.width, sharp.shape[1]))).sum(-1)
        bin_ = first // bins.width
        masses = masses * (drop * terms.ratio).exp2()[:, None]
        masses[:, bin_ : bin_ + own.shape[1]] += own
    if soft is not None:
        soft = soft * fade.to(soft.dtype)[:, None] + powers.to(table.dtype) @ table
    return _Sums(
        peak=peak,
        argmax=torch.where(top > sums.peak, first + at, sums.argmax),
        total=total + powers.sum(-1).double(),
        energy=energy + (exponents * powers).sum(-1),
        masses=masses,
        soft=soft,
    )


def _draw(
    sums: _Sums, table: Tensor, hidden: Tensor, terms: Terms, uniforms: Tensor, bins: Bins
) -> tuple[Tensor, Tensor]:
    """Draw a token a row: its bin by the masses, then the token inside, whose scores are formed again for every row.

    Returns: ids [N] and their exponents [N].
    """
    found, rest = place(sums.masses, uniforms)
    scores = _score(_multiply_bins(table, hidden, found, bins), terms.softcap)
    exponents = (scores - sums.peak[:, None]) * (terms.rate * terms.ratio).to(sums.peak.dtype)[:, None]
    inside_bin = torch.arange(bins.width, device=hidden.device)
    is_there = found[:, None] * bins.width + inside_bin < bins.vocab_size  # the last bin may be shorter
    inside = place(torch.where(is_there, exponents.exp2(), 0.0).double(), rest).interval
    return found * bins.width + inside, exponents.gather(-1, inside[:, None])[:, 0].double()


def _multiply_bins(table: Tensor, hidden: Tensor, found: Tensor, bins: Bins) -> Tensor:
    """Rows [N, D] with the embeddings of the bins that they found, [N, width]; what is missing of the last is 0."""
    whole = bins.number * bins.width
    padded = table if whole == len(table) else F.pad(table, (0, 0, 0, whole - len(table)))
    groups = group(found, bins.number)
    sorted_ = multiply(hidden[groups.order], padded.view(bins.number, bins.width, -1), groups)
    return torch.empty_like(sorted_).index_copy(0, groups.order, sorted_)
