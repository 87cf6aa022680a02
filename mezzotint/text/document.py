"""A document with blanks: how it is written down, checked and told to a model; how blanks are filled lives in llm."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard

INSTRUCTION = "Fill in the blank."
FAR = "\nIt ends with:\n"
MARKER = "<blank>"
_SEVERAL = "Fill in the blanks."
_UNSEEN = "____"  # how a blank that is filled later is quoted


@dataclass(frozen=True, kw_only=True)
class Blank:
    """A place in a document that has to be filled.

    max_tokens: that fill it at most; None takes the request's, or its share of three quarters of a canvas where that is
    less. hint: what should stand there, told to an instruct checkpoint.
    Raises: ValueError naming option, value and remedy.
    """

    max_tokens: int | None = None
    hint: str | None = None

    def __post_init__(self) -> None:
        most: object = self.max_tokens
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise ValueError(f"max_tokens of a blank is {most!r}; give a whole number from 1 up, or None")
        hint: object = self.hint
        if hint is not None and not (isinstance(hint, str) and hint):
            raise ValueError(f"hint of a blank is {hint!r}; give a text, or None for none")


class Parts(NamedTuple):
    """A document taken apart: a text before the first blank, one behind each."""

    texts: list[str]
    blanks: list[Blank]

    def join(self, middles: Sequence[str]) -> str:
        """The document with `middles` in its blanks."""
        return self.texts[0] + "".join(a + b for a, b in zip(middles, self.texts[1:], strict=True))


def take_apart(document: Sequence[str | Blank]) -> Parts:
    """Check a document: texts and blanks in order, such as `[prefix, Blank(), suffix]`.

    Raises: ValueError where it is none, has no blank, or two with nothing between them.
    """
    if not _is_document(document):
        raise ValueError("a document is a list of texts and blanks; give [text, Blank(), text]")
    texts, blanks = [""], list[Blank]()
    for part in document:
        if isinstance(part, str):
            texts[-1] += part
            continue
        if blanks and not texts[-1]:
            raise ValueError(f"blanks {len(blanks)} and {len(blanks) + 1} have nothing between them; make them one")
        blanks.append(part)
        texts.append("")
    if not blanks:
        raise ValueError("the document has no blank; put one where something is missing")
    return Parts(texts, blanks)


def cut_span(text: str, start: int, end: int, blank: Blank | None = None) -> list[str | Blank]:
    """The document in which a blank stands in place of text[start:end].

    Raises: ValueError for a span outside the text.
    """
    if not 0 <= start <= end <= len(text):
        raise ValueError(f"span {start}:{end} does not lie in a text of {len(text)} characters; give 0 to {len(text)}")
    return [text[:start], blank or Blank(), text[end:]]


def cut_lines(text: str, first: int, last: int, blank: Blank | None = None) -> list[str | Blank]:
    """The document in which a blank stands in place of lines `first` to `last`, counted from 1, but not the last break.

    Raises: ValueError for lines that the text does not have.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    if starts[-1] == len(text):
        starts.pop()  # what ends in a line break has no line behind it
    if not 1 <= first <= last <= len(starts):
        raise ValueError(f"lines {first}:{last} do not lie in a text of {len(starts)} lines; give 1 to {len(starts)}")
    end = starts[last] if last < len(starts) else len(text)
    return cut_span(text, starts[first - 1], end - text[:end].endswith("\n"), blank)


def cut_marked(text: str, marker: str = MARKER, hints: Sequence[str] = ()) -> list[str | Blank]:
    """The document in which a blank stands in place of each `marker`; where that ends in `>`, `:N` before it gives the
    most tokens, as in `<blank:24>`.

    hints: of the first blanks, in order.
    Raises: ValueError for an empty marker, one that does not occur, or more hints than blanks.
    """
    if not marker:
        raise ValueError("the marker of a blank is empty; name a text that stands nowhere else")
    pattern = re.escape(marker)
    if marker.endswith(">"):
        pattern = f"{re.escape(marker[:-1])}(?::(\\d+))?>"
    found = list(re.finditer(pattern, text))
    if not found:
        raise ValueError(f"no blank is marked: {marker!r} does not occur; write it where something is missing")
    if len(hints) > len(found):
        raise ValueError(f"{len(hints)} hints are given for {len(found)} blanks; give at most one for each, in order")
    document, at = list[str | Blank](), 0
    for index, match in enumerate(found):
        most = match[1] if match.re.groups else None
        hint = hints[index] if index < len(hints) else None
        blank = Blank(max_tokens=None if most is None else int(most), hint=hint)
        document += [text[at : match.start()], blank]
        at = match.end()
    return [*document, text[at:]]


def write_request(hints: Sequence[str | None], far: str) -> str:
    """What a user asks of a model that fills one blank or several in its own turn.

    hints: of each blank, None where there is none. far: what follows beyond what the model will see at its place.
    """
    several = len(hints) > 1
    said = [_SEVERAL if several else INSTRUCTION]
    for number, hint in enumerate(hints, 1):
        if hint is not None:
            said.append(f"\nHint for blank {number}: {hint}" if several else f"\nHint: {hint}")
    return "".join(said) + (f"{FAR}{far}" if far else "")


def quote_rest(texts: Sequence[str]) -> str:
    """Texts with blanks between them that are not filled yet, as a request quotes them."""
    return _UNSEEN.join(texts)


def _is_document(given: object) -> TypeGuard[Sequence[str | Blank]]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        return False
    return all(isinstance(part, str | Blank) for part in given)
