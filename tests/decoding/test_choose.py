"""Choosing: one read of one canvas, or the causal pass, and what the probabilities are."""

from math import exp, log

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.choose import Surplus, read_choices, score_choices
from tests.decoding.network import END, C, Scripted, V, following, limits, shifting

PROMPT, PAD, FILL = [3, 1, 4, 1, 5], 0, 2
SURPLUS = Surplus(PAD, FILL)
CHOICES = [[9], [4, 6], [4, 8], [11, 5, 6]]


def read(network: Scripted, choices: list[list[int]], seed: int = 1) -> list[float]:
    return read_choices(network, PROMPT, choices, seed, limits(), SURPLUS)


def test_one_denoise_forward_reads_all_choices() -> None:
    network = Scripted()
    log_probs = read(network, CHOICES)
    assert network.kinds() == "ed"
    assert sum(map(exp, log_probs)) == pytest.approx(1)


def test_the_canvas_has_a_blank_for_the_longest_choice_before_the_end_of_turn() -> None:
    network = Scripted()
    read(network, CHOICES)
    assert network.forwards[1].ids[3:] == [END, *[FILL] * (C - 4)]


@pytest.mark.parametrize(
    ("filled", "telling"),
    [
        ([[9, PAD, PAD], [4, 6, PAD], [4, 8, PAD], [11, 5, 6]], 3),
        ([[4, 6, PAD], [4, 8, PAD], [4, 8, 5]], 2),
        ([[9], [4]], 1),
    ],
)
def test_a_choice_is_as_likely_as_the_mean_of_its_tokens_each_at_its_place_with_pads_behind_a_shorter_one(
    filled: list[list[int]], telling: int
) -> None:
    network = Scripted()
    log_probs = read(network, [[id for id in row if id != PAD] for row in filled])
    log_p = shifting(network.forwards[1].ids, PROMPT, 0).double().log_softmax(-1)
    totals = torch.tensor([sum(float(log_p[place, id]) for place, id in enumerate(row)) for row in filled]) / telling
    assert log_probs == pytest.approx(totals.log_softmax(-1).tolist(), abs=1e-5)


def test_a_model_that_is_as_unsure_of_each_token_as_of_the_choice_says_so() -> None:
    """Labels of two tokens, each token as likely as its label: seven in ten, not 49 in 58."""

    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        p = torch.full((C, V), 1e-9)
        p[0, 9], p[0, 4], p[1, 10], p[1, 5] = 0.7, 0.3, 0.7, 0.3
        return p.log()

    assert [exp(each) for each in read(Scripted(beliefs=beliefs), [[9, 10], [4, 5]])] == pytest.approx([0.7, 0.3])


def test_what_a_model_believes_is_what_comes_out() -> None:
    def beliefs(canvas: list[int], context: list[int], step: int) -> Tensor:
        logits = torch.zeros(C, V)
        logits[0, 9], logits[0, 4] = log(3), log(1.5)
        return logits

    assert [exp(each) for each in read(Scripted(beliefs=beliefs), [[9], [4], [5]])] == pytest.approx(
        [3 / 5.5, 1.5 / 5.5, 1 / 5.5]
    )


def test_the_seed_is_the_noises() -> None:
    assert read(Scripted(), CHOICES, 1) == read(Scripted(), CHOICES, 1) != read(Scripted(), CHOICES, 2)


def test_the_causal_pass_scores_each_choice_with_its_end() -> None:
    network = Scripted()
    log_probs = score_choices(network, PROMPT, CHOICES, limits())
    totals = []
    for choice in CHOICES:
        whole = [*choice, END]
        rows = torch.stack([following([*PROMPT, *whole[:index]]) for index in range(len(whole))])
        totals.append(float(rows.double().log_softmax(-1)[range(len(whole)), whole].sum()))
    assert log_probs == pytest.approx(torch.tensor(totals).log_softmax(-1).tolist(), abs=1e-5)
    assert network.kinds() == "eeeee"


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ([[4]], "1 choices were given; there is something to choose from 2 on"),
        ([[4], [4]], "two of the choices are the same tokens"),
        ([[4], []], "a choice has 0 tokens, and a canvas has room for 1 to 7"),
        ([[4], [5] * C], "a choice has 8 tokens, and a canvas has room for 1 to 7; shorten it"),
    ],
)
def test_what_is_no_choice_is_refused(choices: list[list[int]], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read(Scripted(), choices)


def test_a_prompt_that_leaves_no_room_is_refused_before_any_work() -> None:
    network = Scripted()
    with pytest.raises(ValueError, match="exceed the context of 64"):
        read_choices(network, [1] * (64 - C + 1), CHOICES, 1, limits(), SURPLUS)
    with pytest.raises(ValueError, match="exceed the context of 64"):
        score_choices(network, [1] * 61, CHOICES, limits())
    assert network.forwards == []
