"""Batches of prompts given to both sides at once: our engine, and transformers with one padded batch."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.reference import Reference, Stop
from benchmarks.sides import Sides
from benchmarks.timing import as_measured, time_in_turn
from mezzotint.decoding.program import Block
from mezzotint.decoding.sampler import Sampler
from mezzotint.engine.config import EngineConfig
from mezzotint.engine.engine import Engine
from mezzotint.engine.request import Done, Failed, Request, Told
from mezzotint.llm import LLM, SamplingParams
from mezzotint.types import Receipt

Prompts = Sequence[list[int]]


class Answer(NamedTuple):
    """Tokens up to the end of the answer, and what they cost."""

    tokens: list[int]
    receipt: Receipt


class Together:
    """Our engine, to which a batch comes at once and which is empty again after it; nothing is cached in between."""

    def __init__(self, llm: LLM, rows: int, defaults: Sampler) -> None:
        """rows: of a batch at most. defaults: the checkpoint's sampler, or one that stops nothing early."""
        config = EngineConfig(max_rows=rows, prefix_cache=False, drafts=False)
        self._engine = Engine(llm.model, llm.limits, config, defaults=defaults)

    def answer(self, prompts: Prompts, params: Sequence[SamplingParams]) -> list[Answer]:
        """Answer a batch. Raises: RuntimeError for a request that fails."""
        tokens: dict[str, list[int]] = {}
        receipts: dict[str, Receipt] = {}
        for number, (prompt, own) in enumerate(zip(prompts, params, strict=True)):
            tokens[str(number)] = []
            self._engine.submit(Request(id=str(number), prompt=tuple(prompt), params=own))
        while not self._engine.is_idle:
            for outcome in self._engine.step():
                match outcome:
                    case Told(id, Block() as block):
                        tokens[id] += block.tokens
                    case Done(id, receipt):
                        receipts[id] = receipt
                    case Failed(id, _, reason):
                        raise RuntimeError(f"request {id} failed: {reason}")
        return [Answer(tokens[id], receipts[id]) for id in tokens]


class Batches:
    """The same batches for both sides, one a turn; what either counts as its tokens is told beside its seconds."""

    def __init__(self, ours: Together, theirs: Reference, prompts: Prompts, rows: int) -> None:
        """prompts: those of one batch after another."""
        self._ours, self._theirs, self._prompts, self._rows = ours, theirs, prompts, rows

    def of_turn(self, turn: int) -> Prompts:
        """The prompts of a turn."""
        return self._prompts[turn * self._rows : (turn + 1) * self._rows]

    def denoise_ours(self, stop: Stop, turn: int) -> int:
        """Our answers under their rule. Returns: tokens; where steps are fixed, all of a canvas.

        Raises: RuntimeError if steps are fixed and another number ran: the comparison would be void.
        """
        given = [
            SamplingParams(
                sampler="hf",
                steps=stop.steps,
                max_tokens=stop.max_tokens,
                seed=turn * self._rows + row,
                ignore_eos=stop.is_fixed,
            )
            for row in range(self._rows)
        ]
        answers = self._ours.answer(self.of_turn(turn), given)
        for answer in answers:
            if stop.is_fixed and answer.receipt.denoise_steps != (stop.steps,):
                raise RuntimeError(f"took {answer.receipt.denoise_steps} steps, {stop.steps} were asked for")
        return sum(len(answer.tokens) for answer in answers)

    def denoise_theirs(self, stop: Stop, ends: Collection[int], turn: int) -> int:
        """Their answers. Returns: tokens up to each end; where steps are fixed, all of a canvas."""
        found = self._theirs.answer_together(self.of_turn(turn), stop=stop, seed=turn)
        return sum(len(row) if stop.is_fixed else count_to_end(row, ends) for row in found)

    def draw_ours(self, tokens: int, turn: int) -> int:
        """Our greedy tokens one after another. Returns: how many."""
        params = SamplingParams(decoder="ar", temperature=0.0, max_tokens=tokens, ignore_eos=True)
        return sum(len(answer.tokens) for answer in self._ours.answer(self.of_turn(turn), [params] * self._rows))

    def draw_theirs(self, tokens: int, turn: int) -> int:
        """Their greedy tokens. Returns: how many."""
        return sum(map(len, self._theirs.continue_together(self.of_turn(turn), tokens=tokens)))


def count_to_end(tokens: Sequence[int], ends: Collection[int]) -> int:
    """How many tokens there are up to the first end, which counts."""
    return next((place + 1 for place, token in enumerate(tokens) if token in ends), len(tokens))


def time_both(ours: Callable[[int], int], theirs: Callable[[int], int], rounds: int) -> Sides:
    """Seconds a token of both sides, in turn, one value a round."""
    counted: dict[tuple[str, int], int] = {}

    def counting(name: str, call: Callable[[int], int], turn: int) -> None:
        counted[name, turn] = call(turn)

    calls = {name: partial(counting, name, call) for name, call in (("ours", ours), ("theirs", theirs))}
    seconds = time_in_turn(calls, rounds)
    ours_s, theirs_s = ([s / counted[name, turn] for turn, s in enumerate(seconds[name])] for name in calls)
    return Sides(as_measured(ours_s), as_measured(theirs_s))
