"""Files of a checkpoint's text side, read whole or refused by name; what they mean is for their readers."""

import json
from pathlib import Path
from typing import Any


def read_text(file: Path) -> str:
    """The text of a UTF-8 file. Raises: ValueError naming the file where it is something else."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise damaged(file, f"it is not UTF-8 at byte {error.start}") from error


def read_object(file: Path) -> dict[str, Any]:
    """The one JSON object of a file. Raises: ValueError naming the file where it holds something else."""
    try:
        found = json.loads(read_text(file))
    except json.JSONDecodeError as error:
        raise damaged(file, f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise damaged(file, f"it must hold a JSON object, not a {type(found).__name__}")
    return found


def damaged(file: Path, reason: str) -> ValueError:
    """The error that names file, reason and remedy."""
    return ValueError(f"{file} cannot be read: {reason}; download it again, or correct it")
