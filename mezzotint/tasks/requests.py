"""Words requests for tools: a lead that names the tool, clauses that tell its arguments, what to report.

A wording is a frame with its words in place. Of the frames that a word can stand in, every fourth, shifted by a
hash of the word, is for test alone; every frame and every word also occurs in train, in other company.
"""

import zlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from mezzotint.tasks.family import Split
from mezzotint.tasks.tools import VERBS, Parameter, Tool

LEADS = (
    "{a} a {n}",
    "Please {a} a {n}",
    "Can you {a} the {n}",
    "I want to {a} a {n}",
    "We have to {a} the {n}",
    "Help me {a} a {n}",
    "It is time to {a} the {n}",
    "Try to {a} a {n}",
)
CLAUSES = (
    "with {a} {x}",
    "with {x} as {a}",
    "where {a} is {x}",
    "whose {a} is {x}",
    "given {a} {x}",
    "taking {x} for {a}",
    "having {x} as {a}",
    "under {a} {x}",
)
YES = ("marked as {a}", "and make it {a}", "that is {a}", "which must be {a}")
NO = ("not marked as {a}", "and do not make it {a}", "that is not {a}", "which must not be {a}")
CHAINS = (
    "Then {a} the {n} with the {f} that you get.",
    "Use its {f} to {a} the {n}.",
    "After that {a} the {n} by the {f} you see.",
    "Take the {f} and {a} the {n} with it.",
)
REPORTS = (
    "Tell me the {a}.",
    "Report the {a}.",
    "What is the {a}?",
    "I need the {a} in words.",
    "Give me the {a} back.",
    "Say what the {a} is.",
    "Let me know the {a}.",
    "Answer with the {a}.",
)


def draw_frame(rng: Random, frames: Sequence[str], word: str, wording: Split) -> str:
    """Draw one of the frames that `word` may stand in.

    Returns: a frame; train and test share none for the same word.
    """
    shift = zlib.crc32(word.encode())
    return rng.choice([frame for i, frame in enumerate(frames) if ((shift + i) % 4 == 0) == (wording == "test")])


def ask(rng: Random, tool: Tool, arguments: Mapping[str, Any], wording: Split) -> str:
    """Ask for one call of `tool`, every argument told once, in any order.

    Returns: one sentence.
    """
    word = rng.choice((tool.verb, *VERBS[tool.verb]))
    lead = draw_frame(rng, LEADS, word, wording).format(a=word, n=tool.noun)
    told = [parameter for parameter in tool.parameters if parameter.key in arguments]
    clauses = [_tell(rng, parameter, arguments[parameter.key], wording) for parameter in rng.sample(told, len(told))]
    sentence = ", ".join([" ".join([lead, *clauses[:1]]), *clauses[1:]])
    return sentence[0].upper() + sentence[1:] + ("?" if lead.startswith("Can ") else ".")


def chain(rng: Random, tool: Tool, field: str, wording: Split) -> str:
    """Ask for a call of `tool` with a field of the response before it.

    Returns: one sentence.
    """
    word = rng.choice((tool.verb, *VERBS[tool.verb]))
    return draw_frame(rng, CHAINS, word, wording).format(a=word, n=tool.noun, f=field)


def report(rng: Random, fields: Sequence[str], wording: Split) -> str:
    """Ask that fields of a response be told.

    Returns: one sentence.
    """
    return draw_frame(rng, REPORTS, fields[0], wording).format(a=" and the ".join(fields))


def _tell(rng: Random, parameter: Parameter, value: Any, wording: Split) -> str:
    if isinstance(value, bool):
        return draw_frame(rng, YES if value else NO, parameter.key, wording).format(a=parameter.key)
    if parameter.phrases and wording == "train" and rng.random() < 0.4:
        return rng.choice(parameter.phrases).format(x=value)
    word = rng.choice(parameter.words)
    return draw_frame(rng, CLAUSES, word, wording).format(a=word, x=value)
