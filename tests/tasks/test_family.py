"""Every family: determinism, the split, the interface; and the exact text that models are trained on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mezzotint.tasks import FAMILIES, Split
from mezzotint.tasks.family import is_held_out
from mezzotint.text.parse import Reply

SPLITS: tuple[Split, ...] = ("train", "test")


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**40), split=st.sampled_from(SPLITS))
def test_an_example_depends_on_family_split_and_seed_only(name: str, seed: int, split: Split) -> None:
    family = FAMILIES[name]
    first = family.generate(seed, split)
    family.generate(seed + 1, split)
    assert family.generate(seed, split) == first


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**40), split=st.sampled_from(SPLITS))
def test_the_right_reply_is_accepted_and_babble_is_not(name: str, seed: int, split: Split) -> None:
    family = FAMILIES[name]
    example = family.generate(seed, split)
    assert family.accept(example, example.reply)
    assert not family.accept(example, Reply("so be it ("))


@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - {"call", "chat", "infill"}))
@given(seed=st.integers(0, 2**40), split=st.sampled_from(SPLITS))
def test_white_space_around_an_answer_does_not_matter_and_an_empty_one_is_wrong(
    name: str, seed: int, split: Split
) -> None:
    example = FAMILIES[name].generate(seed, split)
    assert FAMILIES[name].accept(example, Reply(f"\n {example.answer}\t"))
    assert not FAMILIES[name].accept(example, Reply(""))


@pytest.mark.parametrize("name", FAMILIES)
def test_examples_carry_their_family_and_begin_with_the_user(name: str) -> None:
    assert FAMILIES[name].name == name
    example = FAMILIES[name].generate(3, "train")
    assert example.family == name
    assert example.messages[0]["role"] == "user"


def questions(name: str, split: Split, count: int) -> set[str]:
    """What is asked; of a blank the answer too, for two functions may differ within it alone."""
    examples = (FAMILIES[name].generate(seed, split) for seed in range(count))
    blank = name == "infill"
    return {
        repr((each.messages, each.tools, each.begins, each.ends, each.answer if blank else "")) for each in examples
    }


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", FAMILIES)
def test_different_seeds_give_different_questions(name: str, split: Split) -> None:
    repeated = 500 - len(questions(name, split, 500))
    # Of functions of the library there are only so many.
    assert repeated == 0 if name not in ("repair", "infill") else repeated < 50


@pytest.mark.parametrize("name", FAMILIES)
def test_train_and_test_share_no_question(name: str) -> None:
    train, test = (questions(name, split, 1000) for split in SPLITS)
    assert not train & test


@pytest.mark.parametrize("name", FAMILIES)
def test_an_unknown_split_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match="'valid'; use 'train' or 'test'"):
        FAMILIES[name].generate(0, "valid")  # type: ignore[arg-type]


def test_the_hash_holds_out_the_stated_share() -> None:
    held_out = sum(is_held_out(f"value {number}", 5) for number in range(10_000))
    assert 1_800 < held_out < 2_200


@pytest.mark.parametrize(
    ("name", "prompt", "answer"),
    [
        (
            "extract",
            "Extract the fields as JSON.\n"
            '{"age":{"type":"integer"},"job":{"type":"string"},"name":{"type":"string"}}\n'
            "They gave 72 as age in years. Nothing else has changed. Note miner as the job. "
            "For the mail address put fedesaix@sotri.org, for the name put Fithen Dralond.",
            '{"age":72,"job":"miner","name":"Fithen Dralond"}',
        ),
        (
            "parallel_rule",
            "Parallel rule: each output bit looks up left, own and right input bit; outside is 0.\n"
            "000:0 001:1 010:0 011:1 100:0 101:1 110:1 111:0\n"
            "000101000111010000100001",
            "001010001101100001000010",
        ),
        (
            "sequential_rule",
            "Sequential rule: each output bit looks up previous output, own and right input "
            "bit; outside is 0.\n"
            "000:1 001:0 010:1 011:0 100:1 101:1 110:1 111:1\n"
            "101111001011100110101011",
            "111111111111111111111111",
        ),
        (
            "repeat",
            "Repeat the values of place, email, date.\n"
            "badge: DQ-2774\nemail: fokaidroul@nuzairir.com\ndate: 2029-04-06\nplace: Tigodrer\n"
            "name: Yidros Baklouhom",
            "Tigodrer; fokaidroul@nuzairir.com; 2029-04-06",
        ),
    ],
)
def test_the_text_that_trained_models_know_has_not_changed(name: str, prompt: str, answer: str) -> None:
    example = FAMILIES[name].generate(1, "train")
    assert (example.messages[0]["content"], example.answer) == (prompt, answer)
