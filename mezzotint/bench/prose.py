"""Real text by length and place: a novel where a file of it is named, else Python's standard library."""

import lzma
import sysconfig
from functools import cache
from pathlib import Path

_MOST_BYTES = 4_000_000


@cache
def read_prose(path: Path | None) -> str:
    """The text that prompts are cut from. path: of a text, perhaps compressed by xz; None: the standard library.

    Raises: ValueError for a text too short to cut anything from; OSError.
    """
    if path is None:
        return _read_library()
    text = (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).decode("utf-8")
    if len(text) < 10_000:
        raise ValueError(f"{path} has {len(text)} characters; name a text of 10,000 or more")
    return text


def cut(text: str, place: int, tokens: int, tokens_of_text: float) -> str:
    """About `tokens` tokens of the text, from the beginning of a word on; places behind its end begin again.

    tokens_of_text: how many tokens a character of it makes.
    """
    length = max(1, round(tokens / tokens_of_text))
    start = place % max(1, len(text) - length)
    start = text.find(" ", start) + 1
    return text[start : start + length]


def _read_library() -> str:
    """Modules in the order of their names, as far as a few megabytes go."""
    folder, read, parts = Path(sysconfig.get_paths()["stdlib"]), 0, []
    for file in sorted(folder.glob("*.py")):
        if read < _MOST_BYTES:
            parts.append(file.read_text(encoding="utf-8", errors="replace"))
            read += len(parts[-1])
    if not parts:
        raise FileNotFoundError(f"{folder} has no sources to cut prompts from; name a text")
    return "\n".join(parts)
