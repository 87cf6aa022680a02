"""Kills a process that writes a ledger, at random moments, and reads what is left; `python -m tests.router.kill 200`.

The writer says on a pipe what it was told is kept. No test lives here.
"""

import os
import signal
import sqlite3
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mezzotint.router.ledger import Ledger
from tests.router.test_ledger import ATTEMPT, DECISION


class Survival(NamedTuple):
    """What was said to be kept and what was found of it, over all kills; broken: what the file's own check found."""

    kills: int
    acknowledged: int
    lost: int
    broken: list[str]


def write_for_ever(path: Path, run: int, pipe: int) -> None:
    """Write decisions, attempts and verdicts, and say each on a pipe once its call has returned."""
    ledger = Ledger(path, "f1")
    number = 0
    while True:
        name = f"{run}-{number}"
        ledger.write_decision(replace(DECISION, id=name))
        os.write(pipe, f"decisions {name}\n".encode())
        ledger.write_attempt(replace(ATTEMPT, decision=name))
        os.write(pipe, f"attempts {name}\n".encode())
        ledger.write_outcome(name, "accepted", key=name)
        os.write(pipe, f"outcomes {name}\n".encode())
        number += 1


def kill_at_random(path: Path, kills: int, seed: int) -> Survival:
    """Let a process write and kill it, over and over, on one file: a random while after a random line of it.

    Some are killed as soon as they have started, in the middle of what an opening does.
    """
    random, said, broken = Random(seed), set[str](), list[str]()
    for run in range(kills):
        reads, writes = os.pipe()
        writer = os.fork()
        if not writer:
            with suppress(BaseException):
                write_for_ever(path, run, writes)
            os._exit(1)
        os.close(writes)
        with open(reads, encoding="utf-8") as told:
            said.update(told.readline() for _ in range(random.choice((0, 0, random.randint(1, 90)))))
            for _ in range(random.randint(0, 20_000)):  # less than a write takes, or some of them
                pass
            os.kill(writer, signal.SIGKILL)
            _, how = os.waitpid(writer, 0)
            assert os.WTERMSIG(how) == signal.SIGKILL, "the writer ended by itself"
            said.update(line for line in told if line.endswith("\n"))
        broken += check(path)
    return Survival(kills, len(said), len(said - kept(path)), broken)


def check(path: Path) -> list[str]:
    """What SQLite's own check finds wrong with a file; nothing where no writer got so far as to make one."""
    if not path.exists():
        return []
    file = sqlite3.connect(path)
    found = [str(row[0]) for row in file.execute("PRAGMA integrity_check") if row[0] != "ok"]
    file.close()
    return found


def kept(path: Path) -> set[str]:
    """What is in the file, as the writer says it."""
    file = sqlite3.connect(path)
    names = {"decisions": "id", "attempts": "decision", "outcomes": "key"}
    found = {
        f"{table} {row[0]}\n" for table, name in names.items() for row in file.execute(f"SELECT {name} FROM {table}")
    }
    file.close()
    return found


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        survival = kill_at_random(Path(folder) / "ledger.sqlite", int(sys.argv[1]), seed=0)
    print(f"{survival.kills} kills: {survival.lost} of {survival.acknowledged} acknowledged writes are lost")
    print(*survival.broken or ["the file is sound"], sep="\n")
    sys.exit(bool(survival.lost or survival.broken))
