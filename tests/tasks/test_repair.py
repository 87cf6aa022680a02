"""`repair`: held-out functions, kinds drawn evenly, and the verifier that reads code, not characters."""

import ast
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import Example, Split
from mezzotint.tasks.faults import KINDS
from mezzotint.tasks.library import bundled_tokenizer, functions, parse_code
from mezzotint.tasks.repair import accept, generate
from mezzotint.text.parse import Reply

SPLITS: tuple[Split, ...] = ("train", "test")
SEEDS = st.integers(0, 2**40)


def faulty(example: Example) -> str:
    instruction, _, code = str(example.messages[0]["content"]).partition("\n")
    assert instruction == "Repair the function."
    return code


def tokens(text: str) -> int:
    return len(bundled_tokenizer().encode_text(text))


def example_of(answer: str) -> Example:
    return Example(family="repair", messages=(), answer=answer)


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_an_example_is_a_pure_function_of_seed_and_split(seed: int, split: Split) -> None:
    first = generate(seed, split)
    generate(seed + 1, split)
    assert generate(seed, split) == first


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_the_answer_is_a_function_of_the_split_and_the_question_is_not_it(seed: int, split: Split) -> None:
    example = generate(seed, split)
    assert example.answer in functions(split)
    assert accept(example, Reply(example.answer))
    assert not accept(example, Reply(faulty(example)))


def test_no_function_and_no_faulty_text_of_train_is_in_test() -> None:
    train, test = ([generate(seed, split) for seed in range(800)] for split in SPLITS)
    assert not {example.answer for example in train} & {example.answer for example in test}
    assert not {faulty(example) for example in train} & {faulty(example) for example in test}
    assert len({faulty(example) for example in train}) > 780
    assert len({faulty(example) for example in test}) > 740


@pytest.mark.parametrize("split", SPLITS)
def test_the_kinds_of_fault_are_as_frequent_and_lengths_stay_short(split: Split) -> None:
    examples = [generate(seed, split) for seed in range(600)]
    count = Counter(example.variant for example in examples)
    assert set(count) == set(KINDS)
    assert all(110 < number < 190 for number in count.values())
    for example in examples:
        assert tokens(str(example.messages[0]["content"])) <= 140
        assert 12 <= tokens(example.answer) <= 120


@pytest.mark.parametrize("split", SPLITS)
def test_what_is_broken_is_broken_as_its_kind_says(split: Split) -> None:
    for seed in range(100):
        example = generate(seed, split)
        lines = zip(example.answer.split("\n"), faulty(example).split("\n"), strict=True)
        assert sum(right != wrong for right, wrong in lines) == 1
        if example.variant in ("punctuation", "indentation"):
            assert parse_code(faulty(example)) is None


@given(seed=SEEDS)
def test_spacing_and_comments_do_not_matter(seed: int) -> None:
    example = generate(seed, "test")
    assert accept(example, Reply(f"\n {example.answer}\t\n"))
    assert accept(example, Reply(f"# Repaired.\n{example.answer}  # done"))
    assert accept(example, Reply(ast.unparse(ast.parse(example.answer)))) or "f'" in example.answer


@given(seed=SEEDS)
def test_another_function_and_text_around_the_code_are_refused(seed: int) -> None:
    example, other = generate(seed, "test"), generate(seed, "train")
    for wrong in (
        other.answer,
        f"```python\n{example.answer}\n```",
        f"{example.answer}\n{example.answer}",
        f"{example.answer}\n    pass",
        example.answer.replace("def ", "def x", 1),
        example.answer.rsplit("\n", 1)[0],
        "",
    ):
        assert not accept(example, Reply(wrong))


@pytest.mark.parametrize("text", ["\x00", "\ud800", "(" * 30_000, "-" * 19_000 + "1", "a" + ".b" * 9000, "9" * 5000])
def test_what_is_no_code_is_refused_without_an_error(text: str) -> None:
    assert not accept(generate(0, "test"), Reply(text))
    assert not accept(example_of("def f(:"), Reply(text))


def test_a_thought_is_no_answer() -> None:
    example = generate(0, "test")
    assert not accept(example, Reply("", example.answer))


def test_an_unknown_split_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'valid'; use 'train' or 'test'"):
        generate(0, "valid")  # type: ignore[arg-type]
