"""A file of answers that a run writes and goes on with: what was asked how, then one record a line."""

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mezzotint.evaluate.ask import Place, Record
from mezzotint.evaluate.question import Suite

_FORM = "mezzotint-evaluate-1"


class Journal:
    """Records under one configuration; only one process writes it."""

    def __init__(self, path: Path, configuration: Mapping[str, Any]) -> None:
        """Begin a file, or read one that was begun with the same configuration; a line cut short is taken off.

        Raises: ValueError for another configuration, and for what is no such file.
        """
        self._path = path
        self._file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(f"{path} is being written by another run; wait for it, or name another file") from None
        try:
            self.records = self._read({"file": _FORM, **configuration})
        except ValueError:
            self._file.close()
            raise

    def append(self, record: Record) -> None:
        """Write one record and let it be seen."""
        self.records.append(record)
        self._write(record.as_json())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def __enter__(self) -> "Journal":
        """The journal itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _write(self, told: Mapping[str, Any]) -> None:
        print(json.dumps(told), file=self._file, flush=True)

    def _read(self, configuration: Mapping[str, Any]) -> list[Record]:
        whole, end = _whole_lines(self._path)
        if not whole:
            os.truncate(self._path, 0)
            self._write(configuration)
            return []
        configuration = json.loads(json.dumps(configuration))
        found = _read_line(self._path, 1, whole[0])
        if found != configuration:
            names = [name for name in configuration if found.get(name) != configuration[name]]
            told = ", ".join(f"{name} is {found.get(name)!r}, not {configuration[name]!r}" for name in names)
            raise ValueError(f"{self._path} holds other answers ({told or 'of another form'}): name another file")
        os.truncate(self._path, end)
        return read_records(self._path, whole)


def read_journal(path: Path) -> tuple[dict[str, Any], list[Record]]:
    """Read a file of answers. Returns: its configuration and its records. Raises: ValueError for any other file."""
    whole, _ = _whole_lines(path)
    configuration = _read_line(path, 1, whole[0]) if whole else {}
    if configuration.get("file") != _FORM:
        raise ValueError(f"{path} holds no answers of `mezzotint evaluate --suite`; name a file that --output wrote")
    return configuration, read_records(path, whole)


def read_records(path: Path, lines: list[str]) -> list[Record]:
    """Read the records behind the first line. Raises: ValueError naming the line."""
    records = []
    for number, line in enumerate(lines[1:], 2):
        try:
            records.append(Record.from_json(_read_line(path, number, line)))
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number} is no record ({error!r}); remove it") from error
    return records


def answers_of(records: Iterable[Record], suite: Suite) -> dict[Place, Record]:
    """The records of a suite's questions that have an answer, the last of each.

    Raises: ValueError for a record of a question that was put otherwise.
    """
    digests = {question.id: question.digest for question in suite.questions}
    found: dict[Place, Record] = {}
    for record in records:
        if record.id not in digests or record.error is not None:
            continue
        if record.digest != digests[record.id]:
            told = f"question {record.id} was put otherwise when the file was written"
            raise ValueError(f"{told}: name another file, or put it again as it was")
        found[record.place] = record
    return found


def _whole_lines(path: Path) -> tuple[list[str], int]:
    """The lines of a file that have an end, and how many bytes they are."""
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    return content[:end].decode(errors="replace").split("\n")[:-1], end


def _read_line(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}, line {number} is no JSON: {error}; remove it") from error
    if not isinstance(told, dict):
        raise ValueError(f"{path}, line {number} is {told!r}, no object; remove it")
    return told
