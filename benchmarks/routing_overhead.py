"""What routing costs a request: `python -m benchmarks.routing_overhead`; policy and ledger are real, arms instant.

The policy knows 2,000 attempts of six arms, the ledger is a file, and prompts are counted by lab's tokenizer. Told are
milliseconds: what a client waits for besides its arm (`overhead_ms` of its answer), and the processor's for one request
from its body to its last chunk.
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mezzotint.model.locate import BUNDLED
from mezzotint.router.fleet import Fleet
from mezzotint.router.ledger import Ledger
from mezzotint.router.policy import Policy
from mezzotint.router.policy_file import PolicyConfig
from mezzotint.router.record import Attempt
from mezzotint.text.prompt import Chat, PromptEncoder
from mezzotint.types import ArmTraits, Verdict

_ARMS = ("canvas-4", "canvas-8", "canvas-16", "ar", "verified", "elsewhere")
_KINDS = ("text-short", "schema-medium", "call-short", "code-medium")
_WARM = 20  # requests that are not counted


class Instant:
    """An arm that answers at once."""

    def __init__(self, name: str) -> None:
        self.traits = ArmTraits(name=name, engine="here", is_local=True, context=4096, busy_price=0.001)
        self.in_flight, self.is_up = 0, True

    async def stream(self, body: Mapping[str, Any], timeout_s: float) -> AsyncGenerator[dict[str, Any], None]:
        """See Arm."""
        said: tuple[tuple[dict[str, Any], str | None], ...] = (
            ({"role": "assistant", "content": ""}, None),
            ({"content": "yes"}, None),
            ({}, "stop"),
        )
        for delta, reason in said:
            yield {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}
        usage = {"prompt_tokens": 20, "completion_tokens": 2, "total_tokens": 22}
        yield {"choices": [], "usage": usage, "metrics": {"generation_time_ms": 1.0}}


class Agreeable:
    """A verifier that takes everything."""

    async def verify(self, messages: Any, answer: Any) -> Verdict:
        """See Verifier."""
        return Verdict(accepted=True)


class Measured(NamedTuple):
    """Milliseconds: the overhead of each request, and the processor's a request."""

    overheads: list[float]
    processor: float


def remember(count: int) -> list[Attempt]:
    """Attempts that a policy may have seen."""
    drawn = random.Random(0)
    return [
        Attempt(
            decision=str(at),
            index=0,
            arm=drawn.choice(_ARMS),
            kind=drawn.choice(_KINDS),
            outcome="accepted" if drawn.random() < 0.7 else "rejected",
            seconds=drawn.uniform(0.1, 0.5),
            prompt_tokens=drawn.randrange(20, 200),
            output_tokens=drawn.randrange(5, 100),
            in_flight=drawn.randrange(1, 9),
            prefill_s=0.01,
            generation_s=0.1,
        )
        for at in range(count)
    ]


async def measure(requests: int, folder: Path) -> Measured:
    """Route requests one behind the other, every other one streamed, each verified."""
    arms = [Instant(name) for name in _ARMS]
    policy = Policy(PolicyConfig(), [arm.traits for arm in arms], seed=0, clock=time.time)
    policy.restore(remember(2000))
    prompts = PromptEncoder.from_directory(BUNDLED / "lab")
    fleet = Fleet(
        arms,
        policy,
        Ledger(folder / "ledger.sqlite", "benchmark"),
        count_tokens=lambda body: len(prompts.encode(Chat(messages=list(body["messages"])), 2048)),
        make_verifier=lambda accept: Agreeable(),
    )
    await fleet.start()
    overheads, began_s = list[float](), 0.0
    for at in range(_WARM + requests):
        if at == _WARM:
            began_s = time.process_time()
        messages = [
            {"role": "user", "content": f"Extract the fields of record {at}.\n" + "name: Ada; town: Bern. " * 8}
        ]
        body = {"model": "auto", "messages": messages, "max_tokens": 64, "x_route": {"accept": {"type": "exact"}}}
        opened = await fleet.open(body, stream=bool(at % 2), usage=True)
        [*_, last] = [chunk async for chunk in opened.chunks]
        overheads.append(last["metrics"]["route"]["overhead_ms"])
    spent_s = time.process_time() - began_s
    await fleet.stop()
    return Measured(overheads[_WARM:], 1000 * spent_s / requests)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.routing_overhead")
    parser.add_argument("--requests", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        overheads, processor = asyncio.run(measure(given.requests, Path(folder)))
    shares = statistics.quantiles(overheads, n=100)
    print(f"n {given.requests}: overhead p50 {shares[49]:.2f} ms, p95 {shares[94]:.2f} ms; ", end="")
    print(f"processor {processor:.2f} ms a request")


if __name__ == "__main__":
    main()
