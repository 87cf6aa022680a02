"""Rewrites the part of a document that a program writes: what stands between two comments of one name."""

from pathlib import Path


def rewrite_document(path: Path, name: str, text: str) -> None:
    """Put `text` between the markers `name` of a Markdown file, and leave the rest of it as it is.

    Raises: ValueError for a file without exactly one pair of markers.
    """
    path.write_text(rewrite(path.read_text(encoding="utf-8"), name, text, where=str(path)), encoding="utf-8")


def rewrite(document: str, name: str, text: str, *, where: str) -> str:
    """The document with `text` between its markers. Raises: ValueError without exactly one pair of them."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise ValueError(
            f"{where} must hold {begin!r} once, and {end!r} once behind it; put them where the text belongs"
        )
    head, rest = document.split(begin)
    return f"{head}{begin}\n\n{text.strip()}\n\n{end}{rest.split(end)[1]}"
