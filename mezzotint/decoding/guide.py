"""How one answer may go on, what must follow, and when it is over; what a canvas makes of it lives in constrain.

settled tokens ─► due: what has no alternative  ─► settled, without a forward
              └─► else a draw, or a canvas's own proposals, among what is allowed
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mezzotint.decoding.conflicts import check_conflicts
from mezzotint.decoding.known_end import find_end
from mezzotint.decoding.limits import Limits
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.program import Finished
from mezzotint.decoding.propose import draw_at
from mezzotint.decoding.score import score
from mezzotint.decoding.shape import make_bias, penalise
from mezzotint.decoding.thoughts import bound_thoughts
from mezzotint.types import Constraint, FinishReason, Score, Stopper


class Mark(NamedTuple):
    """A place in an answer under a grammar; see Guide.mark. length: tokens of the answer; the others as in Guide."""

    length: int
    room: int
    closure: list[int] | None
    queue: list[int]
    overridden: int
    forced: int


class Guide:
    """The settled part of one answer. Without a constraint everything may follow, and nothing is due but the token that
    closes thoughts where a bound on them is reached.

    room: tokens that may yet come, the end of turn included. reason: why the answer is over, None while it goes on.
    overridden: settled tokens at which the model's likeliest was not allowed. forced: those that had no alternative.
    chosen: where in the answer proposals were settled that had one.
    Under a constraint an answer that can end within max_tokens does: of what the model proposes, a token stays only if
    an end within the room is known behind it; else the known end is written.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        params: SamplingParams,
        seed: int,
        limits: Limits,
        constraint: Constraint | None = None,
        stopper: Stopper | None = None,
    ) -> None:
        """Begin an answer behind a prompt. constraint, stopper: at their beginning; copies of them are moved on.

        Raises: ValueError for options that exclude each other, with value and remedy.
        """
        check_conflicts(params, limits, is_constrained=constraint is not None, is_stopped=stopper is not None)
        self.room = params.max_tokens
        self.reason: FinishReason | None = None
        self.overridden = self.forced = 0
        self.chosen: list[int] = []
        self.ends = () if params.ignore_eos else tuple(limits.end_ids)
        self._params, self._seed, self._limits = params, seed, limits
        self._prompt, self._answer, self._bias = prompt, list[int](), make_bias(params, limits.vocab_size)
        self._place = None if constraint is None else constraint.copy()
        self._stopper = None if stopper is None else stopper.restart()
        self._thoughts = bound_thoughts(prompt, params, limits)
        # Ids that complete the answer and leave room for its end; None where none were found.
        self._closure = None if self._place is None else self._place.closure(self.room - 1)
        self._queue: list[int] = []
        self._scores: list[Score] = []
        self._find_due()

    @property
    def length(self) -> int:
        """Tokens of the answer that are settled."""
        return len(self._answer)

    @property
    def shortest(self) -> int:
        """Ids that the known end still takes; 0 where none is known."""
        return len(self._closure or ())

    def draw(self, logits: Tensor, position: int) -> int:
        """Settle the next token: the one that is due, or ar's own seeded draw among those allowed.

        logits: [V] of what stands before the absolute `position`; they score it, if that was asked for.
        Source: contract 5.
        """
        token = self._write_due() if self._queue else self._draw(logits, position)
        if self._params.logprobs is not None:
            self._scores += score(logits[None], [token], self._params.logprobs)
        return token

    def _draw(self, logits: Tensor, position: int) -> int:
        shaped = self._shape(logits)
        masked = self.mask(shaped)
        self.overridden += masked is not shaped and bool(masked[shaped.argmax()] == -torch.inf)
        token = self._take(draw_at(masked, self._params, self._seed, position))
        self._find_due()
        return token

    def mask(self, logits: Tensor) -> Tensor:
        """Logits [V] of the next token with −∞ for what may not come next. Raises: ValueError if nothing may."""
        if self._place is None:
            return logits
        allowed = self._allowed(self._place, len(logits)).to(logits.device)
        masked = logits.masked_fill(~allowed, -torch.inf)
        if bool((masked == -torch.inf).all()):
            told = "the grammar allows nothing behind what was written" + " that logit_bias does not bar" * bool(
                self._bias is not None
            )
            raise ValueError(f"{told}; simplify it, or leave it out")
        return masked

    def settle_free(self) -> list[int]:
        """Settle what is due without a forward; nothing if tokens are scored, which takes one. Returns: the tokens."""
        return self.due() if self._params.logprobs is None else []

    def peek(self, limit: int) -> list[int]:
        """The tokens that are due, at most `limit`; they stay so."""
        return self._queue[: max(0, limit)]

    def take_scores(self) -> tuple[Score, ...] | None:
        """Scores of the tokens drawn since they were taken last; None where nobody asked for them."""
        taken, self._scores = tuple(self._scores), []
        return None if self._params.logprobs is None else taken

    def due(self, limit: int | None = None) -> list[int]:
        """Settle at most `limit` tokens that have no alternative. Returns: them."""
        tokens: list[int] = []
        while self._queue and (limit is None or len(tokens) < limit):
            tokens.append(self._write_due())
        return tokens

    def settle(self, ids: Sequence[int]) -> list[int]:
        """Settle proposals that count_valid has counted.

        Returns: the settled ones; they are the proposals up to where the answer has to end instead.
        """
        if self._closure is not None and self.room - len(ids) > len(self._closure) + 1:
            # No end is near: one look at where they lead is enough, unless it finds none.
            mark, known = self.mark(), self._closure
            tokens = self._settle(ids, checks=False)
            if self.reason or self._renew_end(known):
                return tokens
            self.take_back(mark)
        return self._settle(ids, checks=True)

    def mark(self) -> Mark:
        """Note this place, to come back to it."""
        counted = (self.overridden, self.forced)
        return Mark(len(self._answer), self.room, self._closure, list(self._queue), *counted)

    def take_back(self, mark: Mark) -> None:
        """Forget what was settled behind a place, as if it had never been. Only under a grammar; the answer goes on."""
        assert self._place is not None
        assert self.reason is None
        self._place.rollback(len(self._answer) - mark.length)
        del self._answer[mark.length :]
        self.chosen = [at for at in self.chosen if at < mark.length]
        self.room, self._closure, self._queue = mark.room, mark.closure, list(mark.queue)
        self.overridden, self.forced = mark.overridden, mark.forced

    def count_valid(self, ids: Sequence[int]) -> int:
        """How many of `ids` may follow one behind the other, an end of turn behind a whole answer included."""
        if self._place is None:
            return len(ids) if self._thoughts is None else self._thoughts.count_free(ids, self.room)
        first = next((index for index, id in enumerate(ids) if id in self.ends), len(ids))
        count = self._place.count_valid(ids[:first])
        if count < first or first == len(ids):
            return count
        whole = self._place.copy()
        whole.consume(ids[:first])
        return count + whole.is_accepting

    def finish(self, encodes: int, drafted: int = 0, accepted: int = 0, guesses: int = 0) -> Finished:
        """The end of an answer that is over, with what it took; see Finished."""
        assert self.reason
        return Finished(self.reason, encodes, drafted, accepted, guesses, self.overridden, self.forced)

    def _settle(self, ids: Sequence[int], *, checks: bool) -> list[int]:
        tokens: list[int] = []
        for token in ids:
            if self._queue and self._queue[0] != token:
                break  # what is due here is spelled otherwise
            is_due, at = bool(self._queue), len(self._answer)
            tokens.append(self._write_due(checks=checks) if is_due else self._take(token, checks=checks))
            if not is_due and tokens[-1] == token:
                self.chosen.append(at)
            self._find_due()
            if self.reason or tokens[-1] != token:
                break
        return tokens

    def _allowed(self, place: Constraint, vocab_size: int) -> Tensor:
        """[V] bool, True for the ids that may come next."""
        bits = np.unpackbits(np.frombuffer(place.allowed(), dtype=np.uint8), bitorder="little")[:vocab_size]
        allowed = torch.zeros(vocab_size, dtype=torch.bool)
        allowed[: len(bits)] = torch.from_numpy(bits).bool()
        if place.is_accepting:
            allowed[list(self.ends)] = True
        return allowed

    def _shape(self, logits: Tensor) -> Tensor:
        """Logits [V] as the request shapes them, before a grammar's mask."""
        params = self._params
        if self._bias is not None:
            logits = logits + self._bias.to(logits)
        if params.presence_penalty or params.frequency_penalty or params.repetition_penalty != 1:
            logits = penalise(logits, params, self._prompt, self._answer)
        if len(self._answer) < params.min_tokens:
            logits = logits.clone()
            logits[list(self._limits.end_ids)] = -torch.inf
        return logits

    def _write_due(self, *, checks: bool = True) -> int:
        token = self._take(self._queue.pop(0), checks=checks)
        self.forced += 1
        self._find_due()
        return token

    def _take(self, id: int, *, checks: bool = True) -> int:
        """Settle `id`, or what must stand there instead. Returns: what was settled.

        checks: whether an end within the room must be known behind it.
        """
        if self._place is not None and id not in self.ends:
            id = self._consume(self._place, id, checks=checks)
        self.room -= 1
        self._answer.append(id)
        if self._thoughts is not None:
            self._thoughts.take(id)
        is_stopped = self._stopper is not None and self._stopper.count_kept([id]) is not None
        if id in self.ends or is_stopped:
            self.reason = "stop"
        elif not self.room:
            self.reason = "length"
            self._queue.clear()
        return id

    def _consume(self, place: Constraint, id: int, *, checks: bool) -> int:
        closure = self._closure
        place.consume([id])
        if closure is None:
            return id
        if closure[:1] == [id]:
            self._closure = closure[1:]
            return id
        if not checks:
            return id
        found = find_end(place, closure, self.room - 2)  # this token's place and the end's
        if found is not None:
            self._closure = found
            return id
        place.rollback(1)
        self._queue.clear()
        if not closure:
            return self._limits.written_end
        place.consume(closure[:1])
        self._closure = closure[1:]
        return closure[0]

    def _renew_end(self, known: list[int]) -> bool:
        """Find an end within the room behind tokens that were settled unchecked. Returns: whether there is one."""
        assert self._place is not None
        found = find_end(self._place, known, self.room - 1)
        if found is None:
            return False
        self._closure = found
        self._find_due()
        return True

    def _find_due(self) -> None:
        """Note what has no alternative behind what is settled: forced text, a known end for which time has come."""
        if self._queue or self.reason:
            return
        if self._place is None:
            if self._thoughts is not None and self._thoughts.must_close(self.room):
                self._queue = [self._thoughts.closing]
        elif self._place.is_stopped:
            self._queue = [self._limits.written_end]
        elif self._closure is not None and len(self._closure) + 1 >= self.room:
            self._queue = [*self._closure, self._limits.written_end]
        else:
            self._queue = self._place.forced()
