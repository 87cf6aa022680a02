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
def test_the_known_answer_is_accepted_and_nothing_is_not(name: str, seed: int, split: Split) -> None:
    family = FAMILIES[name]
    example = family.generate(seed, split)
    assert family.accept(example, Reply(example.answer))
    assert family.accept(example, Reply(f"\n {example.answer}\t"))
    assert not family.accept(example, Reply(""))


@pytest.mark.parametrize("name", FAMILIES)
def test_examples_carry_their_family_and_one_user_turn(name: str) -> None:
    assert FAMILIES[name].name == name
    example = FAMILIES[name].generate(3, "train")
    assert example.family == name
    assert [message["role"] for message in example.messages] == ["user"]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", FAMILIES)
def test_different_seeds_give_different_questions(name: str, split: Split) -> None:
    prompts = {FAMILIES[name].generate(seed, split).messages[0]["content"] for seed in range(500)}
    assert len(prompts) == 500


@pytest.mark.parametrize("name", FAMILIES)
def test_train_and_test_share_no_question(name: str) -> None:
    train, test = (
        {FAMILIES[name].generate(seed, split).messages[0]["content"] for seed in range(1000)} for split in SPLITS
    )
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
