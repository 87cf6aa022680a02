"""What was measured, kept: one SQLite file of runs, points, tasks and requests, and a file of lines a run.

A point is in the file whole or not at all. A line of JSON is written for each task as it ends; those of a point that
was not finished are cut off when its run goes on.
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, get_origin, get_type_hints

from mezzotint.bench.config import digest
from mezzotint.bench.point import Done
from mezzotint.bench.record import Parts, Played, Request

DATABASE = "bench.sqlite"
_SCHEMA = """
create table if not exists runs (
  id integer primary key, name text unique not null, verb text not null, digest text not null, identity text not null,
  told text not null, started real not null);
create table if not exists points (
  id integer primary key, run integer not null references runs, arm text not null, load text not null,
  round integer not null, window_s real not null, finished real not null, lines integer not null,
  unique (run, arm, load, round));
"""
T = TypeVar("T")


class Place(NamedTuple):
    """Where a point stands in its run."""

    arm: str
    load: str
    round: int


class Point(NamedTuple):
    """A point that is finished."""

    place: Place
    done: Done


@dataclass(frozen=True, kw_only=True)
class Run:
    """One measurement as it is kept. told: what its report says beside figures: workload, machine and the like."""

    id: int
    name: str
    verb: str
    identity: Mapping[str, Any]
    told: Mapping[str, Any]


class Store:
    """A folder with all that was measured into it."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if need be. Raises: OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._base = sqlite3.connect(folder / DATABASE)
        self._base.execute("pragma journal_mode = wal")
        tables = [_table("tasks", Played, "point integer not null references points")]
        tables.append(_table("requests", Request, "of integer not null references tasks(key)"))
        self._base.executescript(_SCHEMA + "".join(tables))

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()

    def open_run(self, name: str, verb: str, identity: Mapping[str, Any], told: Mapping[str, Any]) -> Run:
        """Begin a run, or go on with the one of that name. told: replaces what was told of it before.

        Raises: ValueError for a run of that name with another identity, naming what differs.
        """
        found = self.find_run(name)
        if found is not None and not self.finished(found):  # nothing hangs on what was only begun
            with self._base:
                self._base.execute("delete from runs where id = ?", (found.id,))
            found = None
        if found is None:
            row = (name, verb, digest(identity), json.dumps(identity), json.dumps(told), time.time())
            with self._base:
                self._base.execute("insert into runs values (null, ?, ?, ?, ?, ?, ?)", row)
            self.lines(name).write_text("")
        elif digest(found.identity) != digest(identity) or found.verb != verb:
            differs = "; ".join(_differences({"verb": found.verb, **found.identity}, {"verb": verb, **identity}))
            message = f"run {name!r} in {self.folder} was started with another configuration: {differs}"
            raise ValueError(f"{message}; give the same flags, or another --name or --output")
        else:
            with self._base:
                self._base.execute("update runs set told = ? where id = ?", (json.dumps(told), found.id))
        run = self.find_run(name)
        assert run is not None  # it was just written
        self._cut_lines(run)
        return run

    def find_run(self, name: str) -> Run | None:
        """The run of that name."""
        query = "select id, name, verb, identity, told from runs where name = ?"
        row = self._base.execute(query, (name,)).fetchone()
        if row is None:
            return None
        return Run(id=row[0], name=row[1], verb=row[2], identity=json.loads(row[3]), told=json.loads(row[4]))

    def names(self) -> list[str]:
        """Of all runs, the oldest first."""
        return [name for (name,) in self._base.execute("select name from runs order by id")]

    def lines(self, name: str) -> Path:
        """The file of a run's lines."""
        return self.folder / f"{name}.jsonl"

    def finished(self, run: Run) -> set[Place]:
        """The points that need not be measured again."""
        rows = self._base.execute("select arm, load, round from points where run = ?", (run.id,))
        return {Place(*row) for row in rows}

    def write_point(self, run: Run, place: Place, done: Done, file: IO[str]) -> None:
        """Keep a point. file: the run's lines, which hold those of its tasks already."""
        file.flush()
        os.fsync(file.fileno())
        row = (run.id, *place, done.window_s, time.time(), file.tell())
        with self._base:
            point = self._base.execute("insert into points values (null, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid
            for played in done.played:
                task = self._insert("tasks", played, point)
                for request in played.requests:
                    self._insert("requests", request, task)

    def points(self, run: Run) -> list[Point]:
        """All finished points, in the order in which they were measured."""
        query = "select id, arm, load, round, window_s from points where run = ? order by id"
        rows = self._base.execute(query, (run.id,)).fetchall()
        return [Point(Place(*row[1:4]), Done(tuple(self._played(row[0])), row[4])) for row in rows]

    def _played(self, point: int) -> Iterator[Played]:
        for key, *row in self._select("tasks", Played, "point", point):
            requests = tuple(_read(Request, more[1:]) for more in self._select("requests", Request, "of", key))
            yield _read(Played, row, requests=requests)

    def _insert(self, table: str, record: Any, parent: int | None) -> int | None:
        values = [_write(getattr(record, name)) for name in _columns(type(record))]
        marks = ", ".join("?" * (len(values) + 1))
        return self._base.execute(f"insert into {table} values (null, {marks})", [parent, *values]).lastrowid

    def _select(self, table: str, kind: type, parent: str, key: int) -> list[Sequence[Any]]:
        columns = ", ".join(f'"{name}"' for name in _columns(kind))
        query = f'select key, {columns} from {table} where "{parent}" = ? order by key'
        return self._base.execute(query, (key,)).fetchall()

    def _cut_lines(self, run: Run) -> None:
        [(end,)] = self._base.execute("select coalesce(max(lines), 0) from points where run = ?", (run.id,))
        path = self.lines(run.name)
        path.touch()
        os.truncate(path, min(end, path.stat().st_size))


def line(place: Place, played: Played) -> str:
    """One task as a line of JSON, raw times and all."""
    return json.dumps({**place._asdict(), **asdict(played), "parts": played.parts._asdict()}, ensure_ascii=False)


def _table(name: str, kind: type, parent: str) -> str:
    columns = ", ".join(f'"{column}"' for column in _columns(kind))
    return f"create table if not exists {name} (key integer primary key, {parent}, {columns});\n"


def _columns(kind: type) -> list[str]:
    return [field.name for field in fields(kind) if field.name != "requests"]


def _write(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, tuple) else value


def _read(kind: type[T], row: Sequence[Any], **more: Any) -> T:
    """A record of its columns; what is a tuple in it is kept as a list of JSON."""
    values = dict(zip(_columns(kind), row, strict=True))
    for name, hint in get_type_hints(kind).items():
        if name in values and (hint is Parts or get_origin(hint) is tuple):
            told = json.loads(values[name])
            values[name] = Parts(*told) if hint is Parts else tuple(told)
    return kind(**values, **more)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in {**old, **new}:
        before, now = old.get(name), new.get(name)
        if before == now:
            continue
        if isinstance(before, dict) and isinstance(now, dict):
            yield from (f"{name}.{told}" for told in _differences(before, now))
        else:
            yield f"{name} was {_short(before)} and is {_short(now)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."
