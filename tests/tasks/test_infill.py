"""`infill`: the function stays whole around its blank, lengths keep their law, and white space counts."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import Example, Split
from mezzotint.tasks.infill import MAX_BLANK, MAX_END, accept, accept_continuation, generate, whole
from mezzotint.tasks.library import MAX_CODE, bundled_tokenizer, functions, splits_word
from mezzotint.text.parse import Reply

SPLITS: tuple[Split, ...] = ("train", "test")
SEEDS = st.integers(0, 2**40)


def prompt(example: Example) -> str:
    return str(example.messages[0]["content"])


def rest(example: Example) -> str:
    """What stands behind the blank, to the end of the function."""
    return whole(example, "").removeprefix(example.begins)


def tokens(text: str) -> int:
    return len(bundled_tokenizer().encode_text(text))


def sum_of(a: str, b: str) -> Example:
    """A function whose blank is the sum in its last line but one; the far end stands in the prompt."""
    return Example(
        family="infill",
        messages=({"role": "user", "content": "Fill in the blank.\nIt ends with:\n c"},),
        answer=f"{a} + {b}",
        begins="def f(a, b):\n    c = ",
        ends="\n    return",
    )


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_an_example_is_a_pure_function_of_seed_and_split(seed: int, split: Split) -> None:
    first = generate(seed, split)
    generate(seed + 1, split)
    assert generate(seed, split) == first


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_the_answer_makes_a_function_of_the_split_whole(seed: int, split: Split) -> None:
    example = generate(seed, split)
    assert whole(example, example.answer) in functions(split)
    assert "\n" in example.begins  # the blank is in the body
    assert accept(example, Reply(example.answer))
    assert accept_continuation(example, Reply(example.answer))


@given(seed=SEEDS, split=st.sampled_from(SPLITS))
def test_what_follows_beyond_24_tokens_is_quoted_in_the_prompt(seed: int, split: Split) -> None:
    example = generate(seed, split)
    far = rest(example).removeprefix(example.ends)
    assert prompt(example) == (f"Fill in the blank.\nIt ends with:\n{far}" if far else "Fill in the blank.")
    behind = bundled_tokenizer().encode_text(rest(example))
    assert bundled_tokenizer().encode_text(example.ends) == behind[:MAX_END]
    assert bool(far) is (len(behind) > MAX_END)


def test_no_function_of_train_is_in_test() -> None:
    train, test = (
        {whole(example, example.answer) for example in (generate(seed, split) for seed in range(3000))}
        for split in SPLITS
    )
    assert not train & test
    assert len(train) > 850
    assert len(test) > 550


@pytest.mark.parametrize("split", SPLITS)
def test_variants_are_as_frequent_a_tenth_is_empty_and_lengths_stay_short(split: Split) -> None:
    examples = [generate(seed, split) for seed in range(1500)]
    count = Counter(example.variant for example in examples)
    assert set(count) == {"line", "lines", "span"}
    assert all(420 < number < 580 for number in count.values())
    for variant in count:
        empty = [not example.answer for example in examples if example.variant == variant]
        assert 0.05 < sum(empty) / len(empty) < 0.15
    lengths = [tokens(example.answer) for example in examples if example.answer]
    assert max(lengths) == MAX_BLANK
    assert max(tokens(prompt(example)) for example in examples) <= 130


def test_a_line_is_one_whole_line_and_lines_are_two_to_six() -> None:
    counts = Counter[int]()
    for example in (generate(seed, "train") for seed in range(2000)):
        if example.variant == "span":
            continue
        assert example.begins.endswith("\n")
        if not example.answer:
            continue
        assert rest(example)[:1] in ("", "\n")
        count = example.answer.count("\n") + 1
        assert (count == 1) is (example.variant == "line")
        counts[count] += 1
    assert max(counts) in (5, 6)
    assert counts[2] > counts[3] > counts[4] > counts[5]


def test_half_of_the_ends_of_a_span_are_within_a_word_and_short_spans_are_frequent() -> None:
    starts, ends, lengths = [], [], []
    for example in (generate(seed, "train") for seed in range(3000)):
        if example.variant == "span" and example.answer:
            code = whole(example, example.answer)
            starts.append(splits_word(code, len(example.begins)))
            ends.append(splits_word(code, len(example.begins) + len(example.answer)))
            lengths.append(len(example.answer))
    assert len(lengths) > 800
    assert 0.45 < sum(starts) / len(starts) < 0.55
    assert 0.45 < sum(ends) / len(ends) < 0.55
    assert sum(length <= 10 for length in lengths) > len(lengths) / 2
    assert sum(length > 40 for length in lengths) > len(lengths) / 40


@given(seed=SEEDS)
def test_no_character_around_the_blank_is_altered(seed: int) -> None:
    example = generate(seed, "test")
    for middle in ("", "x", "\n It ends with:\n", example.answer * 2):
        text = whole(example, middle)
        assert text.startswith(example.begins + middle + example.ends)
        assert len(text) == len(whole(example, "")) + len(middle)


@pytest.mark.parametrize("middle", ["a + b", "a+b", "(a + b)", "a + (\n b)", "a + b  # sum", " a + b "])
def test_spacing_and_comments_within_the_blank_do_not_matter(middle: str) -> None:
    assert accept(sum_of("a", "b"), Reply(middle))


@pytest.mark.parametrize("middle", ["b + a", "a - b", "a + b\n", "a +", "", "a + b\n    return c", "a + b #\\", "\x00"])
def test_other_code_and_no_code_are_refused(middle: str) -> None:
    assert accept(sum_of("a", "b"), Reply(middle)) is (middle == "a + b\n" or middle == "a + b #\\")


def test_white_space_at_the_ends_of_the_answer_counts() -> None:
    lines = [example for seed in range(300) if (example := generate(seed, "test")).variant == "line" and example.answer]
    without_indentation = [accept(example, Reply(example.answer.strip())) for example in lines]
    assert sum(without_indentation) < len(lines) / 10  # but within brackets it is free


@given(seed=SEEDS)
def test_the_whole_function_is_no_middle(seed: int) -> None:
    example = generate(seed, "test")
    assert not accept(example, Reply(whole(example, example.answer)))
    assert not accept(example, Reply(f"```\n{example.answer}\n```"))
    assert accept(example, Reply("", example.answer)) is (example.answer == "")


@pytest.mark.parametrize("text", ["\ud800", "(" * 30_000, "-" * 15_000 + "1", "9" * 5000, "x" * (MAX_CODE + 1)])
def test_what_is_no_code_is_refused_without_an_error(text: str) -> None:
    assert not accept(sum_of("a", "b"), Reply(text))
    assert not accept_continuation(sum_of("a", "b"), Reply(text))


@given(seed=SEEDS)
def test_a_decoder_that_writes_on_to_the_end_is_right(seed: int) -> None:
    example = generate(seed, "test")
    written = example.answer + rest(example)
    assert accept_continuation(example, Reply(written))
    assert accept_continuation(example, Reply(f"{written}\n# end\n"))


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("a + b\n    return c", True),
        ("a + b\n    return c\n\n\ndef g(a):\n    return a", True),  # the blank is right, the rest is not looked at
        ("a + b\n    return b", True),
        ("a + b", True),
        ("a+b or", True),
        ("(a + # first\n  b)\n    return", True),
        ("b + a\n    return c", False),
        ("a", False),
        ("", False),
        ("a - b\n    return c", False),
    ],
)
def test_a_prefix_only_decoder_is_judged_by_its_best_cut(text: str, right: bool) -> None:
    assert accept_continuation(sum_of("a", "b"), Reply(text)) is right


def test_a_cut_far_behind_the_function_is_not_tried() -> None:
    comment = "#" * 150
    assert accept_continuation(sum_of("a", "b"), Reply(f"(\n{comment}\na + b)!"))
    assert not accept_continuation(sum_of("a", "b"), Reply(f"(\n{comment * 3}\na + b)!"))


def test_an_unknown_split_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'valid'; use 'train' or 'test'"):
        generate(0, "valid")  # type: ignore[arg-type]
