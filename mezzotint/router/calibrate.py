"""What is asked before there is traffic, so that arms are known at the loads they will have; no HTTP of its own."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mezzotint.router.record import Attempt
from mezzotint.types import Verifier


class Probe(NamedTuple):
    """A chat's body in OpenAI's form, and what says whether an answer to it is right, if anything does."""

    body: Mapping[str, Any]
    verifier: Verifier | None = None


class Wave(NamedTuple):
    """Probes, by their numbers, that are put to one arm at once: as many as the load."""

    arm: str
    load: int
    probes: tuple[int, ...]


class Progress(NamedTuple):
    """How far it is: the last wave, waves done, of how many, and how many probes an arm refused so far."""

    wave: Wave
    done: int
    waves: int
    refused: int


@dataclass(frozen=True, kw_only=True)
class CalibrateConfig:
    """A calibration: at each of `loads` every arm answers `rounds` waves of as many probes as the load is.

    Raises: ValueError naming option, value and remedy.
    """

    loads: tuple[int, ...] = (1, 2, 4, 8)
    rounds: int = 8

    def __post_init__(self) -> None:
        if not self.loads or min(self.loads) < 1 or len(set(self.loads)) < len(self.loads):
            raise ValueError(f"loads are {list(self.loads)}; give one or more, each at least 1 and there once")
        if self.rounds < 1:
            raise ValueError(f"rounds is {self.rounds}; it must be at least 1")


def plan_waves(config: CalibrateConfig, arms: Sequence[str], probes: int) -> list[Wave]:
    """Plan which probes each arm answers at each load.

    All arms answer the same probes of a round, one arm after the other, and every other round in reverse (A B, B A), so
    that a machine that slows down slows all alike. Each load goes on with the probes where the last round ended.
    Raises: ValueError if there is no arm or no probe.
    """
    if not arms or probes < 1:
        raise ValueError(f"there are {len(arms)} arms and {probes} probes; give at least one of each")
    waves, first = [], 0
    for load in config.loads:
        for turn in range(config.rounds):
            taken = tuple((first + place) % probes for place in range(load))
            waves += [Wave(arm, load, taken) for arm in (arms if turn % 2 == 0 else reversed(arms))]
            first += load
    return waves


async def calibrate(
    config: CalibrateConfig,
    arms: Sequence[str],
    probes: Sequence[Probe],
    ask: Callable[[str, Probe], Awaitable[Attempt | None]],
    note: Callable[[Attempt], None],
) -> AsyncGenerator[Progress, None]:
    """Put probes to arms, wave after wave, and hand on what came of each.

    ask: has an arm answer a probe, verified where it can be; None where the arm refuses the request as such.
    note: takes every attempt, also failed ones: a ledger, a policy.
    Returns: how far it is, behind every wave. What `ask` raises ends it.
    """
    waves = plan_waves(config, arms, len(probes))
    refused = 0
    for done, wave in enumerate(waves, 1):
        for attempt in await asyncio.gather(*(ask(wave.arm, probes[number]) for number in wave.probes)):
            if attempt is None:
                refused += 1
            else:
                note(attempt)
        yield Progress(wave, done, len(waves), refused)


def read_bodies(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Read chats to probe with, a JSON object a line; empty lines are none.

    Raises: ValueError naming the line that holds none.
    """
    bodies = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            body = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number} is no JSON ({error}); write a chat's body a line") from error
        if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
            raise ValueError(f"line {number} has no messages; write a chat's body in OpenAI's form")
        bodies.append(body)
    return bodies
