"""Choosing among texts: probabilities, in the order of the choices, and what is refused."""

from typing import Any

import pytest

from mezzotint import LLM
from mezzotint.tasks import FAMILIES
from tests.llm.tiny import CHAT

CHOICES = ["yes", "no", "not so"]


@pytest.mark.parametrize("decoder", ["diffusion", "ar"])
def test_probabilities_sum_to_one_in_the_order_given(llm: LLM, forwards: list[str], decoder: Any) -> None:
    found = llm.choose(CHAT, CHOICES, decoder=decoder)
    assert [choice.text for choice in found] == CHOICES
    assert sum(choice.probability for choice in found) == pytest.approx(1)
    assert forwards == (["encode", "denoise"] if decoder == "diffusion" else ["encode"] * 4)


def test_lab_chooses_better_than_chance() -> None:
    lab, right, share = LLM("lab"), 0, 0.0
    for seed in range(40):
        example = FAMILIES["choose"].generate(seed, "test")
        labels = list(example.schema["enum"])
        found = lab.choose(list(example.messages), labels, seed=0)
        right += max(found, key=lambda choice: choice.probability).text == example.answer
        share += 1 / len(labels)
    assert right > share


def test_a_seed_is_for_noise_alone(llm: LLM) -> None:
    assert llm.choose(CHAT, CHOICES, seed=1) == llm.choose(CHAT, CHOICES, seed=1) != llm.choose(CHAT, CHOICES, seed=2)
    with pytest.raises(ValueError, match="seed is 0, but decoder 'ar' draws nothing; leave it out"):
        llm.choose(CHAT, CHOICES, decoder="ar", seed=0)


@pytest.mark.parametrize(
    ("choices", "decoder", "told"),
    [
        (["yes"], "diffusion", "1 choices were given"),
        (["yes", "yes"], "ar", "two of the choices are the same"),
        (["yes", ""], "diffusion", "a choice has 0 tokens"),
        (CHOICES, "verified", "decoder is 'verified'; one read of a canvas"),
    ],
)
def test_what_cannot_be_chosen_is_refused(llm: LLM, choices: list[str], decoder: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        llm.choose(CHAT, choices, decoder=decoder)
