"""Faults of writing, put into code so that the faulty text alone tells what stood there; asks no question.

Every kind is refused where the nearest correction is not the only one: a lost bracket that could close elsewhere
too, a line that two blocks could hold, a word that is one edit away from two.
"""

import ast
import builtins
import keyword
import re
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import NamedTuple

from mezzotint.tasks.family import Split, is_held_out
from mezzotint.tasks.library import dump_code, parse_code, splits_word

_WAYS = dict.fromkeys("()[]{}", ("lost",)) | dict.fromkeys(",:", ("lost", "twice", "semicolon")) | {".": ("twice",)}
_STRINGS = re.compile(r"""('''|\"""|'|")(?:\\.|(?!\1).)*\1""", re.DOTALL)
_SHIFTS = (-8, -4, -3, -2, -1, 1, 2, 3, 4)  # spaces that a line is moved by
_ONE_IN = 4  # misspellings of which one is held out
_SHORTEST_NAME = 3  # letters; shorter ones have too few misspellings of their own
_USES = 3  # of a name, the misspelt one among them


class Word(NamedTuple):
    """A word and where it begins."""

    text: str
    start: int


def put_in(rng: Random, kind: str, code: str, split: Split) -> str | None:
    """Put one fault of a kind of KINDS into code.

    Of the misspellings of keywords and names, about one in four is in test only and the others in train only.
    Returns: the faulty code; None where a try found none that the text determines, which another rng may find.
    """
    return KINDS[kind](rng, code, split)


def misspellings(word: str) -> set[str]:
    """Swap two letters that follow each other, drop one, or double one.

    Returns: words of at least two characters, never the word itself.
    """
    pairs = range(len(word) - 1)
    swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in pairs}
    dropped = {word[:i] + word[i + 1 :] for i in range(len(word))}
    doubled = {word[: i + 1] + word[i:] for i in range(len(word)) if word[i].isalpha()}
    return {typo for typo in (swapped | dropped | doubled) - {word} if len(typo) > 1 and typo.isidentifier()}


def is_one_edit(one: str, other: str) -> bool:
    """Whether one character put in, taken out or replaced, or two swapped, make a word the other one."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return max(len(one), len(other)) == 1 or (len(one) == 2 and one == other[::-1])


def _spoil_mark(rng: Random, code: str, split: Split) -> str | None:
    """Lose a bracket, comma or colon, write a comma, colon or dot twice, or a semicolon for a comma or colon."""
    place = rng.choice([place for place in _outside_strings(code) if code[place] in _WAYS])
    mark, before, after = code[place], code[:place], code[place + 1 :]
    # Of two marks that may stand in one place either could be meant.
    marks = ",:" if mark in ",:" else mark
    match rng.choice(_WAYS[mark]):
        case "lost":
            # Where two words would become one, a space stays.
            faulty = f"{before} {after}" if splits_word(before + after, place) else before + after
            borders = [border for border in range(len(faulty) + 1) if not splits_word(faulty, border)]
            corrections = [faulty[:border] + other + faulty[border:] for border in borders for other in marks]
        case "twice":
            faulty, corrections = f"{before}{mark}{mark}{after}", [code]
        case _:
            faulty, corrections = f"{before};{after}", [before + other + after for other in marks]
    return faulty if parse_code(faulty) is None and _is_determined(code, corrections) else None


def _shift_line(rng: Random, code: str, split: Split) -> str | None:
    """Move one line to the left or right."""
    lines = code.split("\n")
    row = rng.randrange(1, len(lines))
    text = lines[row].lstrip(" ")
    indent = len(lines[row]) - len(text)
    shift = rng.choice([shift for shift in _SHIFTS if indent + shift >= 0])

    def indented(width: int) -> str:
        return "\n".join([*lines[:row], " " * width + text, *lines[row + 1 :]])

    if parse_code(faulty := indented(indent + shift)) is not None:
        return None
    levels = {len(line) - len(line.lstrip(" ")) for line in lines[1:]}
    return faulty if _is_determined(code, map(indented, levels | {max(levels) + 4})) else None


def _misspell_keyword(rng: Random, code: str, split: Split) -> str | None:
    """Misspell one keyword."""
    return _misspell(rng, code, split, [word for word in _words(code) if keyword.iskeyword(word.text)])


def _misspell_name(rng: Random, code: str, split: Split) -> str | None:
    """Misspell one use of a parameter or local variable that occurs at least twice elsewhere."""
    tree = parse_code(code)
    nodes = list(ast.walk(tree)) if tree is not None else []
    names = [node for node in nodes if isinstance(node, ast.Name)]
    local = [node.arg for node in nodes if isinstance(node, ast.arg)]
    local += [node.id for node in names if isinstance(node.ctx, ast.Store)]
    count = [node.id for node in names] + [node.arg for node in nodes if isinstance(node, ast.arg)]
    starts = [0, *(match.end() for match in re.finditer("\n", code))]
    used = [
        Word(node.id, starts[node.lineno - 1] + node.col_offset) for node in names if isinstance(node.ctx, ast.Load)
    ]
    known = set(_words(code))  # in an f-string the tree's places are not those of the text
    fit = [word for word in used if word in known and len(word.text) >= _SHORTEST_NAME and word.text in local]
    return _misspell(rng, code, split, [word for word in fit if count.count(word.text) >= _USES])


def _misspell(rng: Random, code: str, split: Split, words: list[Word]) -> str | None:
    if not words:
        return None
    chosen = rng.choice(sorted({word.text for word in words}))
    start = rng.choice([word.start for word in words if word.text == chosen])
    in_split = [typo for typo in misspellings(chosen) if is_held_out(f"{chosen} {typo}", _ONE_IN) == (split == "test")]
    if not in_split:
        return None
    typo = rng.choice(sorted(in_split))
    known = {*re.findall(r"\w+", code), *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}
    if typo in known:
        return None
    before, after = code[:start], code[start + len(chosen) :]
    corrections = [before + word + after for word in known if is_one_edit(word, typo)]
    return before + typo + after if _is_determined(code, corrections) else None


def _is_determined(code: str, corrections: Iterable[str]) -> bool:
    """Whether of the corrections that parse all are the same code as the right one."""
    right = dump_code(code)
    return all(dump_code(other) in (right, None) for other in corrections if other != code)


def _outside_strings(code: str) -> Iterator[int]:
    """Places in code that no string holds."""
    end = 0
    for match in _STRINGS.finditer(code):
        yield from range(end, match.start())
        end = match.end()
    yield from range(end, len(code))


def _words(code: str) -> list[Word]:
    outside = set(_outside_strings(code))
    return [Word(match[0], match.start()) for match in re.finditer(r"[^\W\d]\w*", code) if match.start() in outside]


KINDS: dict[str, Callable[[Random, str, Split], str | None]] = {
    "punctuation": _spoil_mark,
    "indentation": _shift_line,
    "keyword": _misspell_keyword,
    "name": _misspell_name,
}
