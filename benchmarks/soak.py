"""`make soak`: many mixed requests at once on one service for a while, each of them checked; measures no speed.

    python -m benchmarks.soak                 # twenty minutes
    python -m benchmarks.soak --minutes 2     # what CI runs

It fails if an event is lost, doubled or out of order, if an answer is not its plain loop's, if a page is leaked or
held twice, if a step crashes, or if memory grows.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.tiny import random_drafter, tiny_model
from benchmarks.traffic import DECODERS, Traffic, Visit
from mezzotint.decoding.generate import Limits, generate_blocks, generate_tokens
from mezzotint.decoding.policy import SMALL_MODEL
from mezzotint.decoding.program import Block, Draft, Drafter, Event, Finished, Prefilled
from mezzotint.decoding.sampler import SAMPLERS
from mezzotint.decoding.verify import generate_guessed, generate_verified
from mezzotint.engine.config import EngineConfig
from mezzotint.engine.costs import CostBook
from mezzotint.engine.engine import Engine
from mezzotint.engine.request import Done, Failed, Outcome, Request
from mezzotint.engine.room import Claim
from mezzotint.engine.service import Service
from mezzotint.engine.stats import Stats
from mezzotint.model.diffusion_gemma import DiffusionGemma
from mezzotint.model.kv import kv_bytes
from mezzotint.model.weights import load_model

READERS, SAMPLE, EVERY = 64, 60, 25  # at once; answers compared with the plain loop; steps from check to check
WARM, GROWTH = 1 / 3, 0.05  # of the time, before memory is noted; of that memory, what it may grow by
_DEFAULTS = replace(SAMPLERS["report"], budget=6, entropy_bound=4.0)


class CheckedEngine(Engine):
    """An engine whose accounts are checked every few steps; a wrong one crashes the step, which the soak reports."""

    checks = 0
    steps = 0

    def step(self) -> list[Outcome]:
        """See Engine.step."""
        outcomes = super().step()
        self.steps += 1
        if self.steps % EVERY == 0:
            self.check_integrity()
            self.checks += 1
        return outcomes


class Answered(NamedTuple):
    """A request and all blocks of its answer."""

    request: Request
    blocks: list[Block]


@dataclass(kw_only=True)
class Log:
    """What readers saw. sample: answers drawn evenly from all that finished."""

    ends: Counter[str] = field(default_factory=Counter)
    decoders: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    sample: list[Answered] = field(default_factory=list)
    _draw: random.Random = field(default_factory=lambda: random.Random(0))

    def finish(self, answered: Answered) -> None:
        """Count an answer, and keep it with an even chance."""
        self.ends["finished"] += 1
        self.decoders[answered.request.params.decoder] += 1
        place = len(self.sample) if len(self.sample) < SAMPLE else self._draw.randrange(self.ends["finished"])
        if place < SAMPLE:
            self.sample[place : place + 1] = [answered]


async def follow(visit: Visit, outcomes: AsyncIterator[Outcome], log: Log) -> list[Block] | None:
    """Read one answer and note what is wrong with its order. Returns: its blocks, None where it was not finished."""
    events: list[Event] = []
    async for outcome in outcomes:
        if outcome.id != visit.request.id:
            log.violations.append(f"{visit.request.id} was told of {outcome.id}")
        if isinstance(outcome, Failed):
            log.ends[outcome.kind] += 1
            if outcome.kind not in ("cancelled", "deadline"):
                log.violations.append(f"{outcome.id} failed: {outcome.reason}")
            return None
        if isinstance(outcome, Done):
            log.violations += [f"{outcome.id}: {wrong}" for wrong in find_disorder(events, outcome)]
            return [event for event in events if isinstance(event, Block)]
        events.append(outcome.event)
        if visit.leaves_after is not None and len(events) > visit.leaves_after:
            log.ends["left"] += 1
            return None
    log.violations.append(f"{visit.request.id} ended without an end")
    return None


def find_disorder(events: Sequence[Event], done: Done) -> list[str]:
    """What is lost, doubled or out of order in an answer; drafts alone may be missing."""
    found: list[str] = []
    blocks = [event for event in events if isinstance(event, Block)]
    if [block.block for block in blocks] != list(range(len(blocks))):
        found.append(f"blocks {[block.block for block in blocks]} came")
    steps = [event for event in events if isinstance(event, Draft | Block)]
    order = [(step.block, isinstance(step, Block), step.step if isinstance(step, Draft) else 0) for step in steps]
    if order != sorted(set(order)):
        found.append("drafts and blocks are out of order")
    ends = [type(event) for event in events if not isinstance(event, Draft | Block)]
    if ends != [Prefilled, Finished] or not isinstance(events[0], Prefilled) or not isinstance(events[-1], Finished):
        found.append(f"it began and ended with {ends}")
    if sum(len(block.tokens) for block in blocks) != done.receipt.output_tokens:
        found.append(f"the receipt has {done.receipt.output_tokens} tokens, the blocks have others")
    return found


async def read_on(service: Service, traffic: Traffic, log: Log, until_s: float) -> None:
    """One reader: a visit after another."""
    while time.monotonic() < until_s:
        visit = traffic.next()
        async with aclosing(service.stream(visit.request)) as outcomes:
            blocks = await follow(visit, outcomes, log)
        if blocks is not None:
            log.finish(Answered(visit.request, blocks))
            traffic.remember(visit.request, [token for block in blocks for token in block.tokens])


async def watch_memory(seconds: float, noted: list[int]) -> None:
    """Note this process's memory once it is warm, and ten times after that."""
    await asyncio.sleep(WARM * seconds)
    for _ in range(11):
        noted.append(resident_bytes())
        await asyncio.sleep((1 - WARM) * seconds / 11)


def resident_bytes() -> int:
    """Memory of this process that is in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def plain_blocks(model: DiffusionGemma, drafter: Drafter, limits: Limits, request: Request) -> list[Block]:
    """The blocks that the plain loop gives."""
    prompt, params, seed = list(request.prompt), request.params, request.params.seed
    assert seed is not None  # traffic names one
    if params.decoder == "ar":
        events = generate_tokens(model, prompt, params, seed, limits)
    elif params.decoder == "verified":
        events = generate_verified(model, prompt, params, seed, limits, defaults=_DEFAULTS)
    elif params.decoder == "mtp":
        events = generate_guessed(model, drafter, prompt, params, seed, limits)
    else:
        events = generate_blocks(model, prompt, params, seed, limits, defaults=_DEFAULTS, pins=request.pins)
    with torch.inference_mode():
        return [event for event in events if isinstance(event, Block)]


def soak(model: DiffusionGemma, seconds: float, *, readers: int, seed: int) -> int:
    """Serve for a while, check everything, and print what was found. Returns: how many violations."""
    config = model.config
    limits = Limits(
        vocab_size=config.vocab_size,
        canvas_length=config.canvas_length,
        max_positions=config.max_positions,
        end_ids=config.eos_ids,
    )
    # Memory for a fifth of the rows at their longest, so that some have to yield.
    memory = kv_bytes(config, max(2, readers // 5) * config.max_positions, model.dtype)
    sizes = EngineConfig(memory_bytes=memory, page_size=8, chunk_tokens=config.max_positions // 4, max_rows=readers)
    drafter = random_drafter(model)
    book = CostBook(model, limits, SMALL_MODEL)  # what the plain loop weighs, so that blocks can be compared
    engine = CheckedEngine(model, limits, sizes, defaults=_DEFAULTS, drafter=drafter, costs=book)
    # At every other step rows are let in as if those that run needed no more, so that some have to yield after all.
    claim, nothing = engine.room.claim, Claim(0, 0, 0)
    engine.room.claim = lambda row: claim(row) if engine.steps % 2 else nothing  # type: ignore[method-assign]
    log, noted = Log(), list[int]()
    service = Service(engine)
    with service:
        asyncio.run(_serve(service, Traffic(limits, seed=seed), log, noted, seconds, readers))
        service.drain()
        engine.check_integrity()
        stats = service.stats()
    log.violations += find_leaks(stats) + find_growth(noted)
    for answered in log.sample:
        if plain_blocks(model, drafter, limits, answered.request) != answered.blocks:
            log.violations.append(f"{answered.request} is not answered as by the plain loop")
    print(table(log, stats, engine.checks, noted, seconds))
    for violation in log.violations[:20]:
        print(f"VIOLATION: {violation}")
    return len(log.violations)


async def _serve(service: Service, traffic: Traffic, log: Log, noted: list[int], seconds: float, readers: int) -> None:
    until_s = time.monotonic() + seconds
    memory = watch_memory(seconds, noted)
    await asyncio.gather(memory, *[read_on(service, traffic, log, until_s) for _ in range(readers)])


def find_leaks(stats: Stats) -> list[str]:
    """What an engine still holds when all its requests have ended, and what this soak was too gentle to try."""
    found = []
    if stats.full.used or stats.sliding.used or stats.running or stats.waiting:
        found.append(f"an idle engine holds pages or rows: {stats}")
    if stats.submitted != stats.finished + sum(stats.failed.values()):
        found.append(f"requests were lost: {stats}")
    if not (stats.preemptions and stats.prefix_hits and stats.failed.get("cancelled")):
        found.append(f"nothing yielded, was shared or was cancelled: soak for longer ({stats})")
    return found


def find_growth(noted: Sequence[int]) -> list[str]:
    """Whether memory went on growing once it was warm."""
    most = max(noted[1:])
    grew = f"memory grew by {most / noted[0] - 1:.1%} of {noted[0]:,} bytes"
    return [grew] if most > (1 + GROWTH) * noted[0] else []


def table(log: Log, stats: Stats, checks: int, noted: Sequence[int], seconds: float) -> str:
    """What was done, as a table in Markdown."""
    decoders = ", ".join(f"{name} {log.decoders[name]}" for name in DECODERS)
    ends = ", ".join(f"{kind} {count}" for kind, count in sorted(log.ends.items()))
    rows = {
        "minutes": f"{seconds / 60:g}",
        "requests": f"{stats.submitted}: {ends}",
        "finished by decoder": decoders,
        "tokens": f"{stats.emitted_tokens:,} in {stats.steps:,} steps",
        "forwards": f"encode {stats.encodes.forwards:,}, denoise {stats.denoises.forwards:,}",
        "rows a denoise": f"{stats.denoises.rows / max(1, stats.denoises.forwards):.1f}",
        "prefix hits": f"{stats.prefix_hits:,}, {stats.prefix_tokens:,} tokens; evictions {stats.evictions:,}",
        "preemptions": f"{stats.preemptions:,}",
        "accounts checked": f"{checks:,} times",
        "answers compared": f"{len(log.sample)}",
        "memory": f"{noted[0] / 2**20:.0f} MiB warm, {max(noted[1:]) / 2**20:.0f} MiB at most after that",
        "violations": f"{len(log.violations)}",
    }
    return "\n".join(["| soak | |", "| --- | --- |", *[f"| {name} | {value} |" for name, value in rows.items()]])


def main(arguments: Sequence[str]) -> int:
    """Run from the command line. Returns: the exit status, 1 after a violation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0, help="how long requests are taken")
    parser.add_argument("--readers", type=int, default=READERS, help="requests at once")
    parser.add_argument("--model", help="a checkpoint, in float64; default: tiny random weights")
    parser.add_argument("--seed", type=int, default=0, help="of what is asked")
    options = parser.parse_args(arguments)
    model = load_model(options.model, dtype=torch.float64) if options.model else tiny_model()
    return int(soak(model, 60 * options.minutes, readers=options.readers, seed=options.seed) > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
