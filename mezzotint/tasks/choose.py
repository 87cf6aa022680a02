"""`choose`: one of 2 to 5 labels, which the text determines by one of eight rules.

The schema is the enum of the labels in the order of the prompt. The answer is the bare label, not JSON: whoever
scores choices reads them from the enum. Variant "single": labels are one token each in lab's vocabulary, out of a
short list that both splits share. Variant "multi": labels are invented words or two-word names of several tokens.

Test always uses held-out invented words (see `values`), so all its multi labels and all its names of things are
unseen. Single labels are shared, but a hash of the set of them that an example chooses from gives a fifth of the sets
to test. At its odd seeds, so in half of it, every sentence below the heading is one that train never uses (see
`phrases`). Numbers and headings are shared.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from mezzotint.tasks.family import Example, Family, Split, example_random, is_held_out
from mezzotint.tasks.phrases import FRAMES, NOUNS, unseen_frame
from mezzotint.tasks.values import draw_word
from mezzotint.text.parse import Reply

SINGLE_LABELS = tuple(
    "red tree clock garden hall box car cookie carpet basket attic pilot farmer miner clerk judge studio hotel town "
    "music chess poetry history astronomy gardening morning night week month voucher cheque cash lock key window "
    "screen socket pet home office desk table".split()
)
HEADINGS = ("Labels: {list}.", "Choose one: {list}.", "Pick one of these: {list}.")
_LONGEST_TOKEN = 5  # letters; of longer words, none that is drawn is a single token
_MOST_FACTS, _MOST_PAIRS = 4, 3  # labels of which things are told, so that prompts stay short


class _Sentence(NamedTuple):
    frames: str  # the key of FRAMES
    slots: dict[str, str]


class _Material(NamedTuple):
    labels: list[str]
    spare: list[str]  # two labels that are no choice
    names: list[str]


class _Case(NamedTuple):
    told: list[_Sentence]
    asked: _Sentence
    answer: str


def generate(seed: int, split: Split) -> Example:
    """Make example `seed` of `split`: a heading with the labels, the text, and the question.

    Returns: the example; its answer is one of schema["enum"].
    Raises: ValueError for an unknown split.
    """
    rng = example_random("choose", split, seed)
    variant = rng.choice(("single", "multi"))
    count = rng.randint(2, 5)
    words = _draw_words(rng, split, 24)
    labels = _draw_labels(rng, split, count) if variant == "single" else _spell_labels(rng, words, count)
    material = _Material(labels[:count], labels[count:], words[14:])
    case = rng.choice(list(RULES.values()))(rng, material)
    enum = rng.sample(material.labels, count)
    heading = rng.choice(HEADINGS).format(list=", ".join(enum))
    text = _word(rng, case, unseen=split == "test" and seed % 2 == 1)
    return Example(
        family="choose",
        messages=({"role": "user", "content": f"{heading}\n{text}"},),
        answer=case.answer,
        schema={"enum": enum},
        variant=variant,
    )


def accept(example: Example, reply: Reply) -> bool:
    """Check that the content of `reply` is exactly the right label; white space around it is allowed.

    Returns: true for the right answer only.
    """
    return reply.content.strip() == example.answer


def _draw_words(rng: Random, split: Split, count: int) -> list[str]:
    words: dict[str, None] = {}
    while len(words) < count:
        words[draw_word(rng, split)] = None
    return list(words)


def _draw_labels(rng: Random, split: Split, count: int) -> list[str]:
    """`count` short labels, a set that the other split never chooses from, and two more."""
    while True:
        labels = rng.sample(SINGLE_LABELS, count + 2)
        if is_held_out(" ".join(sorted(labels[:count])), 5) == (split == "test"):
            return labels


def _spell_labels(rng: Random, words: list[str], count: int) -> list[str]:
    """`count` labels and two more: two-word names, or words too long to be one token of the vocabulary."""
    names = [f"{first} {last}" for first, last in zip(words[:7], words[7:14], strict=True)]
    is_short = rng.random() < 0.5
    labels = [
        word if is_short and len(word) > _LONGEST_TOKEN else name for word, name in zip(words, names, strict=False)
    ]
    return labels[: count + 2]


def _word(rng: Random, case: _Case, *, unseen: bool) -> str:
    """The sentences of a case about one noun, the question on a line of its own."""
    noun = rng.choice(NOUNS)

    def word(sentence: _Sentence) -> str:
        held_out = unseen_frame(sentence.frames, noun)
        frame = held_out if unseen else rng.choice([frame for frame in FRAMES[sentence.frames] if frame != held_out])
        return frame.format(noun=noun, Noun=noun.capitalize(), **sentence.slots)

    return f"{' '.join(map(word, case.told))}\n{word(case.asked)}"


def _own(rng: Random, material: _Material) -> _Case:
    """Each label has a thing; whose is the named one?"""
    pairs = list(zip(material.names, material.labels[:_MOST_FACTS], strict=False))
    name, label = rng.choice(pairs)
    return _Case([_Sentence("own", {"x": x, "label": its}) for x, its in pairs], _Sentence("own?", {"x": name}), label)


def _same(rng: Random, material: _Material) -> _Case:
    """As `_own`, but the named thing only goes with one that has a label."""
    pairs = list(zip(material.names, material.labels[:_MOST_PAIRS], strict=False))
    others = material.names[len(pairs) :]
    told = [_Sentence("own", {"x": x, "label": label}) for x, label in pairs]
    told += [_Sentence("same", {"x": x, "y": y}) for (x, _), y in zip(pairs, others, strict=False)]
    place = rng.randrange(len(pairs))
    return _Case(rng.sample(told, len(told)), _Sentence("own?", {"x": others[place]}), pairs[place][1])


def _count(rng: Random, material: _Material) -> _Case:
    """Each label has a number; which is the largest or the smallest?"""
    numbers = dict(zip(material.labels, rng.sample(range(2, 100), len(material.labels)), strict=True))
    degree, find = rng.choice((("most", max), ("fewest", min)))
    told = [_Sentence("count", {"label": label, "n": str(number)}) for label, number in numbers.items()]
    return _Case(told, _Sentence("count?", {"degree": degree}), find(numbers, key=lambda label: numbers[label]))


def _list(rng: Random, material: _Material) -> _Case:
    """Each label lists two things; which list holds the named one?"""
    lists = {label: material.names[2 * i : 2 * i + 2] for i, label in enumerate(material.labels[:_MOST_PAIRS])}
    told = [_Sentence("list", {"label": label, "x": x, "y": y}) for label, (x, y) in lists.items()]
    label = rng.choice(list(lists))
    return _Case(told, _Sentence("list?", {"x": rng.choice(lists[label])}), label)


def _key(rng: Random, material: _Material) -> _Case:
    """A key gives each label a word; a text, before or after the key, holds one of them."""
    pairs = list(zip(material.names, material.labels[:_MOST_FACTS], strict=False))
    name, label = rng.choice(pairs)
    key = [_Sentence("key", {"x": x, "label": its}) for x, its in pairs]
    text = _Sentence("text", {"x": name, "y": material.names[-1]})
    return _Case([text, *key] if rng.random() < 0.3 else [*key, text], _Sentence("text?", {}), label)


def _mention(rng: Random, material: _Material) -> _Case:
    """Three labels are mentioned, of which one is a choice."""
    label = rng.choice(material.labels)
    told = [_Sentence("word", {"label": word}) for word in rng.sample([label, *material.spare], 3)]
    return _Case(told, _Sentence("word?", {}), label)


def _vote(rng: Random, material: _Material) -> _Case:
    """One label is said twice or three times, others once or not at all."""
    label, *others = rng.sample(material.labels, len(material.labels))
    votes = [label] * rng.randint(2, 3) + others[: rng.randint(1, 3)]
    told = _Sentence("votes", {"list": ", ".join(rng.sample(votes, len(votes)))})
    return _Case([told], _Sentence("votes?", {}), label)


def _order(rng: Random, material: _Material) -> _Case:
    """All labels stand in a row; which one stands right before or after the named one?"""
    row = material.labels
    place = rng.randrange(len(row) - 1)
    side, named, label = rng.choice((("after", row[place], row[place + 1]), ("before", row[place + 1], row[place])))
    told = _Sentence("order", {"list": ", ".join(row)})
    return _Case([told], _Sentence("order?", {"side": side, "label": named}), label)


RULES: dict[str, Callable[[Random, _Material], _Case]] = {
    "own": _own,
    "same": _same,
    "count": _count,
    "list": _list,
    "key": _key,
    "mention": _mention,
    "vote": _vote,
    "order": _order,
}
CHOOSE = Family("choose", generate, accept)
