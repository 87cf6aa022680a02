"""The same prompts put to every decoder at every concurrency, in turn; how decoders compare, crossover says."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.closed_loop import ClosedLoop, Served, TurnClock
from benchmarks.crossover import Answers, accepted_a_second, tokens_a_second
from benchmarks.workload import Ask, draw_asks
from mezzotint.engine.config import EngineConfig
from mezzotint.engine.engine import Engine
from mezzotint.evaluate.config import Arm
from mezzotint.llm import LLM, SamplingParams
from mezzotint.model.assistant_weights import load_assistant
from mezzotint.model.compiled_assistant import compile_assistant
from mezzotint.types import tokens_per_forward

_TURNS = 16  # that a decoder takes at one concurrency


class Rates(NamedTuple):
    """What one decoder does at one concurrency. Latencies are of whole answers; a user is one request in flight."""

    tokens_per_s: float
    accepted_per_s: float
    user_tokens_per_s: float
    p50_s: float
    p95_s: float
    tokens_per_forward: float
    rows_per_forward: float
    accepted: int
    n: int
    step_budget: int


class Cell(NamedTuple):
    """One decoder at one concurrency: its answers, a value a prompt, and what they add up to."""

    answers: Answers
    rates: Rates


def sweep(
    llm: LLM, arms: Sequence[Arm], tasks: Sequence[str], levels: Sequence[int], n: int
) -> Iterator[tuple[int, dict[str, Cell]]]:
    """Measure `n` prompts with every arm at every concurrency, one concurrency after another.

    Yields: each concurrency and its cells by decoder. Every concurrency begins with empty engines, so that no prompt
    is found in a cache because it was asked before.
    """
    most = max(levels)
    asks = draw_asks(llm, tasks, n + 3 * most + 1)
    for level in levels:
        yield level, _measure(llm, arms, asks, level, n)


def _measure(llm: LLM, arms: Sequence[Arm], asks: Sequence[Ask], slots: int, n: int) -> dict[str, Cell]:
    loops = {arm.decoder: _loop(llm, arm, asks, slots, n) for arm in arms}
    for turn in range(1, _TURNS + 1):
        for loop in list(loops.values())[:: 1 if turn % 2 else -1]:
            loop.run(n * turn // _TURNS)
    return {name: _cell(llm, loop, asks[:n], slots) for name, loop in loops.items()}


def _loop(llm: LLM, arm: Arm, asks: Sequence[Ask], slots: int, n: int) -> ClosedLoop:
    clock, requests = TurnClock(), [ask.request(arm) for ask in asks]
    warm = n + max(2, slots)
    return ClosedLoop(
        serve(llm, slots, clock, with_drafter=arm.decoder == "mtp"),
        clock,
        slots,
        warm_up=requests[n:warm],
        measured=requests[:n],
        fillers=requests[warm:],
    )


def serve(llm: LLM, rows: int, clock: TurnClock, *, with_drafter: bool = False) -> Engine:
    """A checkpoint behind an engine of its own, as it comes. with_drafter: the one beside it."""
    drafter = load_assistant(llm.path.with_name(f"{llm.path.name}-drafter"), llm.model) if with_drafter else None
    if drafter is not None and llm.model.compiled is not None:
        compile_assistant(drafter)
    return Engine(
        llm.model,
        llm.limits,
        EngineConfig(max_rows=rows),
        defaults=llm.sampler(SamplingParams()),
        drafter=drafter,
        clock=clock,
    )


def _cell(llm: LLM, loop: ClosedLoop, asks: Sequence[Ask], slots: int) -> Cell:
    served = [loop.served[f"{ask.task} {ask.seed}"] for ask in asks]
    right = [ask.is_right(answer.tokens, llm) for ask, answer in zip(asks, served, strict=True)]
    answers = Answers(*(np.array(values, dtype=np.float64) for values in zip(*_values(served, right), strict=True)))
    return Cell(answers, _rates(answers, served, loop.engine, slots))


def _values(served: Sequence[Served], right: Sequence[bool]) -> Iterator[tuple[float, float, float]]:
    for answer, is_right in zip(served, right, strict=True):
        yield answer.receipt.output_tokens, float(is_right), answer.latency_s


def _rates(answers: Answers, served: Sequence[Served], engine: Engine, slots: int) -> Rates:
    receipts, stats = [answer.receipt for answer in served], engine.stats()
    forwards = stats.encodes.forwards + stats.denoises.forwards
    return Rates(
        tokens_per_s=slots * float(tokens_a_second(answers)),
        accepted_per_s=slots * float(accepted_a_second(answers)),
        user_tokens_per_s=float(np.median(answers.tokens / answers.latency_s)),
        p50_s=float(np.median(answers.latency_s)),
        p95_s=float(np.quantile(answers.latency_s, 0.95)),
        tokens_per_forward=tokens_per_forward(
            sum(receipt.output_tokens for receipt in receipts), sum(receipt.forwards for receipt in receipts)
        ),
        rows_per_forward=(stats.encodes.rows + stats.denoises.rows) / forwards,
        accepted=int(answers.accepted.sum()),
        n=len(served),
        step_budget=max(receipt.step_budget for receipt in receipts),
    )
