"""One way through the vocabulary in chunks, and what it says; the plain form of it is in vocabulary."""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from mezzotint.model.draw import bins_of, place
from mezzotint.types import Reading

_BLOCK = 1 << 19  # scores that a sweep computes at once by its own choice: 2 MB in float32


class _Block(NamedTuple):
    """Buffers of one chunk, [N, ids] each: the product in the table's dtype, the rest in float32 or wider."""

    product: Tensor
    scores: Tensor
    powers: Tensor

    def cut(self, width: int) -> "_Block":
        """The same memory for `width` ids."""
        rows = len(self.scores)
        return _Block(*(buffer.view(-1)[: rows * width].view(rows, width) for buffer in self))

    def score(self, softcap: float) -> Tensor:
        """Turn products z into scores, in place, and return them.

        softcap · tanh(z / softcap) is 2 softcap · sigmoid(2 z / softcap) less a constant. torch's sigmoid
        takes a sixth of its tanh's time on a CPU; in float32 it moves logits capped at 30 by less than 1e-5.
        """
        scores = self.scores.copy_(self.product)
        return scores.mul_(2 / softcap).sigmoid_() if softcap else scores


def _new_block(table: Tensor, rows: int, width: int) -> _Block:
    dtypes = table.dtype, _wide(table), _wide(table)
    return _Block(*(table.new_empty(rows, width, dtype=dtype) for dtype in dtypes))


class _Drawn(NamedTuple):
    """A token a row and its exponent at the proposal temperature, both [N]."""

    token: Tensor
    exponent: Tensor


class Sweep:
    """What N rows have met so far on one way through the vocabulary.

    A score is the logit up to a factor and a constant that no softmax sees; `peak` [N] is the highest yet.
    Exponents, (score − peak) · rate, are in bits: torch's exp2 takes less than half its exp's time on a CPU.
    `ratio` [N] makes them those of the proposals, where any row is `drawn` [N] at a temperature of its own.
    All sums are of powers 2^exponent and shrink when a peak rises: total [N] of the powers, energy [N] of
    exponent × power, soft [N, D] of power × embedding; masses [N, bins] are at the proposal temperature.
    """

    def __init__(
        self,
        table: Tensor,
        softcap: float,
        hidden: Tensor,
        temperature: Tensor,
        proposal_temperature: Tensor,
        *,
        with_soft: bool,
    ) -> None:
        """Start with rows hidden [N, D] before table [V, D]; the rest as in read_vocabulary, each temperature [N]."""
        rows, wide = len(hidden), _wide(table)
        self.table, self.softcap, self.hidden, self.bins = table, softcap, hidden, bins_of(len(table))
        self.rate = ((2 * softcap or 1.0) / temperature / log(2)).to(hidden.device)
        drawn = proposal_temperature > 0
        ratio = torch.where(drawn, temperature / proposal_temperature, 1.0)
        self.is_sharpened, self.is_drawn = bool((ratio != 1).any()), bool(drawn.any())
        self.ratio, self.drawn = ratio.to(hidden.device), drawn.to(hidden.device)
        self.argmax = hidden.new_zeros(rows, dtype=torch.long)
        self.peak = hidden.new_full((rows,), -torch.inf, dtype=wide)
        self.total, self.energy = hidden.new_zeros(2, rows, dtype=torch.float64)
        self.masses = hidden.new_zeros(rows, self.bins.number, dtype=torch.float64)
        self.soft = hidden.new_zeros(hidden.shape, dtype=wide) if with_soft else None

    def run(self, limit: int | None = None) -> None:
        """Go through the whole vocabulary, at most `limit` ids at a time."""
        chunks = list(self.bins.chunks(limit or max(1, _BLOCK // max(1, len(self.hidden)))))
        # Allocated once: memory fresh from the system would cost page faults in every chunk.
        block = _new_block(self.table, len(self.hidden), max(ids.stop - ids.start for ids in chunks))
        part = torch.empty_like(self.hidden)
        # A chunk stays out of a row's soft embedding if all that do are together within 1/16 of a rounding.
        negligible = torch.finfo(self.hidden.dtype).eps / 16 / len(chunks)
        for ids in chunks:
            table, own = self.table[ids], block.cut(ids.stop - ids.start)
            torch.mm(self.hidden, table.T, out=own.product)
            self._climb(own.score(self.softcap), ids.start)
            added = self._add(own, ids.start)
            self._mix(own, table, (added > negligible * self.total).nonzero()[:, 0], part)

    def reading(self, uniforms: Tensor, scale: float) -> Reading:
        """What the whole vocabulary says: uniforms [N] decide the proposals, `scale` is the embeddings'."""
        wide, log_total = self.peak.dtype, self.total.log()
        entropy = (log_total - self.energy / self.total * log(2)).clamp(min=0).to(wide)
        soft = None
        if self.soft is not None:
            soft = (self.soft * (scale / self.total)[:, None]).to(self.hidden.dtype)
        if not self.is_drawn:
            return Reading(self.argmax, self.argmax, entropy, -log_total.to(wide), soft)
        token, exponent = self._draw(uniforms, self.rate * self.ratio)
        log_prob = exponent * log(2) - self.masses.sum(-1).log()
        proposal = torch.where(self.drawn, token, self.argmax)
        return Reading(self.argmax, proposal, entropy, torch.where(self.drawn, log_prob, -log_total).to(wide), soft)

    def _climb(self, scores: Tensor, first: int) -> None:
        """Raise the peaks to those of scores [N, ids from `first` on] where these are higher."""
        top = scores.amax(-1)
        rose = (top > self.peak).nonzero()[:, 0]
        if not len(rose):
            return
        own = scores if len(rose) == len(scores) else scores[rose]  # a copy, which the first chunk can do without
        drop = (self.peak[rose] - top[rose]).double() * self.rate[rose]  # −inf on the first chunk
        fade = drop.exp2()
        self.argmax[rose] = first + own.argmax(-1)
        self.peak[rose] = top[rose]
        # Σ (x + drop) · 2^(x + drop); entr(fade), −fade · ln(fade), is 0 where fade · drop would be 0 · −inf
        self.energy[rose] = fade * self.energy[rose] - torch.special.entr(fade) / log(2) * self.total[rose]
        self.total[rose] *= fade
        if self.is_drawn:
            self.masses[rose] *= (drop * self.ratio[rose]).exp2()[:, None]
        if self.soft is not None:
            self.soft[rose] *= fade.to(self.soft.dtype)[:, None]

    def _add(self, block: _Block, first: int) -> Tensor:
        """Turn the scores of the ids from `first` on into powers, count them, and return their sums [N]."""
        wide, powers = self.peak.dtype, block.powers
        exponents = block.scores.sub_(self.peak[:, None]).mul_(self.rate.to(wide)[:, None])
        if self.is_drawn:
            sharp = exponents
            if self.is_sharpened:
                sharp = torch.mul(exponents, self.ratio.to(wide)[:, None], out=powers)
            torch.exp2(sharp, out=powers)
            bin_, number = first // self.bins.width, -(-powers.shape[1] // self.bins.width)
            self.masses[:, bin_ : bin_ + number] += powers.unflatten(-1, (number, -1)).sum(-1)
        if self.is_sharpened or not self.is_drawn:
            torch.exp2(exponents, out=powers)
        added = powers.sum(-1).double()
        self.total += added
        self.energy += exponents.mul_(powers).sum(-1)
        return added

    def _mix(self, block: _Block, table: Tensor, rows: Tensor, part: Tensor) -> None:
        """Add power × embedding of table [ids, D] to the soft ones of `rows`; `part` [N, D] is scratch."""
        if self.soft is None or not len(rows):
            return
        weights = block.product.copy_(block.powers)
        if len(rows) == len(weights):
            self.soft += torch.mm(weights, table, out=part)
        else:
            self.soft.index_add_(0, rows, torch.mm(weights[rows], table).to(self.soft.dtype))

    def _draw(self, uniforms: Tensor, rate: Tensor) -> _Drawn:
        """Draw a token a row: its bin by the masses, then the token inside, whose scores are formed again.

        The argmax has power 1 in a bin of mass m, so it is sure to hold [m − 1, 1) of the bin's [0, m): what
        falls there needs no second look, which spares nearly all rows late in a canvas.
        """
        found, rest = place(self.masses, uniforms)
        mass = self.masses.gather(-1, found[:, None])[:, 0]
        reach = rest * mass
        unsure = (found != self.argmax // self.bins.width) | (reach < mass - 1) | (reach >= 1)
        drawn = _Drawn(self.argmax.clone(), torch.zeros_like(mass))
        if bool(unsure.any()):
            rows = unsure.nonzero()[:, 0]
            rows = rows[found[rows].argsort()]
            drawn.token[rows], drawn.exponent[rows] = self._look_again(rows, found[rows], rest[rows], rate[rows])
        return drawn

    def _look_again(self, rows: Tensor, found: Tensor, rest: Tensor, rate: Tensor) -> _Drawn:
        """Draw a token for `rows`, in order of the bins found, with uniforms `rest`: one product a bin."""
        hidden, block = self.hidden[rows], _new_block(self.table, len(rows), self.bins.width)
        bins, counts = (part.tolist() for part in found.unique_consecutive(return_counts=True))
        for bin_, part, product in zip(bins, hidden.split(counts), block.product.split(counts), strict=True):
            table = self.table[self.bins.ids(bin_)]
            torch.mm(part, table.T, out=product[:, : len(table)])
        exponents = block.score(self.softcap).sub_(self.peak[rows, None]).mul_(rate.to(self.peak.dtype)[:, None])
        powers = torch.exp2(exponents, out=block.powers)
        powers[-counts[-1] :, len(table) :] = 0  # the vocabulary's last bin, if found, may be shorter
        inside = place(powers.double(), rest).interval
        exponent = exponents.gather(-1, inside[:, None])[:, 0].double()
        return _Drawn(found * self.bins.width + inside, exponent)


def _wide(table: Tensor) -> torch.dtype:
    """Dtype of everything behind a product with the table: float32, or float64 for float64."""
    return torch.promote_types(table.dtype, torch.float32)
