"""Finds the files of public benchmarks and reads their lines; nothing is fetched."""

import gzip
import json
from pathlib import Path
from typing import Any


def read_lines(data: Path | None, name: str, source: str) -> list[dict[str, Any]]:
    """Read NAME.jsonl.gz or NAME.jsonl in the folder `data`.

    source: where it can be had.
    Returns: its objects.
    Raises: ValueError where there is no such file, saying where to get it, and for a line that is no object.
    """
    files = [] if data is None else [data / f"{name}.jsonl.gz", data / f"{name}.jsonl"]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        where = "no folder of data is named" if data is None else f"{data} holds no {name}.jsonl.gz"
        raise ValueError(f"{where}; get {name}.jsonl from {source}, and name its folder by --data or MEZZOTINT_DATA")
    raw = found.read_bytes()
    text = (gzip.decompress(raw) if found.suffix == ".gz" else raw).decode()
    return [_read(line, f"{found}, line {number}") for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _read(line: str, where: str) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON: {error}; get the file anew") from error
    if not isinstance(told, dict):
        raise ValueError(f"{where} is no object; get the file anew")
    return told
