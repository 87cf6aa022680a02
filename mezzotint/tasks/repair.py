"""`repair`: write a function of the standard library again, without the one fault that was put into it.

The fault is one of writing, and the faulty text tells what stood there; `faults` says how. Test has functions and
misspellings that train never has.
"""

from mezzotint.tasks.family import Example, Family, Split, example_random
from mezzotint.tasks.faults import KINDS, put_in
from mezzotint.tasks.library import dump_code, functions
from mezzotint.text.parse import Reply


def generate(seed: int, split: Split) -> Example:
    """Make example `seed` of `split`: an instruction, and a function with one fault of a kind drawn evenly.

    Returns: the example, under this release of Python always the same; its variant is the kind of fault.
    Raises: ValueError for an unknown split; FileNotFoundError where the standard library has no sources.
    """
    rng = example_random("repair", split, seed)
    kind = rng.choice(list(KINDS))
    faulty = None
    while faulty is None:
        code = rng.choice(functions(split))
        faulty = put_in(rng, kind, code, split)
    prompt = f"Repair the function.\n{faulty}"
    return Example(family="repair", messages=({"role": "user", "content": prompt},), answer=code, variant=kind)


def accept(example: Example, reply: Reply) -> bool:
    """Check that the content of `reply` has the syntax tree of the right code; white space around it is allowed.

    Returns: true for the right code only, however it is spaced and commented.
    """
    found = dump_code(reply.content.strip())
    return found is not None and found == dump_code(example.answer)


REPAIR = Family("repair", generate, accept)
