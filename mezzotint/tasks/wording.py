"""Sentences composed of a frame and cue words: held-out wordings that can still be understood.

A template is a frame with its cues in place. A hash of the template gives a quarter of them to test, which
`compose` never uses for train; every frame and every cue also occurs in train, in other company. A template
that reads like a clause of `records`, such as "The method is {method}.", is never held out.
"""

from random import Random

from mezzotint.tasks.family import Split, is_held_out
from mezzotint.tasks.records import RECORDS

FRAMES = (
    "The {a} is {x}.",
    "The {a} reads {x}.",
    "Here {x} is the {a}.",
    "As {a} we have {x}.",
    "Note {x} as the {a}.",
    "For the {a} put {x}.",
    "Take {x} for {a}.",
    "Under {a} it says {x}.",
    "The {a} was changed to {x}.",
    "They gave {x} as {a}.",
)
PAIRS = (
    "The {a} is {x} and the {b} is {y}.",
    "Here {x} is the {a}, {y} the {b}.",
    "With {x} as {a}, the {b} reads {y}.",
    "Under {a} it says {x}, under {b} {y}.",
    "For the {a} put {x}, for the {b} put {y}.",
    "They gave {x} as {a} and {y} as {b}.",
)
# Other nouns for a field, beside its own key.
CUES: dict[str, tuple[str, ...]] = {
    "name": ("full name",),
    "email": ("mail address", "mail"),
    "city": ("home town", "residence"),
    "age": ("age in years",),
    "job": ("profession", "work"),
    "badge": ("badge number", "pass"),
    "customer": ("buyer", "client"),
    "item": ("article", "product"),
    "quantity": ("number of pieces", "count"),
    "price": ("cost", "price each"),
    "order": ("order number",),
    "date": ("day",),
    "guest": ("visitor", "guest name"),
    "hotel": ("house", "hotel name"),
    "room": ("room type", "kind of room"),
    "arrival": ("arrival day", "check in"),
    "nights": ("number of nights", "stay"),
    "code": ("booking code",),
    "payer": ("paying side", "debtor"),
    "payee": ("paid side", "creditor"),
    "amount": ("sum", "total"),
    "due": ("due date", "deadline"),
    "invoice": ("bill", "invoice number"),
    "method": ("way to pay", "payment method"),
    "host": ("organiser", "host name"),
    "venue": ("place", "location"),
    "topic": ("subject", "theme"),
    "start": ("start time", "beginning"),
    "seats": ("number of seats", "places"),
    "contact": ("contact mail", "reply address"),
    "sender": ("sending side", "shipper"),
    "receiver": ("receiving side", "recipient"),
    "town": ("target town", "destination"),
    "weight": ("load in kilos", "kilos"),
    "tracking": ("tracking number", "label"),
    "pickup": ("pickup time", "collection"),
}

_CLAUSES = frozenset(clause for record in RECORDS for field in record.fields.values() for clause in field.clauses)


def compose(rng: Random, keys: list[str], split: Split) -> list[str]:
    """Tell every field of `keys` in sentences of one or two, each a template of `split`.

    Returns: sentences in which `{key}` stands for the value; each key stands in exactly one.
    """
    rest, sentences = list(keys), []
    while rest:
        told = [rest.pop() for _ in range(2 if len(rest) > 1 and rng.random() < 0.4 else 1)]
        sentences.append(_draw_template(rng, told, split))
    return sentences


def _draw_template(rng: Random, keys: list[str], split: Split) -> str:
    while True:
        frame = rng.choice(FRAMES if len(keys) == 1 else PAIRS)
        cues = [rng.choice((key, *CUES[key])) for key in keys]
        slots = {"x": f"{{{keys[0]}}}", "y": f"{{{keys[-1]}}}", "a": cues[0], "b": cues[-1]}
        sentence = frame.format(**slots)
        held_out = is_held_out("|".join((frame, *cues)), 4)
        if held_out == (split == "test") and not (held_out and sentence in _CLAUSES):
            return sentence
