"""Decoders `verified` and `mtp`: somebody drafts, and the causal pass keeps what it would have drawn itself.

    c = the last token, not yet encoded, behind L encoded ones
    draft d1 … dk at L+1 … L+k ─► encode [c, d1 … dk] ─► ar's own draw at L+1 … L+k+1, while it equals the draft
                                                          emitted: d1 … da and the draw that differs, the next c

Every emitted token is ar's seeded draw behind the tokens before it, whatever the draft, at every temperature.
"""

from collections.abc import Collection, Generator, Iterator, Sequence
from typing import NamedTuple

from torch import Tensor

from mezzotint.decoding.draft import FRESH, NO_DRAFT, Drafting, draft_canvas, keep_tail
from mezzotint.decoding.generate import Limits, required_positions
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.policy import SMALL_MODEL, Costs, Policy, Round
from mezzotint.decoding.program import (
    Block,
    Drafter,
    Encode,
    Encoded,
    Event,
    Finished,
    Guess,
    Prefilled,
    Program,
    drive,
)
from mezzotint.decoding.propose import draw_at
from mezzotint.decoding.sampler import SAMPLERS, Sampler
from mezzotint.decoding.stop import cut_answer
from mezzotint.types import FinishReason, Network

_STALE = 2  # rounds in a row without an accepted draft after which the next canvas starts fresh
_GUESSES = 6  # of a round of mtp, as the released drafters' generation_config has it


class Agreement(NamedTuple):
    """How many drafts were accepted, and they with the draw that follows them."""

    accepted: int
    tokens: list[int]


def agree(logits: Tensor, drafts: Sequence[int], seed: int, position: int, params: SamplingParams) -> Agreement:
    """Accept the drafts that ar would have drawn, up to the first that it would not, and add what it draws there.

    logits: [k + 1, V], row j behind draft j, row 0 behind what stands before them. position: of the first draft.
    Source: contract 4, 24; drafter-invariant speculation, arXiv:2408.07978.
    """
    tokens: list[int] = []
    for row, draft in zip(logits, [*drafts, None], strict=True):
        tokens.append(draw_at(row, params, seed, position + len(tokens)))
        if tokens[-1] != draft:
            break
    return Agreement(len(tokens) - 1, tokens)


def generate_verified(
    network: Network,
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    *,
    defaults: Sampler = SAMPLERS["report"],
    costs: Costs = SMALL_MODEL,
    window: int | None = None,
) -> Iterator[Event]:
    """The tokens of generate_tokens, drafted on canvases and verified a canvas at a time.

    defaults: the checkpoint's sampler, which drafts. costs: what the policy weighs; they change no token.
    window: as in generate_blocks. Raises: ValueError if prompt and max_tokens exceed the context.
    """
    kv = network.new_kv(1, required_positions(len(prompt), params, limits))
    program = verify_blocks(prompt, params, seed, limits, defaults=defaults, costs=costs, window=window)
    events: Iterator[Event] = drive(program, network, kv)
    yield from events


def generate_guessed(
    network: Network, drafter: Drafter, prompt: list[int], params: SamplingParams, seed: int, limits: Limits
) -> Iterator[Event]:
    """The tokens of generate_tokens, guessed by a drafter and verified some at a time. Raises: as generate_verified."""
    kv = network.new_kv(1, required_positions(len(prompt), params, limits))
    events: Iterator[Event] = drive(guess_blocks(prompt, params, seed, limits), network, kv, drafter)
    yield from events


def verify_blocks(
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    *,
    defaults: Sampler,
    costs: Costs,
    window: int | None = None,
) -> Program:
    """The program of decoder `verified`; see generate_verified.

    A canvas is never wider than what may yet be emitted, so no position is touched that ar would not touch.
    """
    drafting = Drafting(
        sampler=defaults,
        temperature=params.temperature,
        seed=seed,
        vocab_size=limits.vocab_size,
        window=window,
        ends=() if params.ignore_eos else limits.end_ids,
        keep_soft=params.draft_tail == "tail+soft",
    )
    policy = Policy(
        costs=costs,
        longest=limits.canvas_length,
        fixed_width=params.draft_tokens and params.draft_tokens + 1,
        fixed_steps=params.draft_steps,
    )
    tail, failures = FRESH, 0
    answer = yield from _open(prompt, params, seed, limits)
    while not answer.reason:
        plan = policy.plan(answer.room)
        drafted = NO_DRAFT
        if plan.steps:
            drafted = yield from draft_canvas(answer.token, answer.length, answer.rounds, plan, tail, policy, drafting)
        drafts, before = drafted.tokens, answer
        answer = yield from _confirm(answer, drafts, len(drafted.expected), params, seed)
        accepted, emitted = answer.accepted - before.accepted, before.room - answer.room
        policy = policy.learn(Round(plan.width, drafted.expected, drafted.entropies, accepted, emitted))
        failures = 0 if accepted else failures + 1
        tail = FRESH
        if params.draft_tail != "fresh" and accepted < len(drafts) and failures < _STALE:
            tail = keep_tail(drafts, accepted, answer.encoded.logits, drafted.soft, limits.canvas_length)
    yield answer.finish()


def guess_blocks(prompt: list[int], params: SamplingParams, seed: int, limits: Limits) -> Program:
    """The program of decoder `mtp`; see generate_guessed. The drafter sees the target's state of the last draw."""
    answer = yield from _open(prompt, params, seed, limits)
    while not answer.reason:
        size = min(params.draft_tokens or _GUESSES, answer.room - 1)
        guesses: list[int] = []
        if size:
            guesses = yield Guess(answer.token, answer.encoded.hidden[answer.row], answer.length, size)
        drafts = cut_answer(guesses, size, answer.ends).tokens
        answer = yield from _confirm(answer, drafts, 0, params, seed)
        answer = answer._replace(guesses=answer.guesses + size)
    yield answer.finish()


class _Answer(NamedTuple):
    """An answer between rounds: `token` is its last, behind `length` encoded ones; row `row` of `encoded` drew it.

    room: tokens that may yet come. encodes, drafted, accepted, guesses: what it took so far.
    """

    token: int
    length: int
    encoded: Encoded
    row: int
    room: int
    ends: Collection[int]
    reason: FinishReason | None
    rounds: int = 1
    encodes: int = 1
    drafted: int = 0
    accepted: int = 0
    guesses: int = 0

    def finish(self) -> Finished:
        assert self.reason
        return Finished(self.reason, self.encodes, self.drafted, self.accepted, self.guesses)


def _open(
    prompt: list[int], params: SamplingParams, seed: int, limits: Limits
) -> Generator[Encode | Event, Encoded, _Answer]:
    """Encode the prompt and emit the first token, which its forward yields as under ar."""
    encoded = yield Encode(prompt, 0, 1)
    yield Prefilled(len(prompt))
    ends = () if params.ignore_eos else limits.end_ids
    cut = cut_answer(agree(encoded.logits, [], seed, len(prompt), params).tokens, params.max_tokens, ends)
    yield Block(0, cut.tokens, 0)
    return _Answer(cut.tokens[-1], len(prompt), encoded, 0, params.max_tokens - 1, ends, cut.reason)


def _confirm(
    answer: _Answer, drafts: list[int], steps: int, params: SamplingParams, seed: int
) -> Generator[Encode | Event, Encoded, _Answer]:
    """Encode the last token with the drafts behind it, and emit those that ar agrees with and its own next."""
    encoded = yield Encode([answer.token, *drafts], answer.length, len(drafts) + 1)
    agreement = agree(encoded.logits, drafts, seed, answer.length + 1, params)
    cut = cut_answer(agreement.tokens, answer.room, answer.ends)
    yield Block(answer.rounds, cut.tokens, steps)
    return answer._replace(
        token=cut.tokens[-1],
        length=answer.length + agreement.accepted + 1,
        encoded=encoded,
        row=agreement.accepted,
        room=answer.room - len(cut.tokens),
        reason=cut.reason,
        rounds=answer.rounds + 1,
        encodes=answer.encodes + 1,
        drafted=answer.drafted + len(drafts),
        accepted=answer.accepted + agreement.accepted,
    )
