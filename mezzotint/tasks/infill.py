"""`infill`: fill in a blank in a function of the standard library, from the code on both sides of it.

The function stands in the model's turn: `begins` is what precedes the blank, `ends` what follows it at once. What
follows farther behind, beyond a canvas, is quoted in the prompt. Test has functions that train never has.
"""

import re
from random import Random
from typing import NamedTuple

from mezzotint.tasks.family import Example, Family, Split, example_random
from mezzotint.tasks.library import bundled_tokenizer, dump_code, functions, splits_word
from mezzotint.text.document import FAR, write_request
from mezzotint.text.parse import Reply

MAX_BLANK = 28  # tokens of the bundled tokenizer
MAX_END = 24  # tokens of `ends`
_EMPTY_SHARE = 0.1
_MAX_LINES = 6  # of a blank
_MAX_SPAN = 100  # characters
_MAX_COMMENTS = 200  # characters that a prefix-only decoder may write beside the code that was there


class Blank(NamedTuple):
    """Where in a function a blank starts, and the place behind its last character."""

    start: int
    end: int


def generate(seed: int, split: Split) -> Example:
    """Make example `seed` of `split`: a blank in a function's body, of a variant drawn evenly.

    The variants are one whole `line`, two to six `lines`, and a `span` that begins and ends anywhere, half of its
    ends within a word. Short blanks are frequent; a tenth are empty, which any variant may be.
    Returns: the example, under this release of Python always the same; its answer has at most MAX_BLANK tokens.
    Raises: ValueError for an unknown split; FileNotFoundError where the standard library has no sources.
    """
    rng = example_random("infill", split, seed)
    variant = rng.choice(list(_VARIANTS))
    empty = rng.random() < _EMPTY_SHARE
    blank = None
    while blank is None:
        code = rng.choice(functions(split))
        blank = _VARIANTS[variant](rng, code, empty)
    near, far = _split_end(code[blank.end :])
    return Example(
        family="infill",
        messages=({"role": "user", "content": write_request([None], far)},),
        answer=code[blank.start : blank.end],
        begins=code[: blank.start],
        ends=near,
        variant=variant,
    )


def whole(example: Example, middle: str) -> str:
    """Put a middle into the blank, changing no character of it.

    Returns: the function: begins, middle, ends, and what the prompt quotes.
    """
    _, _, far = str(example.messages[0]["content"]).partition(FAR)
    return example.begins + middle + example.ends + far


def accept(example: Example, reply: Reply) -> bool:
    """Check that the function with the content of `reply` as its middle has the syntax tree of the original.

    White space at either end of the content counts, as it must in the midst of code.
    Returns: true for the same code only, however it is spaced and commented.
    """
    found = dump_code(whole(example, reply.content))
    return found is not None and found == dump_code(whole(example, example.answer))


def accept_continuation(example: Example, reply: Reply) -> bool:
    """Check what a decoder wrote behind `begins` that saw nothing of what follows the blank but the prompt.

    It is right when it goes on to the end of the function, or when any part of it from its start on fills the blank.
    Parts longer than the function and 200 characters are not tried.
    Returns: true for the same code only.
    """
    text, original = reply.content, whole(example, example.answer)
    right = dump_code(original)
    cuts = range(min(len(text), len(original) + _MAX_COMMENTS) + 1)
    candidates = (example.begins + text, *(whole(example, text[:cut]) for cut in cuts))
    return right is not None and any(dump_code(candidate) == right for candidate in candidates)


def _draw_line(rng: Random, code: str, empty: bool) -> Blank | None:
    return _draw_rows(rng, code, 0 if empty else 1)


def _draw_lines(rng: Random, code: str, empty: bool) -> Blank | None:
    counts = range(2, _MAX_LINES + 1)
    return _draw_rows(rng, code, 0 if empty else rng.choices(counts, [1 / count for count in counts])[0])


def _draw_rows(rng: Random, code: str, count: int) -> Blank | None:
    """Whole lines of the body without the last one's line break; for none of them a place before a line."""
    starts = [match.end() for match in re.finditer("\n", code)]
    if count > len(starts):
        return None
    first = rng.randrange(len(starts) - max(count, 1) + 1)
    last = [*starts, len(code) + 1][first + count] - 1
    return _fit(code, Blank(starts[first], last if count else starts[first]))


def _draw_span(rng: Random, code: str, empty: bool) -> Blank | None:
    body = range(code.index("\n") + 1, len(code) + 1)
    within = [place for place in body if splits_word(code, place)]
    borders = sorted(set(body).difference(within))
    start = rng.choice(within if within and rng.random() < 0.5 else borders)
    if empty:
        return Blank(start, start)
    length = round(_MAX_SPAN ** rng.random())  # as often from 1 to 10 characters as from 10 to 100
    ends = [place for place in (within if rng.random() < 0.5 else borders) if place > start]
    if start + length > len(code) or not ends:
        return None
    return _fit(code, Blank(start, min(ends, key=lambda place: abs(place - start - length))))


def _fit(code: str, blank: Blank) -> Blank | None:
    return blank if len(bundled_tokenizer().encode_text(code[blank.start : blank.end])) <= MAX_BLANK else None


def _split_end(text: str) -> tuple[str, str]:
    tokenizer = bundled_tokenizer()
    near = tokenizer.decode(tokenizer.encode_text(text)[:MAX_END])  # the code is ASCII: no character is cut
    return near, text.removeprefix(near)


_VARIANTS = {"line": _draw_line, "lines": _draw_lines, "span": _draw_span}

INFILL = Family("infill", generate, accept, accept_continuation)
