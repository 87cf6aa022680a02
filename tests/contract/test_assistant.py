"""The drafter beside transformers' own: the same guesses from the same target, and the same text with it."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from mezzotint.decoding.generate import Limits
from mezzotint.decoding.params import SamplingParams
from mezzotint.decoding.program import Block, Guess
from mezzotint.decoding.verify import generate_guessed
from mezzotint.types import Cache
from tests.contract.drafting import DRAFT, PAIRINGS, Drafted, Drafting, pair, reference_draft
from tests.contract.test_autoregressive import greedy
from tests.contract.trace import draw_inputs, furthest

NEAR = 2e-4
TOKENS = 24
TOKEN = 77


@pytest.fixture(scope="module", params=list(PAIRINGS))
def drafting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Drafting:
    return pair(PAIRINGS[request.param], tmp_path_factory.mktemp("drafting"))


def our_draft(drafting: Drafting, prompt: Tensor, token: int) -> Drafted:
    """What our drafter says behind `token`, which follows prompt [1, T]."""
    model = drafting.target.model
    kv = model.new_kv(1, prompt.shape[1])
    hidden = model.encode(prompt, kv)
    return our_answer(drafting, Guess(token=token, hidden=hidden[0, -1], at=prompt.shape[1], size=DRAFT), kv)


def our_answer(drafting: Drafting, need: Guess, kv: Cache) -> Drafted:
    """What our drafter answers to a need."""
    states = torch.cat([guessed.state for guessed in drafting.ours.unroll([need], [kv])], 1)
    return Drafted(drafting.ours.guess(need, kv), drafting.ours.network.logits(states)[0])


# The window is 16: contexts inside it, at its edge on every side, and far longer; the drafter's own is one of 7 once.
@pytest.mark.parametrize("length", [1, 5, 7, 8, 9, 15, 16, 17, 18, 40])
def test_logits_of_every_guess_are_the_references(drafting: Drafting, length: int) -> None:
    prompt = draw_inputs(length, rows=1).prompt
    ours, theirs = our_draft(drafting, prompt, TOKEN), reference_draft(drafting, prompt, TOKEN)
    assert furthest(ours.logits, theirs.logits) <= NEAR
    assert ours.tokens == theirs.tokens


def test_guesses_differ_with_all_that_they_are_made_from(drafting: Drafting) -> None:
    prompt = draw_inputs(17, rows=1).prompt
    usual = our_draft(drafting, prompt, TOKEN)
    assert len(set(usual.tokens)) >= 2, "a drafter that repeats itself proves little"
    other = prompt.clone()
    other[0, 2] += 1  # seen by full layers, and by the widest window alone
    for changed in (our_draft(drafting, prompt, TOKEN + 1), our_draft(drafting, other, TOKEN)):
        assert furthest(changed.logits, usual.logits) > 10 * NEAR


def test_text_with_a_drafter_is_greedy_text_on_both_sides(drafting: Drafting) -> None:
    prompt = draw_inputs(12, rows=1).prompt  # the text behind it leaves the window
    plain = greedy(drafting.target.model, prompt)
    assert assisted(drafting, prompt) == plain
    assert guessed(drafting.target.model, drafting.ours, prompt) == plain


def assisted(drafting: Drafting, prompt: Tensor) -> list[int]:
    """TOKENS tokens by transformers' assisted decoding."""
    oracle = drafting.target.oracle
    oracle.generation_config.eos_token_id = None
    found = oracle.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        assistant_model=drafting.oracle,
        max_new_tokens=TOKENS,
        do_sample=False,
    )
    tokens: list[int] = found[0, prompt.shape[1] :].tolist()
    return tokens


def guessed(model: Any, drafter: Any, prompt: Tensor) -> list[int]:
    """TOKENS greedy tokens by decoder `mtp`."""
    config = model.config
    limits = Limits(vocab_size=config.vocab_size, canvas_length=8, max_positions=512, end_ids=())
    params = SamplingParams(decoder="mtp", max_tokens=TOKENS, temperature=0.0, draft_tokens=DRAFT)
    events = generate_guessed(model, drafter, prompt[0].tolist(), params, 0, limits)
    return [token for event in events if isinstance(event, Block) for token in event.tokens]


class Helped:
    """A drafter some of whose guesses are put right, so that rounds of every length come up.

    Each time it is asked, it must say what it says of the same tokens encoded afresh.
    """

    def __init__(self, drafting: Drafting, prompt: list[int], answer: list[int]) -> None:
        self.drafting, self.whole = drafting, prompt + answer
        self.right: Iterator[int] = iter([0, 1, 5, 2, 0, 5, 3] * TOKENS)
        self.asked = 0

    def guess(self, need: Guess, kv: Cache) -> list[int]:
        said = our_answer(self.drafting, need, kv)
        assert need.token == self.whole[need.at]
        afresh = our_draft(self.drafting, torch.tensor([self.whole[: need.at]]), need.token)
        assert furthest(said.logits, afresh.logits[: need.size]) <= NEAR
        self.asked += 1
        right = self.whole[need.at + 1 :][: next(self.right)]
        return [*right, *said.tokens[len(right) :]][: need.size]


def test_rejected_drafts_leave_no_trace_in_what_is_guessed_next(drafting: Drafting) -> None:
    prompt = draw_inputs(12, rows=1).prompt
    answer = greedy(drafting.target.model, prompt)
    helped = Helped(drafting, prompt[0].tolist(), answer)
    assert guessed(drafting.target.model, helped, prompt) == answer
    assert 4 <= helped.asked < TOKENS - 4
