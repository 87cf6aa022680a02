"""What was decided, tried and judged, in one SQLite file that outlives its process; nothing is learnt from it here."""

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from mezzotint.router.ledger_table import LedgerRow, Told, tabulate
from mezzotint.router.record import Attempt, Decision

LateVerdict = Literal["accepted", "rejected"]
_VERSION = 1
_COLUMNS = tuple(field.name for field in fields(Attempt))
_SCHEMA = """
CREATE TABLE IF NOT EXISTS decisions (
    id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, goal TEXT NOT NULL,
    deadline_s REAL NOT NULL, plan TEXT NOT NULL, reason TEXT NOT NULL, propensity REAL NOT NULL,
    seconds REAL NOT NULL, cost_usd REAL NOT NULL, ask TEXT NOT NULL, candidates TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
    number INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, at REAL NOT NULL, "decision" TEXT NOT NULL,
    "index" INTEGER NOT NULL, "arm" TEXT NOT NULL, "kind" TEXT NOT NULL, "outcome" TEXT NOT NULL,
    "seconds" REAL NOT NULL, "prompt_tokens" INTEGER NOT NULL, "output_tokens" INTEGER NOT NULL,
    "in_flight" INTEGER NOT NULL, "cached_tokens" INTEGER NOT NULL, "queue_s" REAL NOT NULL,
    "prefill_s" REAL NOT NULL, "generation_s" REAL NOT NULL, "verify_s" REAL NOT NULL, "blocks" INTEGER NOT NULL,
    "steps" INTEGER NOT NULL, "forwards" INTEGER NOT NULL, "cost_usd" REAL NOT NULL, "first_entropy" REAL,
    "after" TEXT, UNIQUE ("decision", "index")
);
CREATE INDEX IF NOT EXISTS attempts_by_fingerprint ON attempts (fingerprint, number);
CREATE TABLE IF NOT EXISTS outcomes (
    number INTEGER PRIMARY KEY, key TEXT UNIQUE, decision TEXT NOT NULL, at REAL NOT NULL, verdict TEXT NOT NULL,
    score REAL, reason TEXT, verify_s REAL
);
CREATE INDEX IF NOT EXISTS outcomes_by_decision ON outcomes (decision, number);
"""
# The latest verdict on a decision stands for the last of its attempts: that answer is the one that left.
_LATE = """
    CASE WHEN a.outcome IN ('accepted', 'rejected', 'unverified')
          AND a."index" = (SELECT max("index") FROM attempts WHERE decision = a.decision)
    THEN coalesce((SELECT verdict FROM outcomes WHERE decision = a.decision ORDER BY number DESC LIMIT 1), a.outcome)
    ELSE a.outcome END
"""


class Ledger:
    """One file, written by one or several processes; every write is there for good once its call returns.

    In WAL mode with synchronous=NORMAL a commit is in the system's hands when it returns, so a killed process loses
    nothing and cannot harm the file; a machine that loses power may lose the last moments, but not the file.
    Calls may come from any thread.
    """

    def __init__(self, path: Path, fingerprint: str, *, clock: Callable[[], float] = time.time) -> None:
        """fingerprint: of the configuration that is measured. Raises: ValueError if the file is no ledger of ours."""
        self._fingerprint, self._clock, self._lock = fingerprint, clock, Lock()
        self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        try:
            version = self._file.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise ValueError(f"{path} is a ledger of version {version}, this is {_VERSION}; name another file")
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")
        except sqlite3.DatabaseError as error:
            self._file.close()
            raise ValueError(f"{path} is no ledger ({error}); name another file") from error
        except ValueError:
            self._file.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._file.close()

    def write_decision(self, decision: Decision) -> None:
        """Keep a decision, with everything it was made from."""
        ask = {**asdict(decision.ask), "needs": sorted(decision.ask.needs)}
        candidates = [candidate._asdict() for candidate in decision.candidates]
        self._insert(
            "decisions",
            id=decision.id,
            fingerprint=self._fingerprint,
            at=self._clock(),
            kind=decision.ask.kind,
            goal=decision.ask.goal,
            deadline_s=decision.ask.deadline_s,
            plan=json.dumps(decision.plan),
            reason=decision.reason,
            propensity=decision.propensity,
            seconds=decision.seconds,
            cost_usd=decision.cost_usd,
            ask=json.dumps(ask),
            candidates=json.dumps(candidates),
        )

    def write_attempt(self, attempt: Attempt) -> None:
        """Keep what an arm did; the same attempt of a decision a second time changes nothing."""
        self._insert("attempts", fingerprint=self._fingerprint, at=self._clock(), **asdict(attempt))

    def write_outcome(
        self,
        decision_id: str,
        verdict: LateVerdict,
        key: str | None = None,
        *,
        score: float | None = None,
        reason: str | None = None,
        verify_s: float | None = None,
    ) -> bool:
        """Keep a late verdict on a decision's answer; the latest stands.

        key: of idempotency. Returns: whether it is new; one whose key was seen is not, nor, without a key, one that
        says what the latest said.
        Raises: LookupError for a decision that is not here; ValueError for a key that came with another verdict.
        """
        with self._lock, self._transaction():
            if not self._one("SELECT 1 FROM decisions WHERE id = ?", decision_id):
                raise LookupError(f"decision {decision_id!r} is not in this ledger; take the id of its response")
            if key is not None and (before := self._one("SELECT decision, verdict FROM outcomes WHERE key = ?", key)):
                if before != (decision_id, verdict):
                    raise ValueError(f"key {key!r} came with another verdict before; a further one needs its own key")
                return False
            latest = "SELECT verdict FROM outcomes WHERE decision = ? ORDER BY number DESC LIMIT 1"
            if key is None and self._one(latest, decision_id) == (verdict,):
                return False
            told = (key, decision_id, self._clock(), verdict, score, reason, verify_s)
            names = "key, decision, at, verdict, score, reason, verify_s"
            self._file.execute(f"INSERT INTO outcomes ({names}) VALUES (?, ?, ?, ?, ?, ?, ?)", told)
            return True

    def attempts(self, limit: int, *, is_same: bool = True) -> list[Attempt]:
        """The last attempts, the oldest first, late verdicts in the place of earlier ones.

        is_same: whether those of this fingerprint, or those of all others.
        """
        names = ", ".join(f'{_LATE} AS "outcome"' if name == "outcome" else f'a."{name}"' for name in _COLUMNS)
        rows = self._rows(
            f"SELECT {names} FROM attempts a WHERE a.fingerprint {'=' if is_same else '<>'} ? "
            "ORDER BY a.number DESC LIMIT ?",
            self._fingerprint,
            limit,
        )
        return [Attempt(**dict(zip(_COLUMNS, row, strict=True))) for row in reversed(rows)]

    def decision(self, decision_id: str) -> dict[str, Any]:
        """One decision as it was written, its attempts and late verdicts with it, as a JSON object.

        Raises: LookupError for one that is not here.
        """
        with self._lock:
            cursor = self._file.execute("SELECT * FROM decisions WHERE id = ?", (decision_id,))
            names = [column[0] for column in cursor.description]
            row = cursor.fetchone()
        if row is None:
            raise LookupError(f"decision {decision_id!r} is not in this ledger; take the id of its response")
        found = dict(zip(names, row, strict=True))
        tried = self._rows(
            'SELECT arm, outcome, seconds FROM attempts WHERE decision = ? ORDER BY "index"', decision_id
        )
        told = self._rows("SELECT verdict, score, reason FROM outcomes WHERE decision = ? ORDER BY number", decision_id)
        return {
            **found,
            **{name: json.loads(found[name]) for name in ("plan", "ask", "candidates")},
            "attempts": [dict(zip(("arm", "outcome", "seconds"), row, strict=True)) for row in tried],
            "outcomes": [dict(zip(("verdict", "score", "reason"), row, strict=True)) for row in told],
        }

    def table(self) -> list[LedgerRow]:
        """What this fingerprint's requests came to, a row for each arm tried first, class and load."""
        rows = self._rows(
            f'SELECT a.decision, a."index", a.arm, a.kind, {_LATE}, a.seconds, a.cost_usd, a.in_flight, d.deadline_s '
            "FROM attempts a LEFT JOIN decisions d ON d.id = a.decision WHERE a.fingerprint = ? "
            'ORDER BY a.decision, a."index"',
            self._fingerprint,
        )
        return tabulate(Told(*row) for row in rows)

    def _insert(self, table: str, **values: object) -> None:
        names, places = ", ".join(f'"{name}"' for name in values), ", ".join("?" * len(values))
        with self._lock:
            query = f"INSERT INTO {table} ({names}) VALUES ({places}) ON CONFLICT DO NOTHING"
            self._file.execute(query, tuple(values.values()))

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._file.execute(query, values).fetchone()
        return found

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._file.execute(query, values).fetchall()

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._file)


class _Transaction:
    """BEGIN IMMEDIATE to COMMIT, or ROLLBACK where something went wrong."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file

    def __enter__(self) -> None:
        self._file.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.execute("COMMIT" if kind is None else "ROLLBACK")
