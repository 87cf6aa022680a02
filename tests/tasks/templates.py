"""All wording that `extract` can draw, enumerated: templates by split, and the natural sentences."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import permutations, product

from mezzotint.tasks import Split
from mezzotint.tasks.family import is_held_out
from mezzotint.tasks.records import RECORDS
from mezzotint.tasks.wording import CUES, FRAMES, PAIRS


def spell_templates(keys: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], Split, str]]:
    """Every template that tells `keys`, one or two, in this order: frame, cues, split and sentence."""
    for frame in FRAMES if len(keys) == 1 else PAIRS:
        for cues in product(*((key, *CUES[key]) for key in keys)):
            blanks = [f"{{{key}}}" for key in keys]
            sentence = frame.format(a=cues[0], b=cues[-1], x=blanks[0], y=blanks[-1])
            held_out = is_held_out("|".join((frame, *cues)), 4) and sentence not in natural_sentences()
            yield frame, cues, "test" if held_out else "train", sentence


def key_choices() -> set[tuple[str, ...]]:
    """Each field alone, and each two fields of one record in both orders."""
    return {keys for record in RECORDS for size in (1, 2) for keys in permutations(record.fields, size)}


@cache
def templates(split: Split) -> frozenset[str]:
    """The sentences, blanks in place, that `compose` may use for `split`."""
    return frozenset(text for keys in key_choices() for *_, its, text in spell_templates(keys) if its == split)


@cache
def natural_sentences() -> frozenset[str]:
    """The sentences and clauses of all records."""
    clauses = {clause for record in RECORDS for field in record.fields.values() for clause in field.clauses}
    return frozenset(clauses.union(*(record.sentences for record in RECORDS)))


def unnamed(sentences: Iterable[str]) -> set[str]:
    """The sentences with blanks that no longer say which field they stand for."""
    return {re.sub(r"\{\w+\}", "{}", sentence) for sentence in sentences}
