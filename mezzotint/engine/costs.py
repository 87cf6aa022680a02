"""What the forwards of a network cost a row beside one another, alone and among others; what follows, policy says.

One row is timed in the plain loop; of several, what their forwards take together is put in place of one row's:

ar        Prefilled ── Block ── Block ── Block ── …   from block to block a token: the unit
verified  Prefilled ── Block ── Draft ── Block ── …   to a draft one denoising step, to a block one encode
"""

import time
from collections.abc import Callable, Iterable
from itertools import islice, pairwise
from statistics import mean, median
from typing import NamedTuple

import torch

from mezzotint.decoding.generate import generate_tokens
from mezzotint.decoding.limits import Limits
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.policy import SMALL_MODEL, Costs
from mezzotint.decoding.program import Block, Draft, Event
from mezzotint.decoding.verify import generate_verified
from mezzotint.types import Network

_PROMPT, _TOKENS, _ROUNDS = 32, 6, 3  # tokens before; single tokens, and drafts of each width, that are timed
_MOST_ROWS = 8  # that are timed together; more than these share little more


class CostBook:
    """The costs of one network: those given, or measured when they are first asked for at a number of threads and rows.

    A row of many gets its tokens cheaper than one alone, because they share a forward that reads the same weights, and
    its wide canvases hardly: so what pays alone may not pay among others.
    """

    def __init__(self, network: Network, limits: Limits, given: Costs | None = None) -> None:
        self._network, self._limits, self._given = network, limits, given
        self._measured: dict[tuple[int, int], Costs] = {}

    def read(self, rows: int = 1) -> Costs:
        """The costs of a row among `rows` at the number of threads of this moment, to the power of two below."""
        if self._given is not None:
            return self._given
        near = 1 << (max(1, min(rows, _MOST_ROWS)).bit_length() - 1)
        place = torch.get_num_threads(), near
        if place not in self._measured:
            self._measured[place] = measure_costs(self._network, self._limits, rows=near)
        return self._measured[place]


@torch.inference_mode()
def measure_costs(
    network: Network, limits: Limits, clock: Callable[[], float] = time.perf_counter, *, rows: int = 1
) -> Costs:
    """Time some twenty forwards of one request: single tokens, and drafts of two widths.

    rows: that share forwards; for more than one some fifteen forwards of as many rows, and as many of one, are timed
    too. clock: seconds. Returns: medians, for denoising the line through both widths; SMALL_MODEL for a checkpoint in
    whose canvas or context no draft has room.
    """
    wide = min(limits.canvas_length, (limits.max_positions - 2) // _ROUNDS)
    if wide < 2:
        return SMALL_MODEL
    narrow = max(2, wide // 4)
    token = _DraftTime(0.0, _time_token(network, limits, clock))
    near, far = (_time_draft(network, limits, width, clock) for width in (narrow, wide))
    if rows > 1:
        token, near, far = (
            _share(each, network, limits, width, rows, clock)
            for each, width in ((token, 1), (near, narrow), (far, wide))
        )
    token_s = token.encode_s
    slope_s = max(0.0, (far.denoise_s - near.denoise_s) / max(1, wide - narrow))
    extra_s = mean([(near.encode_s - token_s) / (narrow - 1), (far.encode_s - token_s) / (wide - 1)])
    return Costs(
        denoise=max(0.0, near.denoise_s - slope_s * narrow) / token_s,
        denoise_token=slope_s / token_s,
        encode_token=max(0.0, extra_s) / token_s,
    )


class _Mark(NamedTuple):
    """When an event of some kind came, in seconds."""

    kind: type[Event]
    at_s: float


class _DraftTime(NamedTuple):
    """Seconds of a draft's denoising step, and of the encode that verifies it."""

    denoise_s: float
    encode_s: float


def _share(
    whole: _DraftTime, network: Network, limits: Limits, width: int, rows: int, clock: Callable[[], float]
) -> _DraftTime:
    """What a row's steps of `width` positions, alone `whole`, take among `rows`: its share of the forward is another.

    What is not forward stays: the loop around it runs for every row.
    """
    alone, among = (_time_rows(network, limits, width, count, clock) for count in (1, rows))
    return _DraftTime(*(max(0.0, own - one) + many / rows for own, one, many in zip(whole, alone, among, strict=True)))


def _time_rows(network: Network, limits: Limits, width: int, rows: int, clock: Callable[[], float]) -> _DraftTime:
    """Seconds of a denoising step and an encode of `rows` rows at once, `width` positions each."""
    size = min(_PROMPT, limits.max_positions - width)
    kv, ids = network.new_kv(rows, size + width), torch.arange(size + width).expand(rows, -1) % limits.vocab_size
    network.encode(ids[:, :size], kv)
    uniforms = torch.zeros(rows * width, dtype=torch.float64)
    denoised, encoded = list[float](), list[float]()
    for _ in range(_ROUNDS):
        started = clock()
        hidden = network.denoise(ids[:, size:], kv, None, window=None).flatten(0, 1)
        network.read(hidden, temperature=1.0, proposal_temperature=1.0, uniforms=uniforms, with_soft=True)
        between = clock()
        # A token is drawn of every row's logits, which on a device waits for them.
        network.logits(network.encode(ids[:, size:], kv)).argmax(-1).tolist()
        encoded.append(clock() - between)
        denoised.append(between - started)
        kv.truncate(size)
    return _DraftTime(median(denoised), median(encoded))


def _time_token(network: Network, limits: Limits, clock: Callable[[], float]) -> float:
    """Seconds of an autoregressive step."""
    params = SamplingParams(decoder="ar", max_tokens=min(_TOKENS, limits.max_positions - 1), ignore_eos=True)
    marks = _mark(generate_tokens(network, _prompt(params, limits), params, 0, limits), clock)
    return _between(Block, Block, marks)


def _time_draft(network: Network, limits: Limits, width: int, clock: Callable[[], float]) -> _DraftTime:
    """Time drafts on canvases of `width` positions, the known token included."""
    # However many of them are accepted, there is room for so many drafts of that width.
    most = _ROUNDS * width + 1
    params = SamplingParams(decoder="verified", max_tokens=most, ignore_eos=True, draft_tokens=width - 1, draft_steps=1)
    events = generate_verified(network, _prompt(params, limits), params, 0, limits)
    marks = _mark(islice(events, 2 + 2 * _ROUNDS), clock)
    return _DraftTime(_between(Block, Draft, marks), _between(Draft, Block, marks))


def _prompt(params: SamplingParams, limits: Limits) -> list[int]:
    size = min(_PROMPT, limits.max_positions - params.max_tokens)
    return [(3 + 5 * index) % limits.vocab_size for index in range(size)]


def _mark(events: Iterable[Event], clock: Callable[[], float]) -> list[_Mark]:
    return [_Mark(type(event), clock()) for event in events]


def _between(before: type[Event], after: type[Event], marks: list[_Mark]) -> float:
    """The median of the seconds from one kind of event to the next."""
    return median(
        last.at_s - first.at_s for first, last in pairwise(marks) if (first.kind, last.kind) == (before, after)
    )
