"""Bit rules read off a truth table: `parallel_rule` looks at its input, `sequential_rule` at its output too.

A tenth of the 256 tables, chosen by hash, is held out: test always uses a held-out table, train never does.
"""

from functools import cache, partial

from mezzotint.tasks.family import Example, Family, Split, example_random, is_held_out
from mezzotint.text.parse import Reply

BITS = 24
_PROMPT = {
    "parallel_rule": "Parallel rule: each output bit looks up left, own and right input bit; outside is 0.",
    "sequential_rule": "Sequential rule: each output bit looks up previous output, own and right input bit; "
    "outside is 0.",
}


def apply_parallel(table: int, bits: list[int]) -> list[int]:
    """Look all bits up at once: `out[i] = table[in[i-1], in[i], in[i+1]]`, bits outside being 0.

    `table` is 0 to 255; its bit k is the entry of neighbourhood k, read as a binary number.
    Returns: as many bits as given.
    """
    padded = [0, *bits, 0]
    return [table >> (4 * padded[i] + 2 * padded[i + 1] + padded[i + 2]) & 1 for i in range(len(bits))]


def apply_sequential(table: int, bits: list[int]) -> list[int]:
    """Look bits up from left to right: `out[i] = table[out[i-1], in[i], in[i+1]]`, bits outside being 0.

    `table` is 0 to 255; its bit k is the entry of neighbourhood k, read as a binary number.
    Returns: as many bits as given.
    """
    out: list[int] = []
    previous = 0
    for own, right in zip(bits, [*bits[1:], 0], strict=True):
        previous = table >> (4 * previous + 2 * own + right) & 1
        out.append(previous)
    return out


@cache
def tables(split: Split) -> tuple[int, ...]:
    """List the truth tables that examples of `split` are drawn from; the two splits share none.

    Returns: numbers 0 to 255, ascending.
    """
    return tuple(table for table in range(256) if is_held_out(f"table {table}", 10) == (split == "test"))


def accept(example: Example, reply: Reply) -> bool:
    """Check that the content of `reply` is exactly the right bits; white space around them is allowed.

    Returns: true for the right answer only.
    """
    return reply.content.strip() == example.answer


def _generate(family: str, seed: int, split: Split) -> Example:
    rng = example_random(family, split, seed)
    table = rng.choice(tables(split))
    bits = [int(bit) for bit in f"{rng.getrandbits(BITS):0{BITS}b}"]
    out = apply_parallel(table, bits) if family == "parallel_rule" else apply_sequential(table, bits)
    entries = " ".join(f"{entry:03b}:{table >> entry & 1}" for entry in range(8))
    prompt = f"{_PROMPT[family]}\n{entries}\n{''.join(map(str, bits))}"
    return Example(family=family, messages=({"role": "user", "content": prompt},), answer="".join(map(str, out)))


PARALLEL_RULE = Family("parallel_rule", partial(_generate, "parallel_rule"), accept)
SEQUENTIAL_RULE = Family("sequential_rule", partial(_generate, "sequential_rule"), accept)
