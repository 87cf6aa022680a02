"""One prompt answered by the plain loop, which shares nothing with anybody; several at once live in together."""

import time
from collections.abc import Iterator

import torch

from mezzotint.decoding import program
from mezzotint.decoding.constrain import generate_constrained
from mezzotint.decoding.gate import generate_gated
from mezzotint.decoding.generate import generate_blocks, generate_tokens
from mezzotint.decoding.policy import Costs
from mezzotint.decoding.verify import generate_guessed, generate_verified
from mezzotint.engine.costs import CostBook
from mezzotint.llm.checkpoint import Checkpoint
from mezzotint.llm.entry import Asked
from mezzotint.llm.events import Event
from mezzotint.llm.fold import Fold, Spent


@torch.inference_mode()
def answer_alone(asked: Asked, checkpoint: Checkpoint, book: CostBook) -> Iterator[Event]:
    """Answer a prompt as draft and block events, then its Completion. book: what `verified` weighs."""
    costs = book.read() if asked.params.decoder == "verified" else None
    started = prefilled = time.perf_counter()
    fold = Fold(asked, checkpoint, costs)
    for event in _events(asked, checkpoint, costs, book):
        if isinstance(event, program.Prefilled):
            prefilled = time.perf_counter()
        yield from fold.push(event)
    yield fold.complete(Spent(prefill_s=prefilled - started, generation_s=time.perf_counter() - prefilled))


def _events(asked: Asked, checkpoint: Checkpoint, costs: Costs | None, book: CostBook) -> Iterator[program.Event]:
    given = (asked.ids, asked.params, asked.seed, checkpoint.limits)
    defaults, constraint, stop = checkpoint.defaults, asked.constraint, asked.stop
    if asked.params.decoder == "ar":
        return generate_tokens(checkpoint.model, *given, constraint, stop)
    if asked.params.decoder == "verified":
        assert costs is not None
        return generate_verified(checkpoint.model, *given, constraint, stop, defaults=defaults, costs=costs)
    if asked.params.decoder == "mtp":
        assert checkpoint.drafter is not None  # entry saw to it
        return generate_guessed(checkpoint.model, checkpoint.drafter, *given, constraint, stop)
    if constraint is not None:
        return generate_constrained(checkpoint.model, *given, constraint, defaults=defaults)
    if asked.inspector is not None:
        return generate_gated(
            checkpoint.model,
            *given,
            asked.inspector,
            defaults=defaults,
            stopper=stop,
            weigh=book.read,
            bounds=checkpoint.bounds,
        )
    pins = {} if asked.blank is None else {0: asked.blank.pins}
    return generate_blocks(checkpoint.model, *given, defaults=defaults, pins=pins, stopper=stop)
