"""Decoder `diffusion` behind a gate: a block leaves only once nothing about it alarms; what alarms lives in alarms.

    canvas ─► in alarm? ─no──────────────────────────────────────────────────────► emit, commit
                 │ a clean head, half of it or more ─► trim: the head ────────────────►│
                 └ re-roll: half the canvas, fresh noise ─► in alarm? ─no or a head───►│
                                                               └ the causal pass writes ┘

What the re-roll may take is as many steps as the block took, at least a few; the causal pass writes half a canvas.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Literal, NamedTuple

import torch

from mezzotint.decoding.alarms import GateLimits, find_doubt, find_surprise, measure_surprise
from mezzotint.decoding.canvas import no_pins, pin_positions
from mezzotint.decoding.conflicts import check_conflicts
from mezzotint.decoding.generate import denoise_canvas, draw_tokens, find_doubts, tell_draft
from mezzotint.decoding.growing import Growing
from mezzotint.decoding.guide import Guide
from mezzotint.decoding.limits import Limits, required_positions
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.policy import SMALL_MODEL, Costs
from mezzotint.decoding.program import Block, Encode, Encoded, Event, Finished, Program, drive
from mezzotint.decoding.random import SeededCanvas
from mezzotint.decoding.resume import resume
from mezzotint.decoding.sampler import SAMPLERS, Sampler
from mezzotint.decoding.score import encode_prompt, score
from mezzotint.decoding.shape import shape_canvas
from mezzotint.decoding.stop import Cut
from mezzotint.decoding.verify import verify_blocks
from mezzotint.types import Alarm, FinishReason, Inspector, Intervention, Mending, Network, Score, Stopper

_FEW = 8  # steps that a re-roll may take, however few its block took

Forwards = Generator[Any, Any, "_Trial"]


def generate_gated(
    network: Network,
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    inspector: Inspector,
    *,
    defaults: Sampler = SAMPLERS["report"],
    stopper: Stopper | None = None,
    weigh: Callable[[], Costs] = lambda: SMALL_MODEL,
    bounds: GateLimits | None = None,
    window: int | None = None,
) -> Iterator[Event]:
    """Denoise one block after another, each of which has to pass the gate of params before it is told.

    An answer without alarms is that of generate_blocks, to which see. weigh: see verify_blocks.
    Raises: ValueError if prompt and max_tokens exceed the context, options exclude each other, or, while it is read,
    a block is nothing but padding, whoever writes it.
    """
    check_conflicts(params, limits, is_stopped=stopper is not None, is_inspected=True)
    capacity = required_positions(len(prompt), params, limits)
    program = gate_blocks(
        prompt,
        params,
        seed,
        limits,
        inspector,
        defaults=defaults,
        stopper=stopper,
        weigh=weigh,
        bounds=bounds,
        window=window,
    )
    events: Iterator[Event] = drive(program, network, network.new_kv(1, capacity))
    yield from events


def gate_blocks(
    prompt: list[int],
    params: SamplingParams,
    seed: int,
    limits: Limits,
    inspector: Inspector,
    *,
    defaults: Sampler,
    stopper: Stopper | None = None,
    weigh: Callable[[], Costs] = lambda: SMALL_MODEL,
    bounds: GateLimits | None = None,
    window: int | None = None,
) -> Program:
    """The program of decoder `diffusion` behind a gate; see generate_gated."""
    answer = Growing(prompt, params, limits.of(params), stopper)
    gate = _Gate(answer, seed, inspector, defaults, weigh, bounds or GateLimits(), window)
    return gate.run()


class _Trial(NamedTuple):
    """What a block might be. encoded: what each of its tokens says of the next; None where nobody has asked yet.

    scores: of its tokens, where whoever wrote them knows. uncertainty: of the canvas.
    """

    tokens: list[int]
    reason: FinishReason | None
    alarms: list[Alarm]
    uncertainty: tuple[float, ...]
    encoded: Encoded | None = None
    scores: tuple[Score, ...] | None = None


class _Gate:
    """One answer that passes block by block. steps: of the block at hand; encodes: of the answer, after its prompt."""

    def __init__(
        self,
        answer: Growing,
        seed: int,
        inspector: Inspector,
        defaults: Sampler,
        weigh: Callable[[], Costs],
        bounds: GateLimits,
        window: int | None,
    ) -> None:
        self._answer, self._params, self._limits = answer, answer.params, answer.limits
        self._seed, self._inspector = seed, inspector
        self._sampler, self._defaults = self._params.resolve_sampler(defaults), defaults
        self._weigh, self._bounds, self._window = weigh, bounds, window
        self._steps = self._encodes = 0
        self._interventions: list[Intervention] = []
        self._before: Encoded  # what the last token of the context says

    def run(self) -> Program:
        """The program."""
        params, answer = self._params, self._answer
        encoded = yield from encode_prompt(answer.prompt, params, read=1, width=self._limits.canvas_length)
        assert encoded is not None
        self._before = _last(encoded)
        for block in count():
            self._steps = 0
            trial = yield from self._pass(block)
            yield from self._commit(block, trial)
            if trial.reason:
                forced = 0 if answer.thoughts is None else answer.thoughts.forced
                told = tuple(self._interventions)
                yield Finished(trial.reason, encodes=self._encodes, forced=forced, interventions=told)
                return

    def _pass(self, block: int) -> Forwards:
        """A block that has passed, or that the causal pass has written."""
        width = self._limits.canvas_length
        trial = yield from self._try(block, 0, width, self._sampler.budget)
        if not trial.alarms:
            return trial
        if head := self._trim(block, trial):
            return head
        before, allowed = self._forwards, max(_FEW, self._steps)
        again = yield from self._try(block, 1, max(1, width // 2), min(allowed, self._sampler.budget))
        self._note(block, trial.alarms, "reroll", before)
        if not again.alarms:
            return again
        if head := self._trim(block, again):
            return head
        return (yield from self._write(block, again.alarms))

    def _try(self, block: int, attempt: int, width: int, budget: int) -> Forwards:
        """Denoise a canvas and look at what of it would stand."""
        answer, params = self._answer, self._params
        limits, sampler = replace(self._limits, canvas_length=width), replace(self._sampler, budget=budget)
        pins, thoughts = no_pins(width), answer.thoughts
        if thoughts is not None and thoughts.must_close(answer.room):
            pins = pin_positions({0: thoughts.closing}, width)
        state = yield from denoise_canvas(
            answer.at,
            sampler,
            SeededCanvas(seed=self._seed, block=block, width=width, vocab_size=limits.vocab_size, attempt=attempt),
            pins,
            limits,
            temperature=params.temperature,
            window=self._window,
            shape=shape_canvas(params, limits, len(answer.tokens)),
            drop_behind=answer.ends if params.drop_after_end else (),
            tell=partial(tell_draft, block),
        )
        self._steps += state.step
        drawn = state.output[0].tolist()
        cut = answer.cut(drawn)
        doubts = find_doubts(state, cut.tokens)
        alarms = self._inspect(cut)
        if state.step >= budget:
            alarms += find_doubt(doubts, self._bounds)
        trial = _Trial(cut.tokens, cut.reason, alarms, doubts)
        if params.gate == "causal":
            own = [token == drawn[place] and not bool(pins.mask[place]) for place, token in enumerate(cut.tokens)]
            trial = yield from self._add_surprise(trial, own)
        return trial

    def _inspect(self, cut: Cut) -> list[Alarm]:
        answer = self._answer
        return self._inspector.inspect(answer.tokens, answer.borders, cut.tokens, is_whole=answer.is_whole(cut))

    def _add_surprise(self, trial: _Trial, own: Sequence[bool]) -> Forwards:
        """Add what the causal pass finds surprising of the tokens that are the canvas's own."""
        logits, encoded, tokens = self._before.logits, None, trial.tokens
        if len(tokens) > 1:  # of a single token what stands before it says all
            encoded = yield from self._encode(tokens, self._answer.at, len(tokens))
            logits = torch.cat([logits, encoded.logits[:-1]])
        surprise = torch.where(torch.tensor(own), measure_surprise(logits, tokens), 0)
        alarms = trial.alarms + find_surprise(surprise, self._bounds)
        return trial._replace(alarms=alarms, encoded=encoded)

    def _trim(self, block: int, trial: _Trial) -> _Trial | None:
        """The tokens before the first alarm, if they are half of the block or more."""
        first = min(alarm.offset for alarm in trial.alarms)
        if not first or 2 * first < len(trial.tokens):
            return None
        self._note(block, trial.alarms, "trim", self._forwards)
        encoded = trial.encoded and Encoded(trial.encoded.logits[:first], trial.encoded.hidden[:first])
        return _Trial(trial.tokens[:first], None, [], trial.uncertainty[:first], encoded)

    def _write(self, block: int, alarms: Sequence[Alarm]) -> Forwards:
        """Half a canvas, or what is left, by the causal pass at its likeliest."""
        answer, limits, before = self._answer, self._limits, self._forwards
        action: Literal["ar", "verified"] = "verified" if self._params.gate == "causal" else "ar"
        context, asked = [*answer.prompt, *answer.tokens], answer.ask(action)
        guide = Guide(context, asked, self._seed, limits)
        if action == "ar":
            program = draw_tokens(context, asked, guide, limits)
        else:
            program = verify_blocks(
                context,
                asked,
                self._seed,
                limits,
                guide,
                defaults=self._defaults,
                weigh=self._weigh,
                window=self._window,
            )
        most = max(1, limits.canvas_length // 2)
        written = yield from resume(
            program,
            self._before,
            answer.at,
            lambda tokens: len(tokens) >= most or answer.cut(tokens).reason is not None,
        )
        self._steps, self._encodes = self._steps + written.steps, self._encodes + written.encodes
        cut = answer.cut(written.tokens)
        if any(alarm.kind == "void" for alarm in self._inspect(cut)):
            told = f"block {block} came out as nothing but padding, from {action} too"
            raise ValueError(f"{told}; look whether the prompt has the form that this checkpoint was trained on")
        encoded = None
        if not cut.reason:
            encoded = yield from self._encode(written.tokens[written.known :], answer.at + written.known, 1)
        self._note(block, alarms, action, before)
        scores = None if self._params.logprobs is None else written.scores[: len(cut.tokens)]
        return _Trial(cut.tokens, cut.reason, [], (0.0,) * len(cut.tokens), encoded, scores)

    def _commit(self, block: int, trial: _Trial) -> Generator[Encode | Block, Encoded | None, None]:
        """Tell a block and encode it, if that is not done and something follows."""
        tokens, encoded, scores, most = trial.tokens, trial.encoded, trial.scores, self._params.logprobs
        if most is not None and scores is None:
            if encoded is None:
                encoded = yield from self._encode(tokens, self._answer.at, len(tokens))
            logits = torch.cat([self._before.logits, encoded.logits[:-1]])
            scores = tuple(score(logits, tokens, most))
        yield Block(block, tokens, self._steps, scores, None if most is None else trial.uncertainty)
        if encoded is None and not trial.reason:
            encoded = yield from self._encode(tokens, self._answer.at, 1)
        if encoded is not None:
            self._before = _last(encoded)
        self._answer.keep(tokens)

    def _encode(self, tokens: list[int], at: int, read: int) -> Generator[Encode, Encoded | None, Encoded]:
        encoded = yield Encode(tokens, at, read)
        assert encoded is not None
        self._encodes += 1
        return encoded

    @property
    def _forwards(self) -> int:
        return self._steps + self._encodes

    def _note(self, block: int, alarms: Sequence[Alarm], action: Mending, before: int) -> None:
        kinds = tuple(dict.fromkeys(alarm.kind for alarm in alarms))
        self._interventions.append(Intervention(block, kinds, action, self._forwards - before))


def _last(encoded: Encoded) -> Encoded:
    return Encoded(encoded.logits[-1:], encoded.hidden[-1:])
