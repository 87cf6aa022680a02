"""How long it takes from the start of a process to its first answer with lab, eager and as machine code.

    python -m benchmarks.cold_start

The files that a process reads may still be in memory; "first time" means that no machine code is there yet.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.machine import describe_run
from benchmarks.report import markdown_table, run_table
from mezzotint.tasks import FAMILIES

LIMIT_S = 10.0


class Start(NamedTuple):
    """A process from its start to its end: what it wrote, seconds that passed, and of processors, children included."""

    text: str
    passed_s: float
    processor_s: float


def main(arguments: Sequence[str]) -> None:
    """Start processes and print what they took as Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cold_start", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=5, help="processes of each kind")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}; give 1 or more")
    print(run_table(describe_run(arguments, "cold_start")), flush=True)
    rows = []
    for name, starts in start_in_turn(options.rounds).items():
        passed, worked = ([getattr(each, field) for each in starts] for field in ("passed_s", "processor_s"))
        figures = [f"{median(values):.2f} ({max(values):.2f})" for values in (passed, worked)]
        rows.append([name, *figures, str(len(starts)), f"< {LIMIT_S:g}"])
    head = ["time to first answer", "s (most)", "s of processors (most)", "n", "target"]
    print("", markdown_table(head, rows), sep="\n")


def start_in_turn(rounds: int) -> dict[str, list[Start]]:
    """Processes of all kinds, one after another, `rounds` times."""
    starts: dict[str, list[Start]] = {"eager": [], "compiled, first time": [], "compiled, later": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            starts["eager"].append(start_once([]))
            for name in ("compiled, first time", "compiled, later"):
                starts[name].append(start_once(["--compile"], {"XDG_CACHE_HOME": folder}))
    return starts


def start_once(options: Sequence[str], environment: Mapping[str, str] | None = None) -> Start:
    """Let a new process answer a held-out prompt of extract with lab. Raises: RuntimeError if it fails."""
    [message] = FAMILIES["extract"].generate(0, "test").messages
    command = [sys.executable, "-m", "mezzotint", "generate", message["content"], "--seed", "0", *options]
    worked, started = _worked_s(), time.perf_counter()
    surroundings = {**os.environ, **(environment or {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:4])} failed: {done.stderr[-2000:]}")
    return Start(done.stdout, time.perf_counter() - started, _worked_s() - worked)


def _worked_s() -> float:
    """Seconds that processors gave to processes which this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(sys.argv[1:])
