"""`mezzotint calibrate`: every arm of a fleet asked at several loads, before there is traffic to learn from."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mezzotint.cli.flags import unfold
from mezzotint.cli.options import Loading

if TYPE_CHECKING:
    from mezzotint.router.calibrate import CalibrateConfig, Probe, Progress
    from mezzotint.router.fleet import Fleet
    from mezzotint.router.record import Attempt
    from mezzotint.server import Backend

_TASKS = "extract,call,choose,repair,repeat"


@dataclass(frozen=True, kw_only=True)
class Probing:
    """What arms are asked, at which loads; no default of a calibration but these stands here."""

    file: Annotated[
        Path | None, typer.Option(help="Chats to ask, a body in OpenAI's form a line, instead of tasks.")
    ] = None
    tasks: Annotated[str, typer.Option(help="Seeded tasks to ask, with commas; their answers are verified.")] = _TASKS
    probes: Annotated[int, typer.Option(help="Prompts of tasks, taking turns.")] = 120
    seed: Annotated[int, typer.Option(help="Of the first prompt.")] = 0
    loads: Annotated[str, typer.Option(help="Requests at once, with commas.")] = "1,2,4,8"
    rounds: Annotated[int, typer.Option(help="Waves of each arm at each load.")] = 4
    max_tokens: Annotated[int, typer.Option(help="Most tokens of an answer to a task.")] = 128


@unfold
def calibrate(
    fleet: Annotated[Path, typer.Option("--fleet", help="The file of arms, as `mezzotint serve` is given it.")],
    loading: Loading,
    probing: Probing,
) -> None:
    """Ask every arm of a fleet the same prompts at several loads, and keep what came of it in the ledger.

    A server that is started with the same fleet, weights and options then decides by it from its first request on.
    """
    from mezzotint.router.calibrate import CalibrateConfig

    config = CalibrateConfig(loads=_read_loads(probing.loads), rounds=probing.rounds)
    probes = list(_read_probes(probing))
    # Importing torch takes seconds, and --help is not to wait for it: see options.
    from mezzotint.cli.fleet import load_fleet

    loaded = load_fleet(fleet, loading)
    asyncio.run(_run(loaded.fleet, loaded.backend, config, probes))


async def _run(fleet: "Fleet", backend: "Backend", config: "CalibrateConfig", probes: "Sequence[Probe]") -> None:
    from mezzotint.router.calibrate import calibrate

    async def ask(arm: str, probe: "Probe") -> "Attempt | None":
        return await fleet.measure(arm, probe.body, probe.verifier)

    await asyncio.to_thread(backend.start)
    await fleet.start()
    try:
        # The fleet notes what it measures itself: in its ledger, and in its policy.
        async for progress in calibrate(config, fleet.arms, probes, ask, lambda attempt: None):
            _show(progress)
    finally:
        await fleet.stop()
        await asyncio.to_thread(backend.stop)


def _read_loads(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--loads is {text!r}; write whole numbers with commas between them") from None


def _read_probes(probing: Probing) -> "Iterator[Probe]":
    """Chats of the file, or prompts of tasks that no held-out prompt is among. Raises: ValueError."""
    from mezzotint.bench.families import family_hop
    from mezzotint.router.calibrate import Probe, read_bodies
    from mezzotint.tasks import FAMILIES

    if probing.file is not None:
        yield from (Probe(body) for body in read_bodies(probing.file.read_text(encoding="utf-8").splitlines()))
        return
    names = probing.tasks.split(",")
    if strange := [name for name in names if name not in FAMILIES or name == "infill"]:
        known = ", ".join(name for name in FAMILIES if name != "infill")
        raise ValueError(f"--tasks names {strange[0]!r}, which no chat can ask; choose from {known}")
    for at in range(probing.probes):
        family = FAMILIES[names[at % len(names)]]
        hop = family_hop(family, family.generate(probing.seed + at, "train"))
        body: dict[str, Any] = {"messages": list(hop.messages), "max_tokens": probing.max_tokens, **hop.extra}
        yield Probe({**body, "tools": list(hop.tools)} if hop.tools else body, hop.verifier)


def _show(progress: "Progress") -> None:
    wave = progress.wave
    told = f", {progress.refused} refused" if progress.refused else ""
    print(f"{progress.done} of {progress.waves}: {wave.arm} at {wave.load}{told}", file=sys.stderr, flush=True)
