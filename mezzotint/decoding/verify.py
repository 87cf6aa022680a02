"""Decoders `verified` and `mtp`: somebody drafts, and the causal pass keeps what it would have drawn itself.

    c = the last token, not yet encoded, behind L encoded ones
    draft d1 … dk at L+1 … L+k ─► encode [c, d1 … dk] ─► ar's own draw at L+1 … L+k+1, while it equals the draft
                                                          emitted: d1 … da and the draw that differs, the next c

Every emitted token is ar's seeded draw behind the tokens before it, whatever the draft, at every temperature.
"""

from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple

from mezzotint.decoding.agree import agree
from mezzotint.decoding.draft import FRESH, NO_DRAFT, Drafting, Place, draft_canvas, keep_tail
from mezzotint.decoding.guide import Guide
from mezzotint.decoding.limits import Limits, required_positions
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.policy import ASKED_SLACK, SLACK, SMALL_MODEL, Costs, Policy, Round
from mezzotint.decoding.program import (
    Block,
    Drafter,
    Encode,
    Encoded,
    Event,
    Finished,
    Guess,
    Program,
    drive,
)
from mezzotint.decoding.sampler import SAMPLERS, Sampler
from mezzotint.decoding.score import encode_prompt
from mezzotint.decoding.stop import cut_answer
from mezzotint.types import Constraint, Network, Stopper

_STALE = 2  # rounds in a row without an accepted draft after which the next canvas starts fresh
_GUESSES = 6  # of a round of mtp, as the released drafters' generation_config has it


def generate_verified(
    network: Network,
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    constraint: Constraint | None = None,
    stopper: Stopper | None = None,
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
    guide = Guide(prompt, params, seed, limits, constraint, stopper)
    program = verify_blocks(prompt, params, seed, limits, guide, defaults=defaults, weigh=lambda: costs, window=window)
    events: Iterator[Event] = drive(program, network, kv)
    yield from events


def generate_guessed(
    network: Network,
    drafter: Drafter,
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    constraint: Constraint | None = None,
    stopper: Stopper | None = None,
) -> Iterator[Event]:
    """The tokens of generate_tokens, guessed by a drafter and verified some at a time. Raises: as generate_verified."""
    kv = network.new_kv(1, required_positions(len(prompt), params, limits))
    program = guess_blocks(prompt, params, Guide(prompt, params, seed, limits, constraint, stopper), limits)
    events: Iterator[Event] = drive(program, network, kv, drafter)
    yield from events


def verify_blocks(
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    guide: Guide,
    *,
    defaults: Sampler,
    weigh: Callable[[], Costs],
    window: int | None = None,
) -> Program:
    """The program of decoder `verified`; see generate_verified.

    weigh: what forwards cost at this moment, asked before every plan; among others other rounds pay than alone.
    A canvas is never wider than what may yet be emitted, so no position is touched that ar would not touch.
    """
    drafting = Drafting(
        sampler=defaults,
        temperature=params.temperature,
        seed=seed,
        vocab_size=limits.vocab_size,
        window=window,
        keep_soft=params.draft_tail == "tail+soft",
    )
    policy = Policy(
        costs=weigh(),
        longest=limits.canvas_length,
        fixed_width=params.draft_tokens and params.draft_tokens + 1,
        fixed_steps=params.draft_steps,
        credit=ASKED_SLACK if params.draft_tokens or params.draft_steps else SLACK,
    )
    tail, failures = FRESH, 0
    answer = yield from _open(prompt, params, guide, limits)
    while not guide.reason:
        policy = policy.weighing(weigh())
        before, room = answer, guide.room + len(answer.tokens) - 1
        plan = policy.plan(room)
        if not plan.steps:
            answer = yield from _write_alone(answer, policy.rest(room), guide, limits)
            taken = answer.rounds - before.rounds
            policy, tail, failures = policy.rested(taken), FRESH, failures + taken
            continue
        place, drafted = answer.place(guide, limits), NO_DRAFT
        free, known = guide.room - guide.forced, len(place.tokens) + len(place.due)
        if plan.width > known:
            drafted = yield from draft_canvas(place, plan, tail, policy, drafting, guide)
        answer = yield from _confirm(answer, place, drafted.tokens, len(drafted.expected), guide)
        # What a grammar forces is free to ar too: it is no token that drafting has gained.
        emitted, accepted = free - guide.room + guide.forced, answer.accepted - before.accepted
        policy = policy.learn(Round(plan.width, drafted.expected, drafted.entropies, accepted, emitted))
        failures = 0 if accepted else failures + 1
        tail = FRESH
        if params.draft_tail != "fresh" and accepted < len(drafted.tokens) and failures < _STALE:
            logits = answer.encoded.logits[len(place.due) :]
            tail = keep_tail(drafted.tokens, accepted, logits, drafted.soft, limits.canvas_length)
    yield answer.finish(guide)


def guess_blocks(prompt: list[int], params: SamplingParams, guide: Guide, limits: Limits) -> Program:
    """The program of decoder `mtp`; see generate_guessed. The drafter sees the target's state of the last draw."""
    answer = yield from _open(prompt, params, guide, limits)
    while not guide.reason:
        place = answer.place(guide, limits)
        # Behind what a grammar forced no state is known to guess from.
        is_known = len(place.tokens) == 1 and not place.due
        size = min(params.draft_tokens or _GUESSES, guide.room - 1) if is_known else 0
        guesses: list[int] = []
        if size:
            guesses = yield Guess(place.tokens[0], answer.encoded.hidden[answer.row], answer.length, size)
        drafts = cut_answer(guesses, size, guide.ends).tokens
        answer = yield from _confirm(answer, place, drafts[: guide.count_valid(drafts)], 0, guide)
        answer = answer._replace(guesses=answer.guesses + size)
    yield answer.finish(guide)


class _Answer(NamedTuple):
    """An answer between rounds: `tokens` are its last, not yet encoded, behind `length` encoded ones.

    The first of them was drawn from row `row` of `encoded`, the others are what a grammar forced behind it.
    encodes, drafted, accepted, guesses: what it took so far.
    """

    tokens: list[int]
    length: int
    encoded: Encoded
    row: int
    rounds: int = 1
    encodes: int = 1
    drafted: int = 0
    accepted: int = 0
    guesses: int = 0

    def place(self, guide: Guide, limits: Limits) -> Place:
        """Where the next draft goes."""
        return Place(self.tokens, guide.peek(limits.canvas_length - len(self.tokens)), self.length, self.rounds)

    def finish(self, guide: Guide) -> Finished:
        return guide.finish(self.encodes, self.drafted, self.accepted, self.guesses)


def _open(
    prompt: list[int], params: SamplingParams, guide: Guide, limits: Limits
) -> Generator[Encode | Event, Encoded | None, _Answer]:
    """Encode the prompt and emit the first token, which its forward yields as under ar."""
    encoded = yield from encode_prompt(prompt, params, read=1, width=limits.canvas_length)
    assert encoded is not None
    tokens = agree(encoded.logits[-1:], [], guide, len(prompt)).tokens
    yield Block(0, tokens, 0, guide.take_scores())
    return _Answer(tokens, len(prompt), encoded, len(encoded.hidden) - 1)


def _write_alone(
    answer: _Answer, most: int, guide: Guide, limits: Limits
) -> Generator[Encode | Event, Encoded | None, _Answer]:
    """Up to `most` rounds as ar takes them, with nothing drafted and nothing decided between them."""
    tokens, length, encoded, row, taken = answer.tokens, answer.length, answer.encoded, answer.row, 0
    while taken < most and not guide.reason:
        due = guide.peek(limits.canvas_length - len(tokens))
        told = yield Encode([*tokens, *due], length, len(due) + 1)
        assert told is not None
        length += len(tokens)
        agreement = agree(told.logits, due, guide, length)
        yield Block(answer.rounds + taken, agreement.tokens, 0, guide.take_scores())
        encoded, row, taken = told, agreement.accepted, taken + 1
        tokens, length = agreement.tokens[row:], length + row
    return answer._replace(
        tokens=tokens,
        length=length,
        encoded=encoded,
        row=row,
        rounds=answer.rounds + taken,
        encodes=answer.encodes + taken,
    )


def _confirm(
    answer: _Answer, place: Place, drafts: list[int], steps: int, guide: Guide
) -> Generator[Encode | Event, Encoded | None, _Answer]:
    """Encode what is settled with what is due and the drafts behind it; emit what ar agrees with and its own next."""
    settled, behind = place.tokens, [*place.due, *drafts]
    encoded = yield Encode([*settled, *behind], place.at, len(behind) + 1)
    assert encoded is not None
    agreement = agree(encoded.logits, behind, guide, place.at + len(settled))
    yield Block(place.round, agreement.tokens, steps, guide.take_scores())
    return answer._replace(
        tokens=agreement.tokens[agreement.accepted :],
        length=place.at + len(settled) + agreement.accepted,
        encoded=encoded,
        row=agreement.accepted,
        rounds=answer.rounds + 1,
        encodes=answer.encodes + 1,
        drafted=answer.drafted + len(drafts),
        accepted=answer.accepted + max(0, agreement.accepted - len(place.due)),
    )
