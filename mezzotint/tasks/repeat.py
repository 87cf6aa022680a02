"""Copying, the skill under every other family: a whole line, or the values of named lines in the order asked.

A model learns it here before it can learn to find values in prose. Values are held out as `values` says.
"""

from random import Random

from mezzotint.tasks.family import Example, Family, Split, example_random
from mezzotint.tasks.values import DATE, EMAIL, IDENTIFIER, NAME, PLACE, PRICE, TIME, Kind
from mezzotint.text.parse import Reply

_KINDS: dict[str, Kind] = {
    "name": NAME,
    "place": PLACE,
    "email": EMAIL,
    "badge": IDENTIFIER,
    "price": PRICE,
    "date": DATE,
    "time": TIME,
}


def generate(seed: int, split: Split) -> Example:
    """Draw an example: two to five values to repeat, or four to six lines of which two to four are asked.

    Returns: the example; a pure function of seed and split.
    """
    rng = example_random("repeat", split, seed)
    prompt, answer = _draw_line(rng, split) if rng.random() < 0.5 else _draw_lookup(rng, split)
    return Example(family="repeat", messages=({"role": "user", "content": prompt},), answer=answer)


def accept(example: Example, reply: Reply) -> bool:
    """Check that the content of `reply` is exactly the right line; white space around it is allowed.

    Returns: true for the right answer only.
    """
    return reply.content.strip() == example.answer


def _draw_line(rng: Random, split: Split) -> tuple[str, str]:
    kinds = rng.choices(list(_KINDS), k=rng.randint(2, 5))
    line = rng.choice((" ", ", ", "; ")).join(_KINDS[kind].draw(rng, split) for kind in kinds)
    return f"Repeat the line.\n{line}", line


def _draw_lookup(rng: Random, split: Split) -> tuple[str, str]:
    keys = rng.sample(list(_KINDS), rng.randint(4, 6))
    values = {key: _KINDS[key].draw(rng, split) for key in keys}
    asked = rng.sample(keys, rng.randint(2, 4))
    lines = "\n".join(f"{key}: {value}" for key, value in values.items())
    return f"Repeat the values of {', '.join(asked)}.\n{lines}", "; ".join(values[key] for key in asked)


REPEAT = Family("repeat", generate, accept)
