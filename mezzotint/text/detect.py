"""Signs in a finished text that its writing went wrong, found cheaply; what to do about them is decided elsewhere.

Each is rare in good text of any kind, so that one means something: the tests bound how often paragraphs of a novel,
solutions of sums and Python's standard library are accused.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

Kind = Literal["stutter", "loop", "empty", "pad", "control", "bracket", "seam"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# Nine in ten of the doubled words of a novel are "had" and "that".
_DOUBLES = frozenset("had that ha ho so no very is you her".split())
_PHRASE_WORDS = 8  # longer phrases come back in good prose, and as a loop if they come back often
_WORD = r"[^\W\d_]++(?:['’][^\W\d_]++)*+"  # letters: digits and identifiers repeat for good reasons
# One space and no punctuation between: "no, no", a column of a table and a list of lines are no stutters.
_REPEAT = re.compile(
    rf"(?<![\w'’-])(?P<phrase>{_WORD}(?: {_WORD}){{0,{_PHRASE_WORDS - 1}}}?)(?P<again>(?: (?P=phrase)(?![\w'’-]))+)",
    re.I,
)
_DOUBLED = re.compile(r"\b([^\W\d_]{5,})\1\b")  # one word; of shorter halves there are names, as Shinshin

_LOOP_WINDOW = 2048  # characters at the end of the text that are searched
_LOOP_TIMES = 4
_LOOP_LENGTH = 40  # three rounds of a short phrase may be rhetoric
_RULE_LENGTH = 160  # without letters: lines of dashes, columns of zeros and bit strings are longer than _LOOP_LENGTH

_PLACEHOLDER = r"(?:<(?:pad|unk|mask|eos|unused\d+)>|\ufffd)"
# Blank space: code is indented by up to 70 characters, and prose leaves up to five lines empty.
_PAD = re.compile(rf"{_PLACEHOLDER}(?:\s*{_PLACEHOLDER}){{2,}}|\s{{128,}}|(?:[ \t]*\n){{8,}}")
# "thought" is how a channel's name reads once its control tokens are gone.
_CONTROL = re.compile(
    r"<\|[a-z_]+\|?>|<[a-z_]+\|>|<\|\"\|>|<(?:pad|bos|eos|unk|mask|unused\d+|(?:start|end)_of_[a-z]+)>|\Athought\n"
)

# Quoted on one line, a bracket is a name, not a bracket.
_BRACKET = re.compile(r"""(?<!\w)(?P<quote>["'`])(?:\\.|(?!(?P=quote))[^\\\n])*(?P=quote)|(?P<bracket>[()\[\]{}])""")
# A line up to a bracket that closes nothing: the mark of an item, "b)", or a face, ":-)".
_NO_CLOSING = re.compile(r"[ \t]*(?:[^\W\d]|\d{1,3}|[ivx]+)|.*[:;]-?")
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}

_SEAM_LENGTH = 256  # longest text searched on both sides of a border between blocks


class Finding(NamedTuple):
    """One sign: text[start:end] shows it; an unbalanced bracket is the first that has no partner."""

    kind: Kind
    start: int
    end: int


def detect(text: str, *, seams: Sequence[int] = (), known: str = "") -> tuple[Finding, ...]:
    """Find the signs in the text of a whole answer.

    stutter: a word, or a phrase of up to eight, said again at once. loop: the text ends in four or more rounds of the
    same. empty: nothing to see. pad: placeholders or blank space without end. control: a control token as text.
    bracket: one without a partner, which a text that was cut short has by right. seam: text said again right behind a
    border between blocks; a stutter there counts as seam only, and within a loop neither counts.
    Control tokens and padding are seen in text that was decoded with them, or where a model spelled them.
    seams: offsets in `text` where a block begins. known: text that may be repeated as it stands, such as the prompt.
    Returns: the findings by their place.
    Raises: ValueError for a seam outside the text.
    """
    for seam in seams:
        if not 0 <= seam <= len(text):
            raise ValueError(f"a seam is at {seam}; a text of {len(text)} characters has offsets 0 to {len(text)}")
    if not text.strip():
        return (Finding("empty", 0, len(text)),)
    loops, pads = list(_find_loop(text)), [Finding("pad", *match.span()) for match in _PAD.finditer(text)]
    repeats = [_at_seam(finding, seams) for finding in _find_stutters(text) if not _is_inside(finding, loops)]
    borders = [finding for finding in _find_seams(text, seams) if not _overlaps(finding, [*repeats, *loops])]
    control = (Finding("control", *match.span()) for match in _CONTROL.finditer(text))
    leaks = [finding for finding in control if not _is_inside(finding, pads)]
    said = [each for each in (*loops, *pads, *repeats, *borders, *leaks) if text[each.start : each.end] not in known]
    return tuple(sorted((*said, *_find_bracket(text)), key=lambda finding: finding[1:]))


def _find_stutters(text: str) -> Iterator[Finding]:
    for match in _REPEAT.finditer(text):
        phrase, rounds = match["phrase"], len(match[0] + " ") // len(match["phrase"] + " ")
        # The first may begin a sentence, "The the"; "name NAME" and "class Class" are no stutters.
        is_same = match["again"] in [f" {again}" * (rounds - 1) for again in (phrase, phrase[0].lower() + phrase[1:])]
        if is_same and len(phrase) > 1 and not (rounds == 2 and _is_meant(phrase.lower())):
            yield Finding("stutter", *match.span())
    for match in _DOUBLED.finditer(text):
        yield Finding("stutter", *match.span())


def _is_meant(phrase: str) -> bool:
    """Whether good English says this twice, as "he had had" or "more and more and"."""
    first, *_, last = words = phrase.split(" ") * 2
    return phrase in _DOUBLES or (len(words) > 2 and "and" in (first, last))


def _find_loop(text: str) -> Iterator[Finding]:
    """The longest end of the text that is at least four rounds of one period, found by the failure function."""
    tail = text.rstrip()[: -_LOOP_WINDOW - 1 : -1]
    border = [0] * len(tail)  # border[i]: the longest proper prefix of tail[:i + 1] that also ends it
    found = 0
    for place in range(1, len(tail)):
        length = border[place - 1]
        while length and tail[place] != tail[length]:
            length = border[length - 1]
        border[place] = length + (tail[place] == tail[length])
        size, period = place + 1, place + 1 - border[place]
        if size >= max(_LOOP_LENGTH, _LOOP_TIMES * period) and (size >= _RULE_LENGTH or _has_letters(tail[:period])):
            found = size
    if found:
        end = len(text.rstrip())
        yield Finding("loop", end - found, end)


def _find_bracket(text: str) -> Iterator[Finding]:
    open_: list[re.Match[str]] = []
    for match in _BRACKET.finditer(text):
        bracket = match["bracket"]
        if bracket is None:
            continue
        if bracket in _CLOSED_BY:
            open_.append(match)
        elif open_:
            if _CLOSED_BY[open_.pop()["bracket"]] != bracket:
                yield Finding("bracket", *match.span())
                return
        elif not _NO_CLOSING.fullmatch(text, text.rfind("\n", 0, match.start()) + 1, match.start()):
            yield Finding("bracket", *match.span())
            return
    if open_:
        yield Finding("bracket", *open_[0].span())


def _find_seams(text: str, seams: Sequence[int]) -> Iterator[Finding]:
    """The longest text that ends before a border and, behind blank space at most, begins again after it."""
    for seam in sorted(set(seams)):
        end = len(text[:seam].rstrip())
        start = seam + len(text[seam:]) - len(text[seam:].lstrip())
        for size in range(min(_SEAM_LENGTH, end, len(text) - start), 1, -1):
            found = Finding("seam", end - size, start + size)
            if text[found.start : end] == text[start : found.end] and _is_again(text, found, end, start):
                yield found
                break


def _is_again(text: str, found: Finding, end: int, start: int) -> bool:
    """Whether equal pieces around a border are words said again: whole words, or four letters within a word."""
    piece = text[start : found.end]
    if not re.search(r"[^\W\d_]{2}", piece) or _is_meant(piece.lower()):
        return False
    is_whole = not re.search(r"\w\Z", text[: found.start]) and not re.match(r"\w", text[found.end :])
    return is_whole or (end == start and len(piece) >= 4 and piece.isalpha())


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _at_seam(finding: Finding, seams: Sequence[int]) -> Finding:
    return finding._replace(kind="seam") if any(finding.start < seam < finding.end for seam in seams) else finding


def _is_inside(finding: Finding, others: Sequence[Finding]) -> bool:
    return any(other.start <= finding.start and finding.end <= other.end for other in others)


def _overlaps(finding: Finding, others: Sequence[Finding]) -> bool:
    return any(finding.start < other.end and other.start < finding.end for other in others)
