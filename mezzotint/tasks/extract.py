"""`extract`: copy the asked fields of a record out of free text into JSON; the records live in `records`.

Test always uses held-out values (see `values`). At its odd seeds, so in half of it, every sentence is a
held-out template (see `wording`) or an aside that train never uses; at its even seeds the sentences are those
of train.
"""

import json
import re
from random import Random
from typing import Any

from mezzotint.tasks.family import Example, Family, Split, example_random
from mezzotint.tasks.records import RECORDS, Record
from mezzotint.tasks.values import draw_word
from mezzotint.tasks.wording import compose
from mezzotint.text.parse import Reply

_ENOUGH_SENTENCES = 4  # a text of fewer is given another field and an aside that nobody asked for
# Sentences that tell no field; `{word}` is an invented word, `{count}` a number that no field asks for.
ASIDES = (
    "Thanks for the quick reply.",
    "Nothing else has changed.",
    "The rest can wait until later.",
    "Ask {word} at the front desk if unsure.",
    "The office in {word} knows about it.",
    "This is note {count} on the subject.",
    "It took {count} minutes to check.",
    "There were {count} messages about it before.",
)
UNSEEN_ASIDES = ("Our friend {word} sends kind regards.", "Line {count} of the log repeats this.")


def generate(seed: int, split: Split) -> Example:
    """Make example `seed` of `split`: an instruction, the properties of the schema, and the text.

    Returns: the example; its answer is the compact JSON object, keys in the order of the schema.
    Raises: ValueError for an unknown split.
    """
    rng = example_random("extract", split, seed)
    record = rng.choice(RECORDS)
    values = {key: field.kind.draw(rng, split) for key, field in record.fields.items()}
    asked = rng.sample(tuple(record.fields), rng.randint(3, 5))
    properties = {key: {"type": record.fields[key].kind.json_type} for key in asked}
    unseen = split == "test" and seed % 2 == 1
    spare = {"word": draw_word(rng, split), "count": str(rng.randint(2, 99))}
    text = " ".join(_choose_sentences(rng, record, asked, unseen)).format(**values, **spare)
    prompt = f"Extract the fields as JSON.\n{_dump(properties)}\n{text}"
    return Example(
        family="extract",
        messages=({"role": "user", "content": prompt},),
        answer=_dump({key: _to_json(properties[key]["type"], values[key]) for key in asked}),
        schema={"type": "object", "properties": properties, "required": asked, "additionalProperties": False},
    )


def accept(example: Example, reply: Reply) -> bool:
    """Check that the content of `reply` is one strict JSON object with exactly the right keys, types and values.

    Keys may come in any order; an integer must be written as one, a number counts by value.
    White space around tokens is allowed.
    Returns: true for a right answer only.
    """
    try:
        found = json.loads(reply.content.strip(), object_pairs_hook=_refuse_repeats)
    except (ValueError, RecursionError):
        return False
    # NaN and the infinities, which Python reads, equal no answer.
    expected = json.loads(example.answer)
    return (
        isinstance(found, dict)
        and found.keys() == expected.keys()
        and all(_is_same(found[key], expected[key]) for key in expected)
    )


def _choose_sentences(rng: Random, record: Record, asked: list[str], unseen: bool) -> list[str]:
    natural = not unseen and rng.random() < 0.6
    sentences = [rng.choice(record.sentences)] if natural else []
    told = re.findall(r"\{(\w+)\}", " ".join(sentences))
    rest = [key for key in asked if key not in told]
    others = [key for key in record.fields if key not in asked and key not in told]
    if others and len(sentences) + len(rest) < _ENOUGH_SENTENCES:
        rest.append(rng.choice(others))
    plain = [key for key in rest if natural and rng.random() < 0.6]
    sentences += [rng.choice(record.fields[key].clauses) for key in plain]
    sentences += compose(rng, [key for key in rest if key not in plain], "test" if unseen else "train")
    if len(sentences) < _ENOUGH_SENTENCES or rng.random() < 0.3:
        sentences.append(rng.choice(UNSEEN_ASIDES if unseen else ASIDES))
    rng.shuffle(sentences)
    return sentences


def _to_json(json_type: str, spelling: str) -> str | int | float:
    if json_type == "integer":
        return int(spelling)
    return float(spelling) if json_type == "number" else spelling


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _is_same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return type(found) in (int, float) and bool(found == expected)
    return type(found) is type(expected) and bool(found == expected)


EXTRACT = Family("extract", generate, accept)
