"""`choose`: a slow reading of the prompt finds the answer, labels are of the stated size, and splits are apart."""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mezzotint
from mezzotint.tasks import Example, Split
from mezzotint.tasks.choose import HEADINGS, RULES, SINGLE_LABELS, accept, generate
from mezzotint.tasks.phrases import FRAMES, NOUNS, unseen_frame
from mezzotint.text.parse import Reply
from mezzotint.text.tokenizer import Tokenizer

SPLITS: tuple[Split, ...] = ("train", "test")
SEEDS = st.integers(0, 2**40)
INVENTED = r"[A-Z][a-z]+"
LABEL = rf"(?:{INVENTED} {INVENTED}|{INVENTED}|[a-z]+)"
SLOTS = {
    "noun": f"(?P<noun>{'|'.join(NOUNS)})",
    "Noun": f"(?P<noun>{'|'.join(noun.capitalize() for noun in NOUNS)})",
    "label": f"(?P<label>{LABEL})",
    "list": f"(?P<list>{LABEL}(?:, {LABEL})*)",
    "x": f"(?P<x>{INVENTED})",
    "y": f"(?P<y>{INVENTED})",
    "n": r"(?P<n>\d+)",
    "degree": "(?P<degree>most|fewest)",
    "side": "(?P<side>before|after)",
}
PATTERNS = {
    (key, frame): re.compile(re.escape(frame).replace(r"\{", "{").replace(r"\}", "}").format(**SLOTS))
    for key, frames in FRAMES.items()
    for frame in frames
}


class Sentence(NamedTuple):
    key: str
    frame: str
    slots: dict[str, str]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_directory(Path(mezzotint.__file__).parent / "checkpoints" / "lab")


@cache
def draw_many(split: Split) -> list[Example]:
    return [generate(seed, split) for seed in range(2500)]


def prompt_of(example: Example) -> str:
    prompt = example.messages[0]["content"]
    assert isinstance(prompt, str)
    return prompt


def labels_of(example: Example) -> list[str]:
    assert example.schema is not None
    enum = example.schema["enum"]
    assert isinstance(enum, list)
    return enum


def read(example: Example) -> tuple[list[Sentence], Sentence]:
    """What the prompt tells, and what it asks."""
    _, text, question = prompt_of(example).split("\n")
    told = [recognise(sentence, asks=False) for sentence in re.split(r"(?<=\.) ", text)]
    return told, recognise(question, asks=True)


def recognise(sentence: str, *, asks: bool) -> Sentence:
    found = [
        Sentence(key, frame, {**match.groupdict(), "noun": match["noun"].lower()})
        for (key, frame), pattern in PATTERNS.items()
        if key.endswith("?") == asks and (match := pattern.fullmatch(sentence))
    ]
    assert len(found) == 1, sentence
    return found[0]


def solve(told: list[Sentence], asked: Sentence, labels: list[str]) -> str:
    """The answer by the words of the prompt alone, found otherwise than it was made."""
    facts = [sentence.slots for sentence in told]
    match asked.key:
        case "own?":
            label_of = {slots["x"]: slots["label"] for slots in facts if "label" in slots}
            same = {slots["y"]: slots["x"] for slots in facts if "y" in slots}
            return label_of[same.get(asked.slots["x"], asked.slots["x"])]
        case "count?":
            ranked = sorted(facts, key=lambda slots: int(slots["n"]))
            return ranked[-1 if asked.slots["degree"] == "most" else 0]["label"]
        case "list?":
            [label] = [slots["label"] for slots in facts if asked.slots["x"] in (slots["x"], slots["y"])]
            return label
        case "text?":
            [text] = [sentence.slots for sentence in told if sentence.key == "text"]
            [label] = [slots["label"] for slots in facts if "label" in slots and slots["x"] in text.values()]
            return label
        case "word?":
            [label] = [slots["label"] for slots in facts if slots["label"] in labels]
            return label
        case "votes?":
            (label, votes), *others = Counter(facts[0]["list"].split(", ")).most_common()
            assert all(count < votes for _, count in others)
            return label
        case "order?":
            row = facts[0]["list"].split(", ")
            return row[row.index(asked.slots["label"]) + (1 if asked.slots["side"] == "after" else -1)]
    raise AssertionError(asked.key)


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_an_example_is_a_pure_function_of_seed_and_split(seed: int, split: Split) -> None:
    first = generate(seed, split)
    generate(seed + 1, split)
    assert generate(seed, split) == first


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_the_answer_follows_from_the_prompt_alone(seed: int, split: Split) -> None:
    example = generate(seed, split)
    told, asked = read(example)
    assert solve(told, asked, labels_of(example)) == example.answer
    assert {sentence.slots["noun"] for sentence in (*told, asked)} == {asked.slots["noun"]}


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_the_enum_holds_two_to_five_labels_in_the_order_of_the_heading(seed: int, split: Split) -> None:
    example = generate(seed, split)
    labels = labels_of(example)
    assert 2 <= len(set(labels)) == len(labels) <= 5
    assert example.answer in labels
    assert prompt_of(example).split("\n")[0] in [heading.format(list=", ".join(labels)) for heading in HEADINGS]


def test_no_label_is_a_word_of_the_sentences() -> None:
    words = set(re.findall(r"\w+", " ".join(frame for frames in FRAMES.values() for frame in frames)))
    assert not {*SINGLE_LABELS} & ({*NOUNS} | words)
    assert len({*SINGLE_LABELS}) == len(SINGLE_LABELS)


def test_single_labels_are_one_token_and_multi_labels_several(tokenizer: Tokenizer) -> None:
    lengths: dict[str, set[int]] = {"single": set(), "multi": set()}
    for example in (*draw_many("train"), *draw_many("test")):
        lengths[example.variant] |= {len(tokenizer.encode_text(label)) for label in labels_of(example)}
    assert lengths["single"] == {1}
    assert min(lengths["multi"]) == 2


def test_both_variants_every_rule_every_size_and_every_place_are_frequent() -> None:
    examples = draw_many("train")
    variants = Counter(example.variant for example in examples)
    assert variants.keys() == {"single", "multi"}
    assert min(variants.values()) > 1150
    rules = Counter("+".join(sorted({line.key for line in read(example)[0]})) for example in examples)
    assert rules.keys() == {"own", "own+same", "count", "list", "key+text", "word", "votes", "order"}
    assert len(rules) == len(RULES)
    assert min(rules.values()) > 250
    places = Counter((len(labels_of(e)), labels_of(e).index(e.answer)) for e in examples)
    for size in (2, 3, 4, 5):
        shares = [places[size, place] for place in range(size)]
        assert sum(shares) > 550
        assert min(shares) > 0.7 * max(shares)


def test_two_word_names_and_single_words_are_both_labels() -> None:
    labels = [label for e in draw_many("train") if e.variant == "multi" for label in labels_of(e)]
    assert 0.4 < sum(" " in label for label in labels) / len(labels) < 0.8
    assert all(re.fullmatch(LABEL, label) for label in labels)


def test_no_invented_word_and_no_set_of_short_labels_of_train_is_in_test() -> None:
    explained = set(re.findall(INVENTED, " ".join((*HEADINGS, *(f for frames in FRAMES.values() for f in frames)))))
    explained |= {noun.capitalize() for noun in NOUNS} | {f"{noun.capitalize()}s" for noun in NOUNS}
    words, sets = {}, {}
    for split in SPLITS:
        examples = draw_many(split)
        words[split] = set(re.findall(INVENTED, " ".join(map(prompt_of, examples)))) - explained
        sets[split] = {frozenset(labels_of(example)) for example in examples if example.variant == "single"}
        assert len(words[split]) > 3000
        assert len(sets[split]) > 500
    assert not words["train"] & words["test"]
    assert not sets["train"] & sets["test"]


def test_every_noun_has_one_unseen_frame_of_each_kind_and_every_frame_is_seen_with_most_nouns() -> None:
    for key, frames in FRAMES.items():
        unseen = Counter(unseen_frame(key, noun) for noun in NOUNS)
        assert unseen.keys() == {*frames}
        assert max(unseen.values()) < len(NOUNS) / 2


@pytest.mark.parametrize(
    ("split", "start", "step", "unseen"), [("train", 0, 1, False), ("test", 0, 2, False), ("test", 1, 2, True)]
)
def test_only_odd_test_seeds_use_unseen_sentences_and_they_use_no_other(
    split: Split, start: int, step: int, unseen: bool
) -> None:
    used = set()
    for example in draw_many(split)[start::step]:
        told, asked = read(example)
        used |= {(sentence.key, sentence.frame, sentence.slots["noun"]) for sentence in (*told, asked)}
    allowed = {
        (key, frame, noun)
        for key, frames in FRAMES.items()
        for frame in frames
        for noun in NOUNS
        if (frame == unseen_frame(key, noun)) == unseen
    }
    assert used <= allowed
    assert len(used) > 0.9 * len(allowed)


@pytest.mark.parametrize("split", SPLITS)
def test_questions_stay_short(split: Split, tokenizer: Tokenizer) -> None:
    lengths = sorted(len(tokenizer.encode_text(prompt_of(example))) for example in draw_many(split)[:600])
    assert lengths[570] <= 190
    assert lengths[-1] <= 250


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_the_right_label_is_accepted_and_every_other_refused(seed: int, split: Split) -> None:
    example = generate(seed, split)
    assert [label for label in labels_of(example) if accept(example, Reply(f"\n {label}\t"))] == [example.answer]


@given(seed=SEEDS)
def test_a_label_that_is_cut_wrapped_or_said_twice_is_refused(seed: int) -> None:
    example = generate(seed, "test")
    right = example.answer
    wrong = ["", right[:-1], right[1:], right.upper(), f'"{right}"', f"{right}.", f"{right} {right}", f"is {right}"]
    assert not any(accept(example, Reply(text)) for text in wrong)
    assert not accept(example, Reply("", reasoning=right))


def test_the_text_that_trained_models_know_has_not_changed() -> None:
    example = generate(1, "train")
    assert prompt_of(example) == (
        "Labels: Sidouyik Zouyok, Kleskumat Raiflodrer, Rograx Zetruhourt.\n"
        "Guests in order: Sidouyik Zouyok, Kleskumat Raiflodrer, Rograx Zetruhourt.\n"
        "Name the guest just before Kleskumat Raiflodrer."
    )
    assert (example.answer, example.variant) == ("Sidouyik Zouyok", "multi")
